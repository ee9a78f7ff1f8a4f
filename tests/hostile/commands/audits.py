"""Three nights of an audit: one of them meets a way to be wrong; what somebody changes before the second one stays so.

The judge is the same audit where nothing is wrong. Answers are kept from night to night, with their validators.
"""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from bulk.audit.comparison.drift import BACK, LOST, compare_night
from bulk.engine import commands
from bulk.ledger.view import LedgerView
from tests.hostile.commands.watches import WATCHES, Watch
from tests.hostile.http.messages import JSON, Answer, Ask
from tests.hostile.judging import Cell, why_not
from tests.hostile.virtual import AT_MOST_S, ended, in_virtual_time, lines_of, service_of, wall, write_manifest
from tests.hostile.wrong import Course, Guest, Script, Way

NIGHT_S = 86_400.0
NIGHTS = 3
WRONG_NIGHT = {"audit": 1, "audit-first": 0}
"""The place of the night that meets the way, by kind."""
Change = tuple[str, str, Any]
"""Its kind, field and new value."""
NOT_MODIFIED = Answer(304, b"", ())


def _everything_as_before(guest: Guest, ask: Ask, now: float, befallen: int) -> Course:
    """304 to whoever asks, whether he has anything or not, and with another version than he has."""
    return Course(replace(NOT_MODIFIED, headers=(("etag", '"of-another-body"'),)))


def _never_asked(guest: Guest, ask: Ask, now: float, befallen: int) -> Course:
    """304 to whoever has not asked for that."""
    answer = guest.platform.answer(ask, now)
    return Course(answer if "if-none-match" in ask.headers else replace(answer, status=304, body=b""))


def _way(name: str, script: Script, times: int | None) -> Way:
    return Way(name, "scripted", times, on="read", script=script)


def _second(make: Callable[[Answer, Answer], Answer]) -> Script:
    """Of every second answer, such as a list's second page, something else is made; it takes the one before it, too."""

    def script(guest: Guest, ask: Ask, now: float, befallen: int) -> Course:
        answer = guest.platform.answer(ask, now)
        if befallen % 2:
            guest.notes["first"] = answer
            return Course(answer)
        return Course(make(guest.notes["first"], answer))

    return script


def _without_links(answer: Answer) -> Answer:
    return replace(answer, headers=tuple(each for each in answer.headers if each[0] != "link"))


SECONDS: dict[str, Callable[[Answer, Answer], Answer]] = {
    "an empty list": lambda first, second: _without_links(replace(second, status=200, body=b"[]")),
    "the first page": lambda first, second: first,
    "404": lambda first, second: Answer(404, b'{"message":"Not Found"}', (JSON,)),
}
"""What may come in the place of a second page."""
VALIDATORS = (
    *(
        _way(f"second answer: {name}{', once' if times else ''}", _second(make), times)
        for name, make in SECONDS.items()
        for times in (2, None)
    ),
    _way("validators: 304 of another version, once", _everything_as_before, 1),
    _way("validators: 304 of another version, always", _everything_as_before, None),
    _way("validators: 304 without a condition, once", _never_asked, 1),
    _way("validators: 304 without a condition, always", _never_asked, None),
)
"""Ways in which conditions and later pages go wrong."""
IN_OTHER_WORDS = (
    "otherwise: new fields",
    "otherwise: moments with fractions",
    "otherwise: Base64 in lines with CRLF",
)
"""They show the same thing otherwise under the same validator, which is believed as long as it stays."""


@dataclass(slots=True)
class Night:
    """What one night said, by watch.

    Attributes:
        lines: of its results. changes: against the nights before. took_s: virtual seconds.
    """

    lines: Mapping[str, dict[str, Any]]
    changes: Mapping[str, list[Change]]
    took_s: float


