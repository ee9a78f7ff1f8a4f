"""Takes secrets out of everything that is written: known secrets and texts with the shape of one, in every spelling.

`registry.py` holds the secrets of this process; its functions for the rest of the program stand here. `known.py` finds
known secrets, `shapes.py` texts that look like secrets, `spellings.py` undoes the ways in which either may be written,
`json_lines.py` keeps JSON valid. Source: failures.md rows 62, 63.
"""

from bulk.redaction.registry import Registry

_REGISTRY = Registry()

remember = _REGISTRY.add
"""Take a text for a secret from now on, such as a webhook's secret or a proxy's password."""
forget = _REGISTRY.forget
is_secret = _REGISTRY.holds
shows_secret = _REGISTRY.is_in
redact = _REGISTRY.redact
redact_json = _REGISTRY.redact_json
redact_lines = _REGISTRY.redact_lines
suspects = _REGISTRY.suspects
taints = _REGISTRY.taints
