"""A cell of the table: where a way makes no sense for an operation, and what the list of effects says of a run."""

import sys
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bulk.operation import find
from bulk.undo import Undoable
from tests.hostile.http.allowance import Allowance
from tests.hostile.http.limits import Answers, Headers
from tests.hostile.http.limits import Limits as Narrow
from tests.hostile.http.reading import READ_ROWS
from tests.hostile.http.writing import SETTING_ROWS
from tests.hostile.http.writing_hooks import HOOK_ROWS
from tests.hostile.platform import Limits, Platform
from tests.hostile.rows import Look, Row
from tests.hostile.store.alias import Alias
from tests.hostile.store.effects import Effect
from tests.hostile.store.seeds import BEGAN, seeded
from tests.hostile.wrong import Guest, Way

ROWS: tuple[Row, ...] = (*READ_ROWS, *SETTING_ROWS, *HOOK_ROWS)
DONE = ("succeeded", "unchanged")
MOST_LOOKS = 3
"""Requests that are refused until a process knows that one witness of a window errs which another process has spent."""
LIMIT, WINDOW_S = 200, 600
"""Of each platform: requests in a window, and its length (seconds)."""


def why_not(row: Row, way: Way) -> str:
    """Why that way can't befall that operation, or nobody can know of it; "" where it is tried."""
    parts = way.parts or (way,)
    return next(filter(None, (_why_not_alone(row, part) for part in parts)), "") or _why_not_paired(row, way.parts)


def _why_not_paired(row: Row, parts: Sequence[Way]) -> str:
    is_refused = any(part.is_denied or part.name.startswith(("desync:", "refused:")) for part in parts)
    if is_refused and any(part.lag_s or part.kind in ("stale", "late") for part in parts):
        return "what was refused is done or shown later, and nobody can know that"
    is_unreadable = any(part.on == "read" and part.times is None for part in parts)
    if is_refused and is_unreadable and any("sha" in item for item in row.items):
        return "nobody looked before what was refused, and nobody can look behind it"
    is_untold = any(part.on == "write" and part.kind != "plain" for part in parts)
    is_emptied = any(part.on == "read" and part.times is None and part.body == b"[]" for part in parts)
    if row.is_only_listed and is_untold and is_emptied:
        return "a list that is empty from first to last shows nothing of what was created"
    is_elsewhere = is_unreadable and any(part.kind == "foreign" for part in parts)
    if is_refused and is_elsewhere and row.is_empty_elsewhere:
        return "an empty list of another one does not say whose it is"
    return ""


def _why_not_alone(row: Row, way: Way) -> str:
    if way.limits is not None and row.operation == "rate-limit.get":
        return "it asks a witness that errs"
    if way.kind == "plain" or (way.kind == "stale" and not row.writes):
        return "" if way.kind == "plain" or row.writes else "nothing changes while it is read"
    if way.on == "write" and not row.writes:
        return "it writes nothing"
    if way.kind == "meddled" and not row.meddles:
        return "nobody else's change of it could be told from ours"
    if way.is_for_writes and not row.writes:
        return "what is read is of no one moment"
    is_hidden = way.is_lasting and row.is_unseen
    if (way.is_denied and (row.is_blind or is_hidden)) or (way.shows_none and row.is_blind):
        return "nobody can know that it was done all the same"
    if way.kind == "foreign" and not row.names_itself:
        return "nothing in the answer says whose it is"
    if way.kind in ("foreign", "body", "truncated") and way.on == "write" and row.proofs and not way.end:
        return "its answer has no body"
    is_gateways = way.kind == "status" and not way.has_effect and (way.status or 0) < 300
    if is_gateways and way.on == "write" and way.status in row.proofs:
        return "the status is the proof"
    if is_gateways and row.is_told and way.status == 202 and b"message" in (way.body or b""):
        return "a message is all that is shown"
    if way.on == "read" and not row.writes and row.has_any_body and way.kind in ("body", "truncated") and not way.end:
        return "any bytes are right"
    return _why_not_read(row, way)


def _why_not_read(row: Row, way: Way) -> str:
    body = way.body if way.kind in ("body", "status") else None
    if way.on != "read" or body is None or (way.status or 200) >= 300:
        return ""
    if row.has_any_body and body and way.status in (None, 200):
        return "any bytes are right"
    return "an empty list is a right answer" if row.is_list and body == b"[]" and way.status in (None, 200) else ""


