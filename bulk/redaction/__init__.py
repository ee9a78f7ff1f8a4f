"""Takes secrets out of whatever is written: the ones that are known, and what has the shape of one, in every spelling.

`registry.py` is what the rest of the program uses; `known.py` finds known secrets, `shapes.py` what looks like one,
`spellings.py` undoes the ways in which either may be written, `json_lines.py` keeps JSON valid. Source: failures.md
rows 62, 63.
"""

from bulk.redaction.known import MASK, SHORTEST_CHARS
from bulk.redaction.registry import (
    Registry,
    holds_known,
    is_secret,
    redact,
    redact_json,
    redact_lines,
    remember,
    shows_secret,
)

__all__ = [
    "MASK",
    "SHORTEST_CHARS",
    "Registry",
    "holds_known",
    "is_secret",
    "redact",
    "redact_json",
    "redact_lines",
    "remember",
    "shows_secret",
]
