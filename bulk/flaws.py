"""Flaws are collected, not raised one by one: the user sees up to 50 of them and how many more there are.

Text from a file is shown escaped and cut, so that it can't fool a terminal. Values of secret fields are never shown at
all: the code that adds a flaw sees to that. Source: interface.md §2, failures.md rows 52 and 66.
"""

import bisect
import difflib
import re
from collections.abc import Iterable, Sequence

from bulk.errors import Flaw, ManifestError

MOST_FLAWS = 50
"""Flaws that are listed (count); further ones are only counted."""

MOST_COMPARED = 200
"""Known names that an unknown one is compared with (count): the nearest in the alphabet, so that typing errors at the
end of long lists of names are still found."""

_COMPARED_CHARACTERS = 100
_SHOWN_CHARACTERS = 60
_SHORTEST_STEM = 3
_ORDINARY = re.compile(r"[A-Za-z0-9_.\[\]-]+")


class Flaws:
    """The flaws found so far; they are raised in the order of the files, and of the lines in each."""

    def __init__(self) -> None:
        self._listed: list[Flaw] = []
        self._earlier: frozenset[Flaw] = frozenset()
        self._more = 0

    def __len__(self) -> int:
        return len(self._listed) + self._more

    @property
    def is_full(self) -> bool:
        """Whether a further flaw would only be counted, so that its message need not be made."""
        return len(self._listed) >= MOST_FLAWS

    def add(self, path: str, line: int, field: str, message: str) -> None:
        """Note one flaw; see `errors.Flaw` for the parts."""
        flaw = Flaw(path, line, field, message)
        if flaw in self._earlier:
            return
        if self.is_full:
            self._more += 1
        else:
            self._listed.append(flaw)

    def next_job(self) -> None:
        """Note no flaw again from now on that is listed by now: the next job may read the file of an earlier one."""
        self._earlier = frozenset(self._listed)

    def count_only(self, count: int = 1) -> None:
        """Count `count` further flaws, which are not listed."""
        self._more += count

    def raise_if_any(self) -> None:
        """Raise the flaws that were noted, if there are any.

        Raises:
            ManifestError: at least one flaw was found.
        """
        if self._listed:
            places = {flaw.path: place for place, flaw in reversed(list(enumerate(self._listed)))}
            self._listed.sort(key=lambda flaw: (places[flaw.path], flaw.line))
            raise ManifestError(self._listed, self._more)


def shown(text: str) -> str:
    """Return `text` for a message: quoted, cut to 60 characters, with characters that are not printable escaped."""
    cut = text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"
    return repr(cut)


def name_shown(name: str) -> str:
    """Return a field's name for a message: as it is if the name is an ordinary one, else as `shown` returns it."""
    return name if _ORDINARY.fullmatch(name) and len(name) <= _SHOWN_CHARACTERS else shown(name)


def _near(name: str, known: Sequence[str]) -> list[str]:
    """Return the known names that may have been meant: written otherwise, abbreviated or in full, or with a typing
    error."""
    plain = _plain(name)
    alike = [each for each in known if _plain(each) == plain]
    if not alike and len(plain) >= _SHORTEST_STEM:
        stems = [(len(_plain(each)), each) for each in known if len(_plain(each)) >= _SHORTEST_STEM]
        alike = [each for _, each in sorted(stems) if plain.startswith(_plain(each)) or _plain(each).startswith(plain)]
    close = difflib.get_close_matches(name, known, n=2, cutoff=0.6)
    return list(dict.fromkeys([*alike, *close]))[:2]


def _plain(name: str) -> str:
    return name.casefold().replace("-", "_").replace(" ", "_")


def unknown_name(name: str, known: Iterable[str], kind: str = "field") -> str:
    """Return `unknown field; did you mean branch?`: what to say about a name that is not among `known`."""
    choices = sorted(known)
    place = bisect.bisect(choices, name)
    around = choices[max(0, place - MOST_COMPARED // 2) : place + MOST_COMPARED // 2]
    near = _near(name, around) if len(name) <= _COMPARED_CHARACTERS else []
    if near:
        return f"unknown {kind}; did you mean {' or '.join(near)}?"
    if 0 < len(choices) <= 20:
        return f"unknown {kind}; expected one of {', '.join(choices)}"
    return f"unknown {kind}"
