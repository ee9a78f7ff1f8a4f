"""Names that people take for one another: `acme-web` and `acrne-web`. Only ever a note, because both may be meant."""

import unicodedata

_SINGLE = str.maketrans({"0": "o", "1": "l", "i": "l", "|": "l", "5": "s", "_": "-"})
_PAIRS = (("rn", "m"), ("vv", "w"), ("cl", "d"))


def skeleton(name: str) -> str:
    """What is the same for names that look alike in ordinary fonts; of no other use."""
    folded = unicodedata.normalize("NFKC", name).casefold().translate(_SINGLE)
    for several, one in _PAIRS:
        folded = folded.replace(several, one)
    return folded
