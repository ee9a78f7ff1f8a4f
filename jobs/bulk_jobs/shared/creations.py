"""How a creation whose answer was lost is settled: by the things that are new in a list.

A thing is new if the read before the request did not show its id, and this run has made no thing at its place since. If
exactly one new thing is as asked for, in the platform's normal form, it is the one that was created. A new thing that
is not as asked for may still be ours, shown in a form that was not foreseen: then the outcome is undecided, and nothing
is sent again. So it is where the list has nothing any more of what was there before: a gateway answers any request with
an empty list. Source: operations.md (policies U and K).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from bulk import urls
from bulk.capabilities import CreatesNames
from bulk.model import Lost, NotApplied, Outcome, Undecided, succeeded
from bulk.operation import ItemT, Steps
from bulk_jobs.shared import proofs

Thing = Mapping[str, Any]


class RefusesItsLike(CreatesNames[ItemT]):
    """A creation that fails if an equal thing exists already, unless `if_exists` of its item lets that one count."""

    def steps_to_look_back(self, item: ItemT) -> Steps:
        return self.steps(msgspec.structs.replace(item, if_exists="unchanged"))


def ids(things: Sequence[Thing]) -> list[Any]:
    """Return the before-image of a creation: the ids of the things that exist."""
    return [thing["id"] for thing in things]


def new(before: Sequence[Any]) -> proofs.About:
    """Return a check that the thing of an answer is none of those whose ids the before-image has."""
    return partial(_flaw_of_old, before)


def _flaw_of_old(before: Sequence[Any], thing: Thing) -> str:
    return "it was there before" if str(thing["id"]).casefold() in _folded(before) else ""


def _folded(ids: Sequence[Any]) -> set[str]:
    return {str(number).casefold() for number in ids}


def settled(
    kind: str,
    collection: str,
    things: Sequence[Thing],
    lost: Lost,
    differences: Callable[[Thing], list[str]],
    shown_otherwise: Callable[[Thing], list[str]],
    shown: Callable[[Thing], Any],
) -> Outcome | NotApplied | Undecided:
    """Return how a creation ended whose answer was lost.

    Args:
        kind: the kind of thing that is created, with its article, as `a webhook`.
        collection: the path below which such things lie, percent-encoded.
        things: the things that exist now.
        differences: returns the fields of a thing that are not as asked for, in their normal forms; none: the thing
            may be ours.
        shown_otherwise: returns the fields of an equal thing that are written otherwise than they were asked for.
        shown: returns the result for a thing.
    """
    before = lost.before
    if not isinstance(before, list):
        return Undecided(f"whether {kind} was there before is not known")
    known = _folded(before)
    new = [
        thing
        for thing in things
        if str(thing["id"]).casefold() not in known and urls.place(collection, thing["id"]) not in lost.made
    ]
    equal = [thing for thing in new if not differences(thing)]
    match equal:
        case [one]:
            otherwise = " and ".join(shown_otherwise(one))
            form = f"; the platform writes its {otherwise} in a form of its own" if otherwise else ""
            return succeeded(shown(one), note=f"the answer was lost; {kind} that is as asked for is new{form}")
        case [_, *_]:
            return _undecided("new and as asked for, and which of them is ours can't be told", equal, shown)
    # a gateway that rounds long numbers gives a new thing the number of an old one
    numbers = Counter(str(thing["id"]).casefold() for thing in things)
    alike = [thing for thing in things if numbers[str(thing["id"]).casefold()] > 1 and not differences(thing)]
    if not new and alike:
        return _undecided("as asked for, under a number that several have", alike, shown)
    if known and known.isdisjoint(str(thing["id"]).casefold() for thing in things):
        return Undecided(f"of what was there before {kind} was to be created, nothing is listed any more")
    if not new:
        return NotApplied(f"{kind} that is new is not there")
    fields = ", ".join(sorted({field for thing in new for field in differences(thing)}))
    ours = "it" if len(new) == 1 else "one of them"
    return _undecided(f"new and not as asked for ({fields}); {ours} may be ours, shown otherwise", new, shown)


def _undecided(why: str, things: Sequence[Thing], shown: Callable[[Thing], Any]) -> Undecided:
    *others, last = (str(thing["id"]) for thing in things)
    numbers = f"{', '.join(others)} and {last} are" if others else f"{last} is"
    return Undecided(f"{numbers} {why}", found=[shown(thing) for thing in things])
