"""The completion report as one HTML file that opens from disk: no network, nothing from outside it.

The template escapes every value, and characters that would be obeyed, reordered or hidden are written out (`\\u202e`):
no name can change how the page reads. The content security policy forbids everything but the page's one style sheet and
one script, by their digests. Where scripts are off, the page has its tables, but neither the list of every item nor the
plots (failures.md row 68).
"""

from __future__ import annotations

import base64
import functools
import hashlib
import shlex
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib import resources
from typing import TYPE_CHECKING, Any

from bulk.model import ErrorCode
from bulk.redaction.printable import JOINERS
from bulk.report.causes import DIFFERENT
from bulk.report.record import HINTS, OUTCOMES, JobReport, Report
from bulk.report.render import formatting, text
from bulk.status import LIVE

if TYPE_CHECKING:
    from jinja2 import Environment

    from bulk.report.exploration import Exploration

MOST_CAUSES = 30
"""Most causes that the table shows (count); the items of all causes are in the list."""

_TONES = {**dict.fromkeys(LIVE, "same"), "lost": "doubt", "stopped": "doubt"}
SCRIPTS = ("plot.js", "curves.js", "report.js")
"""The files that the page's one script is put together from, in this order."""
_SPAN = 1000
_NEUTRAL = frozenset((ErrorCode.SUPERSEDED, ""))


@dataclass(frozen=True, slots=True)
class Part:
    """One outcome's part of a bar: where it begins, how wide it is (thousandths), and what it says."""

    kind: str
    x: float
    width: float
    says: str


def render(report: Report, exploration: Exploration | None = None) -> str:
    """Return the whole page.

    Args:
        exploration: items, causes and curves to explore; None: the page has only its tables.
    """
    tone = _TONES.get(report.state) or {0: "good", 1: "bad", 6: "doubt"}.get(report.exit_code, "doubt")
    kinds = [kind for kind in OUTCOMES if report.outcomes.get(kind)]
    css, script = asset("report.css"), "".join(map(asset, SCRIPTS))
    causes = list(_causes(exploration)) if exploration is not None else []
    template = environment("bulk.report.render").get_template("report.html.j2")
    return template.render(
        report=report,
        kinds=kinds,
        parts=bar_parts,
        policy=content_policy(css, script),
        css=css,
        script=script,
        packed=exploration.packed() if exploration is not None else "",
        exploration=exploration,
        items=exploration.items if exploration is not None else None,
        causes=causes[:MOST_CAUSES],
        more_causes=max(0, len(causes) - MOST_CAUSES),
        hints=HINTS,
        tone=tone,
        quoted_dir=shlex.quote(report.run_dir),
        verdict=text.verdict(report),
        jobs_with_problems=[job for job in report.jobs if job.problems],
        listed=_listed,
        problem_kinds=[kind for kind in kinds if kind in ("failed", "unknown", "skipped")],
        several_credentials=len({bucket.credential for bucket in report.buckets}) > 1,
    )


def content_policy(css: str, script: str) -> str:
    """Return the content security policy of a page: its one style sheet and its one script, and nothing else."""
    digests = (base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in (css, script))
    style, module = digests
    return (
        f"default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{module}'; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'"
    )


@functools.cache
def asset(name: str, package: str = "bulk.report.render") -> str:
    """Return the text of a file beside the templates of a package."""
    return resources.files(package).joinpath("templates", name).read_text(encoding="utf-8")


@functools.cache
def environment(package: str) -> Environment:
    """Return the environment of a package's templates: it escapes values, and makes them safe as `shown` does."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    from bulk.report.render.template_cache import TemplateCache

    options: dict[str, Any] = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True}
    environment = Environment(
        loader=PackageLoader(package),
        undefined=StrictUndefined,
        finalize=_finalized,
        bytecode_cache=TemplateCache(str(options)),
        **options,
    )
    environment.filters.update(
        number=formatting.count,
        rate=formatting.rate,
        duration=formatting.duration,
        ms=lambda milliseconds: formatting.duration(milliseconds / 1000),
        utc=_utc,
    )
    return environment


def _finalized(value: Any) -> Any:
    """Return a value that the template prints, made safe; markup of the template itself is left as it is."""
    return shown(value) if type(value) is str else value


def shown(words: str) -> str:
    """Return `words`, with characters that would be obeyed, reordered or hidden written out: `\\u202e`."""
    return words if words.isprintable() else "".join(map(_shown, words))


def _shown(char: str) -> str:
    category = unicodedata.category(char)
    if category in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") and char not in JOINERS and char != "\n":
        return f"\\u{ord(char):04x}"
    return " " if category == "Zs" or char == "\n" else char


def bar_parts(outcomes: Mapping[str, int], left: int | None) -> Iterator[Part]:
    """Yield the parts of a bar of outcomes; an outcome that occurred at all is wide enough to be seen."""
    counts = {**{kind: outcomes.get(kind, 0) for kind in OUTCOMES}, "left": left or 0}
    whole, x = max(1, sum(counts.values())), 0.0
    for kind, count in counts.items():
        if count:
            width = max(4.0, round(_SPAN * count / whole, 1))
            yield Part(kind, round(min(x, _SPAN - width), 1), width, f"{count:,} {kind}")
            x += width


def _causes(exploration: Exploration) -> Iterator[dict[str, Any]]:
    """Yield the causes for the table, the most frequent first."""
    numbered = [(cause, number) for number, cause in enumerate(exploration.causes) if cause.code not in _NEUTRAL]
    for cause, number in sorted(numbered, key=lambda each: -each[0].count):
        yield {
            "number": number,
            "count": cause.count,
            "job": cause.job,
            "outcome": cause.outcome,
            "code": cause.code,
            "message": cause.message or DIFFERENT,
            "examples": cause.examples,
        }


def _listed(job: JobReport) -> str:
    """Return the heading of the list of a job's problems: it says whether the list has all of them, or the first."""
    wrong = sum(error.count for error in job.errors if error.code != ErrorCode.SUPERSEDED)
    shown_items = len(job.problems)
    if shown_items == 1:
        return "The item" if wrong <= 1 else "The first item"
    return f"All {shown_items} items" if shown_items >= wrong else f"The first {shown_items} items of {wrong:,}"


def _utc(at: datetime | None) -> str:
    return "–" if at is None else at.strftime("%Y-%m-%d %H:%M:%S UTC")
