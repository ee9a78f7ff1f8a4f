"""Text from outside made safe to show: on a terminal, in a log, in a message (failures.md row 66). Pure.

Characters that a terminal obeys (escape sequences, control characters) or that reorder and hide text (bidirectional
marks, invisible characters, lone surrogates) are dropped. Files keep the original, escaped by JSON.
"""

import re
import unicodedata
from collections.abc import Iterator

_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, moving, clearing
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|$)"  # OSC and the like, with text
    r"|\x1b[ -/]*[0-~]?"  # the short ones
)
_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn")
JOINERS = "\u200c\u200d"
"""Format characters that scripts and emoji need; all others of Unicode's category Cf can mislead and are dropped."""


def printable(text: str, most: int | None = None) -> str:
    """Return `text` on one line, without characters that control, reorder or hide text when it is shown.

    Line breaks, tabs and every other kind of space become a space.

    Args:
        most: longest result (characters, >= 1); a longer one ends in an ellipsis. None: any length.
    """
    if not text.isprintable():
        text = "".join(_shown(_SEQUENCES.sub("", text)))
    if most is not None and len(text) > most:
        text = text[: most - 1] + "…"
    return text


def is_hidden(char: str) -> bool:
    """Return whether a character, which is neither a space nor a line break, is not shown as one."""
    return unicodedata.category(char) in _HIDDEN


def _shown(text: str) -> Iterator[str]:
    for char in text:
        category = unicodedata.category(char)
        if char in "\t\n\r\v\f" or category.startswith("Z"):
            yield " "
        elif char in JOINERS or category not in _HIDDEN:
            yield char
