"""`python -m tests.hostile KIND [WAY [ROW]]`: how the other commands bear wrong answers, by way."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from tests.hostile.commands import audits, looks, scenes
from tests.hostile.commands.looks import befalls_reads
from tests.hostile.commands.scenes import PLAIN, Scene
from tests.hostile.commands.watches import WATCHES, Watch
from tests.hostile.ways import WAYS, named
from tests.hostile.wrong import Way


class Tried(NamedTuple):
    """What one way has come to: how many cases, how their items ended, and what does not hold."""

    way: str
    cases: int
    outcomes: Counter[str]
    wrong: list[str]


def scene_of(kind: str, way: Way) -> Scene:
    """The scene of a kind in which a way has its place."""
    if kind == "undone":
        return Scene(kind, ran=way)
    if kind == "undo-both":
        return Scene(kind, ran=way, undone=way)
    return Scene(kind, undone=way, is_meddled=kind == "undo-meddled", is_again=kind == "undo-again")


def _undo(kind: str, way: Way, row: str) -> Tried:
    played = scenes.play(scene_of(kind, way), [each for each in scenes.UNDOABLE if each.name.startswith(row)])
    return Tried(way.name, len(played.cells), played.outcomes(), list(played.wrong()))


@cache
def _plain_look(kind: str, rows: tuple[str, ...], habits: frozenset[str]) -> looks.Looked:
    return looks.look(kind, replace(PLAIN, habits=habits), [each for each in looks.WRITING if each.name in rows])


def _look(kind: str, way: Way, row: str) -> Tried:
    looked = looks.look(kind, way, [each for each in looks.WRITING if each.name.startswith(row)])
    plain = _plain_look(kind, tuple(cell.row.name for cell in looked.cells), way.habits)
    found = Counter(each for told in looked.seen.values() for each in told)
    found.update({"equal": looked.equal, "unseen": looked.unseen})
    return Tried(way.name, len(looked.cells), +found, list(looked.wrong(plain)))


def _watches(row: str) -> list[Watch]:
    return [each for each in WATCHES if each.name.startswith(row)]


@cache
def _plain_audit(habits: frozenset[str], row: str) -> audits.Audit:
    return audits.audit(replace(PLAIN, habits=habits), _watches(row))


def _audit(kind: str, way: Way, row: str) -> Tried:
    found = audits.audit(way, _watches(row), audits.WRONG_NIGHT[kind])
    outcomes = Counter(line["outcome"] for night in found.nights for line in night.lines.values())
    return Tried(way.name, len(found.cells), outcomes, list(found.wrong(_plain_audit(way.habits, row))))


KINDS: dict[str, Callable[[str, Way, str], Tried]] = {
    **dict.fromkeys(("undo", "undone", "undo-both", "undo-meddled", "undo-again"), _undo),
    **dict.fromkeys(("plan", "verify", "verify-meddled"), _look),
    **dict.fromkeys(audits.WRONG_NIGHT, _audit),
}


def ways_of(kind: str) -> Sequence[Way]:
    """The ways that a kind can meet."""
    if kind in audits.WRONG_NIGHT:
        told = [way for way in WAYS if befalls_reads(way) and way.name not in audits.IN_OTHER_WORDS]
        return [*told, *audits.VALIDATORS]
    if KINDS[kind] is _look:
        return [way for way in WAYS if befalls_reads(way) and looks.can_be_told(way)]
    return WAYS


def try_kind(kind: str, way: str, row: str = "") -> Tried:
    """Try one way, by its whole name."""
    found = {each.name: each for each in audits.VALIDATORS}
    return KINDS[kind](kind, found[way] if way in found else named(way), row)


def families(kind: str) -> list[str]:
    """The families of the ways that a kind can meet: what stands before the colon in their names."""
    return list(dict.fromkeys(way.name.partition(":")[0] for way in ways_of(kind)))


def try_family(kind: str, family: str) -> list[str]:
    """Try all ways of a family; what does not hold."""
    names = (way.name for way in ways_of(kind) if way.name.partition(":")[0] == family)
    return [what for name in names for what in try_kind(kind, name).wrong]
