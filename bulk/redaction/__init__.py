"""Takes secrets out of whatever is written: the ones that are known, and what has the shape of one, in every spelling.

`registry.py` holds the secrets of this process; what it does for the rest of the program stands here. `known.py` finds
known secrets, `shapes.py` what looks like one, `spellings.py` undoes the ways in which either may be written,
`json_lines.py` keeps JSON valid. Source: failures.md rows 62, 63.
"""

from bulk.redaction.registry import Registry

_REGISTRY = Registry()

remember = _REGISTRY.add
"""Let no text be written with this one in it from now on: a webhook's secret, a proxy's password."""
forget = _REGISTRY.forget
is_secret = _REGISTRY.holds
shows_secret = _REGISTRY.is_in
redact = _REGISTRY.redact
redact_json = _REGISTRY.redact_json
redact_lines = _REGISTRY.redact_lines
taints = _REGISTRY.taints
