"""What a run learns of a platform whose every 404 is a front end's, and how long that takes: in virtual time."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.http.allowance import Allowance
from tests.hostile.http.messages import JSON, Answer, Ask
from tests.hostile.http.sequences import A_PAGE, Make, bare, for_ever, lost, never_came
from tests.hostile.judging import LIMIT, ROWS, WINDOW_S, Cell
from tests.hostile.platform import Limits
from tests.hostile.store.state import State
from tests.hostile.virtual import Told, run_jobs
from tests.hostile.wrong import Course, Guest, Way
from tests.virtual_time import START

MANY = 40
SOON_S = 8.0
"""Each absent item alone would take 13 s and more (virtual seconds)."""
AWAY_S = 8.0
"""How long a front end has lost the way to the platform (seconds)."""
EMPTY = Answer(404, b"{}", (JSON,))
_OF_NOBODY = re.compile(r"/(?:repos|orgs)/[0-9a-f]{32}/.*")


class Off(Allowance):
    """Limits that are turned off: what is told of them is not there either."""

    def __init__(self, absent: Answer) -> None:
        super().__init__(1, WINDOW_S)
        self.absent = absent

    def charge(self, now: float, category: str, token: str) -> bool:
        """Nobody counts."""
        return True

    def headers(self, now: float, category: str) -> dict[str, str]:
        """Nothing is told."""
        return {}

    def body(self, now: float) -> Answer:
        """What `GET /rate_limit` is answered."""
        return self.absent


def first_write(make: Make, rest: Make) -> Callable[[Guest, Ask, float, int], Course]:
    """The first write meets something else."""

    def script(guest: Guest, ask: Ask, now: float, number: int) -> Course:
        if ask.is_read or "written" in guest.notes:
            return rest(guest, ask, now)
        guest.notes["written"] = now
        return make(guest, ask, now)

    return script


def away(seconds: float, answer: Answer, rest: Make) -> Make:
    """All is answered so for a while, from the first request on."""

    def make(guest: Guest, ask: Ask, now: float) -> Course:
        began = guest.notes.setdefault("began", now)
        return Course(answer) if now < began + seconds else rest(guest, ask, now)

    return make


def of_nobody(course: Course, rest: Make) -> Make:
    """What nobody has is answered otherwise."""
    return lambda guest, ask, now: course if _OF_NOBODY.fullmatch(ask.path) else rest(guest, ask, now)


def _with_files(state: State, at: float) -> None:
    for number in range(MANY):
        state.set(("file", 601, "trunk", f"there-{number}"), b"there", at)


class Tried:
    """One operation on one such platform.

    Args:
        script: of its requests. paths: of the files that are asked for, in place of the row's items.

    Attributes:
        asked: how often `/rate_limit` was asked.
    """

    def __init__(
        self,
        path: Path,
        name: str,
        script: Callable[[Guest, Ask, float, int], Course],
        limits: Limits,
        paths: tuple[str, ...] = (),
    ) -> None:
        row = next(row for row in ROWS if row.name == name)
        if paths:
            items = [{**row.items[0], "path": each} for each in paths]
            row = replace(row, items=items, prepare=_with_files)
        self.cell = Cell.of(row, Way("bare", "scripted", None, "both", script=script), 0)
        self.cell.guest.platform.limits = limits
        self.told: Told = run_jobs(path, {self.cell.name: self.cell.job()}, {self.cell.name: self.cell.guest})
        self.asked = sum(ask.path == "/rate_limit" for _, ask in self.cell.guest.heard)

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The results."""
        return self.told.lines.get(self.cell.name, [])

    def ended(self) -> Counter[str]:
        """How many items ended how."""
        return Counter((line["error"] or {}).get("code", line["outcome"]) for line in self.lines)


@pytest.mark.parametrize("count", [1, MANY])
@pytest.mark.parametrize("absent", [A_PAGE, EMPTY], ids=["page", "{}"])
def test_where_limits_are_off_and_no_404_has_a_message_what_is_absent_takes_seconds(
    tmp_path: Path, absent: Answer, count: int
) -> None:
    """All are absent, so that nothing else is served; `/rate_limit` is not asked at each of these answers."""
    paths = tuple(f"missing-{number}" for number in range(count))
    tried = Tried(tmp_path, "contents.get", for_ever(bare(absent)), Off(absent), paths)
    assert tried.ended() == Counter(not_found=count)
    assert tried.told.took_s < SOON_S
    assert tried.asked <= 3


@pytest.mark.parametrize("make", [lost, never_came])
def test_there_a_creation_whose_answer_was_lost_is_settled_in_seconds(tmp_path: Path, make: Make) -> None:
    """Whether it is there now is not waited for longer than elsewhere."""
    tried = Tried(tmp_path, "organization.create", first_write(make, bare(EMPTY)), Off(EMPTY))
    tried.cell.classify(tried.lines, START + 600.0)
    assert (tried.cell.broken, tried.ended()) == ([], Counter(succeeded=1))
    assert tried.told.took_s < SOON_S
    assert tried.asked <= 3


@pytest.mark.parametrize("limits", [Allowance(LIMIT, WINDOW_S), Off(EMPTY)], ids=["limits", "no limits"])
def test_a_front_end_that_has_lost_its_way_for_a_while_makes_nothing_absent(tmp_path: Path, limits: Limits) -> None:
    """`/rate_limit` alone is answered all the while: it may be another server's."""
    paths = tuple(f"there-{number}" for number in range(3))
    tried = Tried(tmp_path, "contents.get", for_ever(away(AWAY_S, A_PAGE, bare(A_PAGE))), limits, paths)
    assert tried.ended() == Counter(succeeded=3)


def test_a_question_that_hangs_holds_up_no_item_for_long(tmp_path: Path) -> None:
    """What nobody has is never answered: the first item waits ten seconds longer, and no other one does."""
    paths = tuple(f"missing-{number}" for number in range(4))
    hangs = of_nobody(Course(None, "mute"), bare(A_PAGE))
    tried = Tried(tmp_path, "contents.get", for_ever(hangs), Allowance(LIMIT, WINDOW_S), paths)
    assert tried.ended() == Counter(not_found=4)
    assert tried.told.took_s < 40.0


def test_a_401_to_such_a_question_ends_no_run(tmp_path: Path) -> None:
    """A front end lets nobody ask for what it does not know; what is there is served all the same."""
    paths = ("there-0", "missing-0", *(f"there-{number}" for number in range(1, 4)))
    refused = Course(Answer(401, b'{"message":"Requires authentication"}', (JSON,)))
    limits = Allowance(LIMIT, WINDOW_S)
    tried = Tried(tmp_path, "contents.get", for_ever(of_nobody(refused, bare(A_PAGE))), limits, paths)
    assert tried.ended() == Counter(succeeded=4, not_found=1)
