"""Nights of an audit while the platform is wrong: a few ways here, all of them under `make soak`."""

from copy import deepcopy
from dataclasses import replace

import pytest

from tests.hostile.commands.audits import NIGHTS, VALIDATORS, WRONG_NIGHT, audit
from tests.hostile.commands.scenes import PLAIN
from tests.hostile.commands.telling import families, try_family, try_kind
from tests.hostile.commands.watches import WATCHES

FEW = {
    "stale: 5.0 s": "team",
    "foreign: first read": "contents",
    "empty: first read []": "webhook",
    "gateway: 200 nothing to a read": "readme",
    "truncated: every read, half a body": "contents",
    "absent: 404 page to a read": "contents",
    "absent: 404 message to a read": "webhook",
    "pages: an entry is missed": "team",
    "pages: the last entry twice": "webhook",
    "half wrong: every second answer is a 404": "readme",
    "half wrong: the first and every second one is a 404": "readme",
    "front end: its own page for what is not there": "webhook",
    **{way.name: "webhook.list" if way.name.startswith("second") else "contents" for way in VALIDATORS},
}
"""Ways, and the beginning of the names of the watches that are tried in each."""


def test_where_nothing_is_wrong_a_change_is_told_once() -> None:
    """What was changed is told of in its night, what was not never; what is kept is confirmed and not read again."""
    found = audit(PLAIN)
    assert (found.trouble, len(found.nights)) == ("", NIGHTS)
    _, second, third = found.nights
    assert {name for name in found.cells if second.changes.get(name)} == {
        watch.name for watch in WATCHES if watch.is_changed
    }
    assert set(third.changes) == {"team-organization.get, gone"}  # it is out of sight, night after night
    conditions = sum("if-none-match" in ask.headers for cell in found.cells.values() for _, ask in cell.guest.heard)
    assert conditions > len(WATCHES)


def test_the_judge_sees_a_night_that_lies() -> None:
    """A change that is none, and one that is not told, are found out."""
    plain, name = audit(PLAIN, WATCHES[:2]), WATCHES[1].name
    assert list(plain.wrong(plain)) == []
    lying = replace(plain, nights=deepcopy(plain.nights))
    lying.nights[1].lines[name]["result"]["sha"] = "0" * 40
    assert len(list(lying.wrong(plain))) == 1
    lying = replace(plain, nights=deepcopy(plain.nights))
    lying.nights[1].changes[name].clear()
    assert len(list(lying.wrong(plain))) == 1


@pytest.mark.parametrize("kind", WRONG_NIGHT)
@pytest.mark.parametrize("name", FEW)
def test_no_wrong_answer_makes_an_audit_lie(name: str, kind: str) -> None:
    """Nothing is called changed, gone or as before on an untrue answer, and the next night heals what was not read."""
    assert try_kind(kind, name, FEW[name]).wrong == []


@pytest.mark.parametrize("kind", WRONG_NIGHT)
def test_a_link_that_was_kept_misleads_for_one_night(kind: str) -> None:
    """What comes in place of a page that was kept and leads nowhere is kept for it (failures.md row 13)."""
    tried = try_kind(kind, "links: to the first page", "webhook.list")
    assert tried.wrong == []
    assert tried.outcomes["failed"] > 0


def test_a_page_that_is_empty_once_is_no_end_of_a_list() -> None:
    """A link has led to it: it is read once more, and a night later as well where it was kept."""
    assert try_kind("audit", "second answer: an empty list, once", "webhook.list many, unchanged").wrong == []


@pytest.mark.soak
@pytest.mark.parametrize("kind", WRONG_NIGHT)
@pytest.mark.parametrize("family", families("audit"))
def test_no_wrong_answer_of_any_kind_makes_an_audit_lie(family: str, kind: str) -> None:
    """The same in all ways, with everything that is watched."""
    assert try_family(kind, family) == []
