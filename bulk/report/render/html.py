"""The completion report as one HTML file that opens from disk: no script, no network, nothing from outside it.

The template escapes by itself, and every string passes through `terminal.safe` first, so that no name can reorder what
is read. The content security policy forbids everything but the file's own styles (failures.md row 68).
"""

from __future__ import annotations

import functools
import shlex
from datetime import datetime
from typing import TYPE_CHECKING, Any

from bulk.model import ErrorCode
from bulk.report.record import OUTCOMES, JobReport, Report
from bulk.report.render import chart, formatting, text
from bulk.report.render.terminal import safe
from bulk.status import LIVE

if TYPE_CHECKING:
    from jinja2 import Template

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_TONES = {**dict.fromkeys(LIVE, "same"), "lost": "doubt", "stopped": "doubt"}


def render(report: Report) -> str:
    """The whole page."""
    tone = _TONES.get(report.state) or {0: "good", 1: "bad", 6: "doubt"}.get(report.exit_code, "doubt")
    kinds = [kind for kind in OUTCOMES if report.outcomes.get(kind)]
    return _template().render(
        report=report,
        chart=chart.draw(report.timeline),
        area=chart,
        kinds=kinds,
        all_kinds=OUTCOMES,
        policy=POLICY,
        tone=tone,
        quoted_dir=shlex.quote(report.run_dir),
        verdict=text.verdict(report),
        jobs_with_problems=[job for job in report.jobs if job.problems],
        listed=_listed,
        problem_kinds=[kind for kind in kinds if kind in ("failed", "unknown", "skipped")],
        several_credentials=len({bucket.credential for bucket in report.buckets}) > 1,
    )


@functools.cache
def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("bulk.report.render"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=formatting.count,
        rate=formatting.rate,
        duration=formatting.duration,
        ms=lambda milliseconds: formatting.duration(milliseconds / 1000),
        utc=_utc,
    )
    return environment.get_template("report.html.j2")


def _shown(value: Any) -> Any:
    """What the template prints, made safe; markup (of the template itself) is left alone."""
    return safe(value) if type(value) is str else value


def _listed(job: JobReport) -> str:
    """What the list of a job's problems holds: all of them, or the first."""
    wrong = sum(error.count for error in job.errors if error.code != ErrorCode.SUPERSEDED)
    shown = len(job.problems)
    if shown == 1:
        return "The item" if wrong <= 1 else "The first item"
    return f"All {shown} items" if shown >= wrong else f"The first {shown} items of {wrong:,}"


def _utc(at: datetime | None) -> str:
    return "–" if at is None else at.strftime("%Y-%m-%d %H:%M:%S UTC")
