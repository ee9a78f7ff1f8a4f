"""`bulk undo` while the platform is wrong: a few ways here, with some operations; all of them under `make soak`."""

import pytest

from bulk.operation import find
from bulk.undo import Undoable
from tests.hostile.commands.scenes import LIKE, NEVER, PLAIN, UNDOABLE, Scene, UndoCell, play
from tests.hostile.commands.telling import families, scene_of, try_family
from tests.hostile.http.writing import changed_by_another
from tests.hostile.judging import ROWS, Cell
from tests.hostile.rows import Row
from tests.hostile.store.effects import Effect
from tests.hostile.ways import named

KINDS = ("undo", "undone", "undo-both", "undo-meddled", "undo-again")
FEW = (
    "stale: 5.0 s, answer lost",
    "foreign: first read",
    "empty: write, not applied, {}",
    "late: 5.0 s, answer lost",
    "lost: after, close",
    "lost: before, reset",
    "gateway: 200 ok",
    "truncated: first read, half a body",
    "meddled: after, answer lost",
    "refused: 403 page, after",
    "lied: 404, after",
    "lied: 409, after",
    "denied: 404 after, then 404",
    "half wrong: every second answer is a 404",
    "front end: its own page for each thing",
    "for a while: nothing is done, and all is answered 200",
    "odd: 418 to a read",
)
LATER = 1_790_000_000.0
FILE = ("file", 601, "trunk", "CODEOWNERS")


def _row(name: str) -> Row:
    return next(row for row in UNDOABLE if row.name == name)


def _some(name: str, kind: str) -> list[Row]:
    """A third of the operations: another one for each way and each kind."""
    return list(UNDOABLE[(FEW.index(name) + KINDS.index(kind)) % 3 :: 3])


def test_every_operation_that_can_be_undone_has_a_part() -> None:
    """No operation that `bulk undo` takes back is left out, but for one of which everything is listed."""
    wanted = {row.name for row in ROWS if isinstance(find(row.operation), Undoable)}
    assert wanted == {*LIKE, *NEVER}


def _undone_file(value: bytes | None, by: str = "us") -> UndoCell:
    """A file that the run has changed, and that is this by now."""
    cell = UndoCell(Scene(), Cell.of(_row("contents.put"), PLAIN, 0), undone_at=LATER + 10)
    platform = cell.guest.platform
    for at, data, whose in ((LATER, b"ours", "us"), (LATER + 20, value, by)):
        platform.state.set(FILE, data, at)
        platform.effects.add(Effect(at, "file", FILE, data, whose))
    return cell


@pytest.mark.parametrize(
    ("value", "outcome", "is_broken"),
    [
        (b"* @boss\n", "succeeded", False),
        (b"another", "succeeded", True),
        (None, "unchanged", True),
        (b"* @boss\n", "failed", True),
        (b"* @boss\n", "skipped", True),
        (b"* @boss\n", "unknown", True),  # nothing went wrong
    ],
)
def test_the_judge_sees_what_was_not_taken_back(value: bytes | None, outcome: str, is_broken: bool) -> None:
    """Success without the state from before, and failure with a change, are found out."""
    cell = _undone_file(value)
    line = {"outcome": outcome, "item": {}, "result": {}, "error": {"code": "conflict"}}
    cell.classify([{"outcome": "succeeded"}], [line], LATER + 100)
    assert bool(cell.broken) is is_broken, cell.broken


def test_the_judge_sees_what_was_overwritten() -> None:
    """What somebody else had made of it before the undo began stays, whatever the undo says."""
    cell = _undone_file(b"* @boss\n")
    changed_by_another(cell.guest.platform, LATER + 5, FILE, b"theirs")
    cell.classify([], [{"outcome": "unknown", "item": {}, "result": {}, "error": None}], LATER + 100)
    assert cell.broken == [f"overwritten, what somebody else had changed: {FILE[:1] + FILE[2:]}"]


@pytest.mark.parametrize("is_meddled", [False, True])
def test_where_nothing_is_wrong_everything_comes_back(is_meddled: bool) -> None:
    """All that a run has changed is as before, but for what somebody else has changed since, which stays."""
    played = play(Scene(is_meddled=is_meddled))
    assert list(played.wrong()) == []
    assert played.listed == 0
    assert set(played.outcomes()) == ({"succeeded", "failed"} if is_meddled else {"succeeded"})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FEW)
def test_no_wrong_answer_makes_an_undo_lie(name: str, kind: str) -> None:
    """Success means that it is as before, failure that nothing was changed; nothing is done twice, every undo ends."""
    assert list(play(scene_of(kind, named(name)), _some(name, kind)).wrong()) == []


@pytest.mark.parametrize("name", ["truncated: first read, half a body", "absent: 404 message to a read"])
def test_one_wrong_answer_loses_no_bytes(name: str) -> None:
    """What a file was before is asked for again where other bytes came, or none."""
    files = [row for row in UNDOABLE if row.name in ("contents.put", "contents.delete")]
    played = play(scene_of("undo", named(name)), files)
    assert (played.listed, played.broken) == (0, [])


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", families("undo"))
def test_no_wrong_answer_of_any_kind_makes_an_undo_lie(family: str, kind: str) -> None:
    """The same in all ways, with all operations."""
    assert try_family(kind, family) == []