@dataclass(slots=True)
class Audit:
    """What became of all watches in a way.

    Attributes:
        cells: by the names of the watches. wrong_night: the place of the night that met the way.
    """

    way: Way
    cells: Mapping[str, Cell]
    wrong_night: int
    nights: list[Night] = field(default_factory=list)
    trouble: str = ""

    def wrong(self, plain: "Audit") -> Iterator[str]:
        """All that does not hold; `plain`: the same audit where nothing was wrong."""
        kind = next(name for name, place in WRONG_NIGHT.items() if place == self.wrong_night)
        again = f'python -m tests.hostile {kind} "{self.way.name}"'
        if self.trouble:
            yield f"{self.trouble} | {again}"
        if self.trouble or not self.cells:
            return
        assert len(self.nights) == len(plain.nights) == NIGHTS, "each night has ended"
        for name in self.cells:
            for number, (night, right) in enumerate(zip(self.nights, plain.nights, strict=True)):
                for what in self._of_night(name, night, right, is_right=number != self.wrong_night):
                    yield f"{name} | night {number + 1}: {what} | {again}"
            told, wanted = Counter(_kinds(self.nights, name)), self._wanted(plain, name)
            if {kind: count for kind, count in told.items() if kind not in (LOST, BACK)} != wanted:
                yield f"{name} | {dict(told)} in all, not {wanted} | {again}"
            if told[LOST] - told[BACK] != self._out_of_sight(plain, name):
                yield f"{name} | {dict(told)} in all, which is not how it came and went | {again}"

    def _wanted(self, plain: "Audit", name: str) -> dict[str, int]:
        """What has to be told in all of what can be seen; before the first read of a thing no change of it is known."""
        if self._is_never(name):
            return {}
        return dict(Counter(kind for kind in _kinds(plain.nights, name) if kind not in (LOST, BACK)))

    def _out_of_sight(self, plain: "Audit", name: str) -> int:
        """How often it has to be told that sight was lost of it, more than that it is in sight."""
        if self._is_never(name):
            return -any(night.lines[name]["outcome"] != "failed" for night in self.nights)
        kinds = Counter(_kinds(plain.nights, name))
        return kinds[LOST] - kinds[BACK]

    def _is_never(self, name: str) -> bool:
        return bool(self.nights[0].lines[name]["outcome"] == "failed")

    def _of_night(self, name: str, night: Night, right: Night, *, is_right: bool) -> Iterator[str]:
        line, should = night.lines[name], right.lines[name]
        if is_right and line["outcome"] != should["outcome"] and "failed" in (line["outcome"], should["outcome"]):
            yield f"{line['outcome']}, not {should['outcome']}: {line['error']}"
        if line["outcome"] != "failed" and _said(line) != _said(should):
            yield f"{_said(line)}, not {_said(should)}"


def _said(line: Mapping[str, Any]) -> Any:
    return ("missing" if line.get("missing") else line["result"]) if line["outcome"] != "failed" else "failed"


def _kinds(nights: Sequence[Night], name: str) -> Iterator[str]:
    for night in nights:
        yield from (kind for kind, _, _ in night.changes.get(name, ()))


def audit(way: Way, watches: Sequence[Watch] = WATCHES, wrong_night: int = 1) -> Audit:
    """Read three nights; `wrong_night`: the place of the one that meets the way."""
    numbers = {watch.name: number for number, watch in enumerate(WATCHES)}
    chosen = {watch.name: watch for watch in watches if not why_not(watch.row, way)}
    cells = {name: Cell.of(watch.row, way, numbers[name]) for name, watch in chosen.items()}
    found = Audit(way, cells, wrong_night)
    if cells:
        with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
            in_virtual_time(partial(_play, found, chosen, Path(folder)))
    return found


async def _play(found: Audit, watches: Mapping[str, Watch], folder: Path) -> None:
    guests = {cell.name: cell.guest for cell in found.cells.values()}
    names = {cell.name: watch for watch, cell in found.cells.items()}
    jobs = {
        cell.name: {**cell.job(), **({"missing": "ok"} if watches[watch].is_missing_ok else {})}
        for watch, cell in found.cells.items()
    }
    manifest, environ = write_manifest(folder, jobs)
    before: Path | None = None
    for number in range(NIGHTS):
        for watch, cell in found.cells.items():
            cell.guest.begin(found.way if number == found.wrong_night else Way("plain"))
            if number == 1:
                watches[watch].change(cell.guest.platform, wall() - NIGHT_S / 2)
        run_dir, began = folder / f"night-{number}", wall()
        command = partial(commands.run_manifest, manifest, run_dir=run_dir)
        _, found.trouble = await ended(command, service_of(guests), environ, AT_MOST_S, folder / "cache")
        if found.trouble:
            return
        after = folder / f"baseline-{number}.db"
        _, changes = compare_night(LedgerView(run_dir), str(number), before, after)
        before = after
        told: dict[str, list[Change]] = {}
        for each in changes:
            told.setdefault(names[each.job], []).append((each.kind, each.field, each.new))
        lines = {names[job]: each[0] for job, each in lines_of(run_dir / "results.jsonl").items()}
        found.nights.append(Night(lines, told, wall() - began))
        await anyio.sleep(NIGHT_S)
