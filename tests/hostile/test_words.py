"""The words of a message are for people: whatever names stand in them, the engine does the same.

Each pair of jobs meets the same refusal, one with an ordinary name in its message, the other with one that sounds like
something else. Both must end alike, by the code of the error too, with as many requests, in about the same time.
"""

import json
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from bulk.execute.writes import refused_writes
from tests.hostile.judging import ROWS, Cell
from tests.hostile.rows import Row
from tests.hostile.virtual import run_jobs
from tests.hostile.wrong import Way

PHRASES = (
    "rate limit",
    "API rate limit exceeded",
    "secondary rate limit",
    "You have exceeded a secondary rate limit",
    "too many requests",
    "abuse detection",
    "work in progress",
    "enablement in progress",
    "already exists",
    "name already exists on this account",
    "too large",
    "is empty",
    "not found",
    "must be a site administrator",
    "try again later",
    "maximum number of login attempts exceeded",
    "sha wasn't supplied",
    "does not match",
    "bad credentials",
    "retry",
)
TEMPLATES: dict[int, tuple[str, ...]] = {
    403: ("Repository access to {} blocked", "Resource {} is not accessible by this token", "Branch '{}' is protected"),
    404: ("There is no {}", 'The team "{}" was not found in this enterprise'),
    409: ("The reference {} was changed meanwhile", "Configuration {} is being applied"),
    422: ("Validation failed: {}", "A policy named '{}' does not allow this", "{}: not permitted"),
}
OPERATIONS = (
    "readme.get",
    "contents.put",
    "contents.delete",
    "snapshot.create",
    "organization.create",
    "team-organization.assign",
    "enterprise-configuration.create",
    "organization-configuration.delete",
    "enterprise-security.enable",
    "organization-ruleset.create",
    "webhook.create",
    "webhook.create unchanged",
    "webhook.update",
)
ORDINARY = "payments"
CLOSE_S = 5.0
"""Waits are jittered: two that mean the same differ by no more than this, or by half (seconds)."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Which request is refused how: `{}` in the message is where a name stands."""

    operation: str
    status: int
    template: str
    times: int | None
    in_errors: bool

    def way(self, name: str) -> Way:
        """The way to be wrong."""
        text = self.template.format(name)
        told = {"message": "Validation Failed", "errors": [{"code": "custom", "message": text}]}
        body = json.dumps(told if self.in_errors else {"message": text}).encode()
        way = Way("words", "status", self.times, has_effect=False, status=self.status, body=body)
        return way if self.row.writes else replace(way, on="read")

    @property
    def row(self) -> Row:
        """The operation that meets it."""
        return next(row for row in ROWS if row.name == self.operation)


def _slug(text: str) -> str:
    return "-".join(text.replace("'", "").split())


names = st.builds(
    lambda before, phrase, after, is_slug: f"{before}{_slug(phrase) if is_slug else phrase}{after}",
    st.sampled_from(("", "acme/", "the ", "x-")),
    st.sampled_from(PHRASES),
    st.sampled_from(("", "er", "-tests", " of acme", ".")),
    st.booleans(),
)


@st.composite
def refusals(draw: st.DrawFn) -> tuple[Refusal, str]:
    """A refusal, and the name in its message. A message that begins with a name has one without spaces."""
    operation = draw(st.sampled_from(OPERATIONS))
    status = draw(st.sampled_from(sorted(TEMPLATES)))
    template, name = draw(st.sampled_from(TEMPLATES[status])), draw(names)
    if template.startswith("{}"):
        name = _slug(name)
    in_errors = status == 422 and draw(st.booleans())
    return Refusal(operation, status, template, draw(st.sampled_from((1, None))), in_errors), name


@settings(max_examples=5, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(st.lists(refusals(), min_size=20, max_size=20))
def test_names_in_messages_change_nothing(tried: list[tuple[Refusal, str]]) -> None:
    """A 403, 404, 409 or 422 has the same consequences whatever is named in its message."""
    cells = [
        Cell.of(refusal.row, refusal.way(each), 2 * number + place)
        for number, (refusal, name) in enumerate(tried)
        for place, each in enumerate((ORDINARY, name))
    ]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        # otherwise the first refusals of a kind are looked into for longer than those behind them, whatever they say
        patch.setattr(refused_writes, "TWICE_FIRST", sys.maxsize)
        told = run_jobs(
            Path(folder), {cell.name: cell.job() for cell in cells}, {cell.name: cell.guest for cell in cells}
        )
    assert not told.trouble
    for (refusal, name), ordinary, odd in zip(tried, cells[::2], cells[1::2], strict=True):
        about = (refusal, name)
        assert _outcomes(told.lines[ordinary.name]) == _outcomes(told.lines[odd.name]), about
        assert _requests(ordinary) == _requests(odd), about
        first, second = _lasted(ordinary), _lasted(odd)
        assert abs(first - second) <= max(CLOSE_S, max(first, second) / 2), about


def _outcomes(lines: list[dict[str, Any]]) -> list[tuple[str, str | None]]:
    return [(line["outcome"], line["error"]["code"] if line["error"] else None) for line in lines]


def _requests(cell: Cell) -> list[tuple[str, str]]:
    """What was asked for, in order; how often it was is another matter: of refusals of one kind, which the whole run
    counts, the first ones are looked into twice."""
    asked = [(ask.method, ask.path) for _, ask in cell.guest.heard if ask.path != "/rate_limit"]
    return [each for each, before in zip(asked, [None, *asked], strict=False) if each[0] != "GET" or each != before]


def _lasted(cell: Cell) -> float:
    times = [at for at, ask in cell.guest.heard if ask.path != "/rate_limit"]
    return times[-1] - times[0]