@dataclass(slots=True)
class Cell:
    """One operation in one way, tried.

    Attributes:
        name: of its job. guest: its platform. outcomes: of its items, once they were run.
        broken: what does not hold, in words.
        kills: how often the process was killed and begun again (count).
    """

    row: Row
    way: Way
    name: str
    guest: Guest
    outcomes: Sequence[str] = ()
    broken: Sequence[str] = ()
    kills: int = 0

    @classmethod
    def of(cls, row: Row, way: Way, number: int, kills: int = 0) -> "Cell":
        """One that has not been run yet."""
        alike = 0 if way.has_equal_ids else number * 1_000
        state = seeded(7_000_000_025 + sum(each.operation == row.operation for each in ROWS[:number]) * 500 + alike)
        row.prepare(state, BEGAN + 1)
        limits: Limits = Allowance(LIMIT, WINDOW_S) if way.limits is None else Narrow(3, 10, *way.limits)
        guest = Guest(
            Platform(state, limits),
            way,
            row.meddle,
            asks_limits=row.operation == "rate-limit.get",
            alias=Alias(number),
        )
        return cls(row, way, f"c{number}", guest, kills=kills)

    def job(self) -> dict[str, Any]:
        """What stands in the manifest."""
        items = [self.guest.alias.item(item) for item in self.row.items]
        return {"operation": self.row.operation, "items": items}

    def classify(self, lines: Sequence[Mapping[str, Any]], at: float, undone: Container[int] | None = None) -> None:
        """Compare what the engine said with what was done until `at` (seconds since 1970).

        Args:
            undone: the items that `bulk undo` takes back or lists; None: it was not asked.
        """
        self.outcomes = [line["outcome"] for line in lines]
        self.broken = list(self._broken(lines, at))
        if undone is not None and isinstance(find(self.row.operation), Undoable):
            self.broken += (
                f"{line['outcome']}, and `bulk undo` says nothing of it"
                for line in lines
                if self._ours(line["index"]) and line["index"] not in undone
            )

    def _broken(self, lines: Sequence[Mapping[str, Any]], at: float) -> Iterator[str]:
        if len(lines) != len(self.row.items):
            yield f"{len(self.row.items)} items, {len(lines)} outcomes"
        for line in lines:
            ours = self._ours(line["index"])
            yield from doubled(ours)
            if self._ends_well and line["outcome"] not in DONE:
                yield f"{line['outcome']}, though nothing went wrong: {line['error']}"
            if line["outcome"] in DONE and not self._is_so(line, at):
                yield f"{line['outcome']}, but it is not so"
            if line["outcome"] in ("failed", "skipped") and ours:
                yield f"{line['outcome']} ({line['error']['code']}), but {ours[0].kind} was done"
            is_told = (self.row.is_unseen or self.row.is_blind) and "note" in (line["result"] or {})
            if line["outcome"] == "unchanged" and ours and not is_told:
                yield f"unchanged, but {ours[0].kind} was done: {line['result']}"
        if beyond := self._beyond():
            yield f"{beyond} requests beyond the limit"

    @property
    def _ends_well(self) -> bool:
        """Whether every item has to succeed."""
        # who has to look first meets the limit of three again and again where nothing tells when it is over
        is_narrow = self.way.limits is not None and not self._is_told
        is_plain = self.way.kind == "plain" and "spaces joined" not in self.way.habits
        return (self.way.is_harmless or is_plain) and not (is_narrow and self.kills > 0)

    @property
    def _is_told(self) -> bool:
        """Whether one witness of a narrow budget is right."""
        headers, answers, *_ = self.way.limits or (None, None)
        return headers is Headers.RIGHT or answers is Answers.RIGHT

    def _beyond(self) -> int:
        """Requests that left although their window was spent, and a witness said so."""
        limits, told = self.guest.platform.limits, self.way.limits
        if isinstance(limits, Allowance):
            return limits.refused
        assert isinstance(limits, Narrow), "there are two kinds"
        assert told is not None, "a narrow budget is a way's own"
        refused = sum(refused for _, _, refused in limits.spent()) if self._is_told else 0
        # where a window is said to end early, one request goes and sees whether it has; and who is begun anew neither
        # knows what was spent nor which witness errs
        return max(0, refused - (told[0] is Headers.SOON) - MOST_LOOKS * self.kills)

    def _ours(self, index: int) -> list[Effect]:
        item = self.row.items[index]
        return [effect for effect in self.guest.platform.effects.ours() if self.row.belongs(effect, item)]

    def _is_so(self, line: Mapping[str, Any], at: float) -> bool:
        if self.row.holds is None:
            assert self.row.is_right is not None, "a row writes or reads"
            return self.row.is_right(_inside(self.guest.alias, line["result"]))
        state, effects = self.guest.platform.state, self.guest.platform.effects.listed
        moments = [BEGAN + 1, *(effect.at for effect in effects if effect.at <= at), at]
        return any(self.row.holds(Look(state, moment), self.row.items[line["index"]]) for moment in moments)


def doubled(effects: Sequence[Effect]) -> Iterator[str]:
    """An effect is doubled where one thing was changed twice, or two were created."""
    times = Counter(effect.kind if effect.kind.endswith("created") else str(effect.key) for effect in effects)
    for what, count in times.items():
        if count > 1:
            yield f"done {count} times: {what}"


def _inside(alias: Alias, value: Any) -> Any:
    match value:
        case str():
            return alias.inside(value)
        case dict():
            return {key: _inside(alias, each) for key, each in value.items()}
        case list():
            return [_inside(alias, each) for each in value]
    return value


def exit_code(outcomes: Sequence[str]) -> int:
    """The exit code of a run that was not stopped."""
    if "unknown" in outcomes:
        return 6
    return 1 if "failed" in outcomes or "skipped" in outcomes else 0


def printed(tries: Iterable[tuple[str, bool]]) -> int:
    """Print what came of each way while they are tried; 1 where something does not hold.

    Args:
        tries: what is told of a way, and whether it is broken.
    """
    wrong = 0
    for told, is_broken in tries:
        wrong += is_broken
        sys.stdout.write(f"{told}\n")
        sys.stdout.flush()
    return 1 if wrong else 0
