"""Renders the page of one night: what changed, what is violated and since when, and the nights before it."""

import json
from dataclasses import dataclass
from typing import Any

from bulk.audit.history import Night
from bulk.audit.policies.judging import FIXED
from bulk.audit.result import AuditResult
from bulk.exit_codes import MEANINGS
from bulk.report.render.html import asset, content_policy, environment
from bulk.report.tally import label

PACKAGE = "bulk.audit.page"
MOST_ROWS = 2_000
"""Most violations, and most changes, that the page shows (count); `bulk sql` lists them all."""

_HEIGHT = 100.0
_MOST_VALUE = 200


@dataclass(frozen=True, slots=True)
class Bar:
    """One night in the trend: the heights of its drift and of its open violations, 100 at most."""

    night: Night
    x: float
    drift: float
    open: float


def page_of(result: AuditResult) -> str:
    """Return the whole page."""
    css, script = asset("report.css"), asset("audit.js", PACKAGE)
    open_ = [each for each in result.judgement.violations if each.status != FIXED]
    is_bad = result.night.is_blind or "violation" in result.night.verdict
    tone = "bad" if is_bad else "doubt" if result.night.verdict else "good"
    template = environment(PACKAGE).get_template("audit.html.j2")
    return template.render(
        result=result,
        css=css,
        script=script,
        policy=content_policy(css, script),
        verdict=result.verdict,
        tone=tone,
        meaning=MEANINGS.get(result.exit_code, ""),
        bars=_bars(result.nights),
        violations=open_[:MOST_ROWS],
        more_violations=max(0, len(open_) - MOST_ROWS),
        changes=result.changes[:MOST_ROWS],
        more_changes=max(0, result.drift.rows - MOST_ROWS),
        label=label,
        value=_value,
    )


def _bars(nights: tuple[Night, ...]) -> list[Bar]:
    most = max((max(night.drift, night.new + night.known) for night in nights), default=0) or 1
    return [
        Bar(
            night=night,
            x=number * 20.0,
            drift=round(_HEIGHT * night.drift / most, 1),
            open=round(_HEIGHT * (night.new + night.known) / most, 1),
        )
        for number, night in enumerate(nights)
    ]


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MOST_VALUE else f"{text[:_MOST_VALUE]}…"
