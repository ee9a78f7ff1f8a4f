"""`bulk plan --live` and `bulk verify --live` while the platform is wrong: a few ways here, all under `make soak`."""

import pytest

from tests.hostile.commands.looks import Looked, look
from tests.hostile.commands.scenes import PLAIN
from tests.hostile.commands.telling import families, try_family, try_kind
from tests.hostile.judging import ROWS, Cell

KINDS = ("plan", "verify", "verify-meddled")
FEW = (
    "stale: 5.0 s",
    "foreign: first read",
    "foreign: every read",
    "empty: first read []",
    "empty: every read ok",
    "absent: 404 page to a read",
    "absent: 404 message to a read",
    "gateway: 200 nothing to a read",
    "truncated: every read, half a body",
    "pages: an entry is missed",
    "front end: its own page for what is not there",
    "links: always one more",
)


def test_the_judge_sees_a_false_accusation_and_a_false_praise() -> None:
    """What moved where nothing did, what is called equal where it is not, and a look that changes something."""
    row = next(row for row in ROWS if row.name == "contents.put")
    cell = Cell.of(row, PLAIN, 0)
    right = Looked("verify", PLAIN, [cell], equal=1)
    assert list(right.wrong(right)) == []
    for wrong in (
        Looked("verify", PLAIN, [cell], seen={row.name: ["moved"]}),
        Looked("verify", PLAIN, [cell], equal=2),
        Looked("verify", PLAIN, [cell], equal=1, effects=1),
        Looked("verify", PLAIN, [cell], trouble="no end after 7200 s"),
    ):
        assert len(list(wrong.wrong(right))) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_where_nothing_is_wrong_everything_is_seen(kind: str) -> None:
    """A plan sees what is to be done, a verification that all is as left, or what somebody else has changed."""
    looked = look(kind, PLAIN)
    assert looked.trouble == ""
    assert looked.effects == 0
    if kind == "verify":
        assert (sum(map(len, looked.seen.values())), looked.equal > 5 * looked.unseen) == (0, True)
    else:
        assert len(looked.seen) > 9


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FEW)
def test_no_wrong_answer_makes_a_look_lie(name: str, kind: str) -> None:
    """A look says what it says where nothing is wrong, or that nothing can be seen."""
    assert try_kind(kind, name, ("contents", "organization", "webhook", "team")[FEW.index(name) % 4]).wrong == []


def test_one_untrue_answer_accuses_nobody() -> None:
    """A 404 of what is there is no change of somebody else's: a second look shows it. Nor is a list that can't be used
    a ruleset with another target."""
    assert try_kind("verify", "absent: 404 message to a read", "webhook.update").wrong == []
    assert try_kind("verify", "pages: the last entry twice", "organization-ruleset.create push").wrong == []


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", families("plan"))
def test_no_wrong_answer_of_any_kind_makes_a_look_lie(family: str, kind: str) -> None:
    """The same in all ways, with all operations."""
    assert try_family(kind, family) == []
