"""The figures of runs as text for a machine that collects metrics: OpenMetrics, or the older format for a text file.

Labels are the run, its jobs, outcomes, codes, credentials and categories: their number does not grow with the items.
The jobs after the first `MOST_JOBS` are summed as one job, `other`. A run that has ended is reported for `KEPT_S` more
seconds. Source: OpenMetrics 1.0.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bulk.govern.concurrency.adaptive_limit import LATENCIES_S
from bulk.report.run_state import RunState
from bulk.status import STATES, WaitKind

MOST_JOBS = 50
KEPT_S = 900.0
OTHER = "other"

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one run.

    Attributes:
        errors: job, code and items (count) of each kind of error.
        latencies: answers in each class of `LATENCIES_S`, and above (counts); empty where no latency is known.
    """

    run: str
    run_state: RunState
    errors: Sequence[tuple[str, str, int]] = ()
    latencies: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class AuditFigures:
    """The last night of an audit that counts.

    Attributes:
        at: when the run of that night began (UTC epoch seconds).
        good_at: when the last night that was compared began (UTC epoch seconds); None: no night was compared.
    """

    audit: str
    at: float
    good_at: float | None
    exit_code: int
    violations: Mapping[str, int]
    changed: int


Labels = Mapping[str, str]


@dataclass(slots=True)
class _Family:
    name: str
    kind: str
    says: str
    samples: list[tuple[str, Labels, float]] = field(default_factory=list)

    def add(self, value: float, **labels: str) -> None:
        self.samples.append(("_total" if self.kind == "counter" else "", labels, value))

    def lines(self, *, is_classic: bool) -> Iterator[str]:
        told = f"{self.name}_total" if is_classic and self.kind == "counter" else self.name
        yield f"# HELP {told} {self.says}\n# TYPE {told} {self.kind}\n"
        for suffix, labels, value in self.samples:
            inside = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
            yield f"{self.name}{suffix}{{{inside}}} {_number(value)}\n"


def is_told(run_state: RunState, now: float) -> bool:
    """Return whether a run is reported: it goes on, or has ended within the last `KEPT_S` seconds."""
    if run_state.is_live:
        return True
    ends = [epoch.ended_at for epoch in run_state.epochs if epoch.ended_at is not None]
    said = [run_state.last.at] if run_state.last is not None else []
    return now - max([*ends, *said], default=0.0) < KEPT_S


def text(runs: Iterable[Figures], audits: Iterable[AuditFigures] = (), *, is_classic: bool = False) -> str:
    """Return the figures of all runs and audits.

    Args:
        is_classic: whether to use the text format of Prometheus 0.0.4, which collectors of text files read.
    """
    families = _families()
    for each in runs:
        _add(families, each)
    for audit in audits:
        _add_audit(families, audit)
    lines = [line for family in families.values() if family.samples for line in family.lines(is_classic=is_classic)]
    return "".join(lines) + ("" if is_classic else "# EOF\n")


def _families() -> dict[str, _Family]:
    every = (
        ("bulk_items", "counter", "Items that have ended, by outcome."),
        ("bulk_errors", "counter", "Items that have ended with an error, by code."),
        ("bulk_job_items", "gauge", "Items of a job, where that is known."),
        ("bulk_requests", "counter", "Requests sent by the process that drives the run."),
        ("bulk_request_retries", "counter", "Requests that repeated one that failed."),
        ("bulk_settled", "counter", "Lost answers whose truth was found by reading."),
        ("bulk_request_seconds", "histogram", "How long good answers took."),
        ("bulk_budget_limit", "gauge", "Requests in a window of the budget."),
        ("bulk_budget_remaining", "gauge", "Requests left in the window."),
        ("bulk_budget_reserve", "gauge", "Requests that are left for others."),
        ("bulk_budget_reset_timestamp_seconds", "gauge", "When the window ends."),
        ("bulk_budget_used", "counter", "Requests that the run has spent, all windows."),
        ("bulk_waiting_items", "gauge", "Items that wait, by what for."),
        ("bulk_in_flight", "gauge", "Requests in flight."),
        ("bulk_concurrency", "gauge", "Requests that may be in flight."),
        ("bulk_run_state", "gauge", "1 for the state that the run is in."),
        ("bulk_exit_code", "gauge", "What the command exited with, once it has ended."),
        ("bulk_start_timestamp_seconds", "gauge", "When the run was first started."),
        ("bulk_finish_timestamp_seconds", "gauge", "When the run will end, by the forecast."),
        ("bulk_status_timestamp_seconds", "gauge", "When the process last said where the run stands."),
        ("bulk_audit_night_timestamp_seconds", "gauge", "When the last night of the audit began."),
        ("bulk_audit_compared_timestamp_seconds", "gauge", "When the last night began that was compared and judged."),
        ("bulk_audit_exit_code", "gauge", "What the last night exited with."),
        ("bulk_audit_violations", "gauge", "Violations of the last night, by status."),
        ("bulk_audit_changed_items", "gauge", "Items that had changed in the last night."),
    )
    return {name: _Family(name, kind, says) for name, kind, says in every}


def _add(families: Mapping[str, _Family], each: Figures) -> None:
    run, run_state = each.run, each.run_state
    _add_jobs(families, each)
    for state in STATES:
        families["bulk_run_state"].add(1.0 if state == run_state.state else 0.0, run=run, state=state)
    if not run_state.is_live:
        families["bulk_exit_code"].add(run_state.exit_code, run=run)
    if run_state.epochs:
        families["bulk_start_timestamp_seconds"].add(run_state.epochs[0].started_at, run=run)
    last = run_state.last
    if last is None:
        return
    plain = {
        "bulk_requests": last.requests,
        "bulk_request_retries": last.retries,
        "bulk_settled": last.settled,
        "bulk_in_flight": last.in_flight if run_state.is_live else 0,
        "bulk_concurrency": last.concurrency if run_state.is_live else 0,
        "bulk_status_timestamp_seconds": last.at,
    }
    for name, value in plain.items():
        families[name].add(value, run=run)
    if run_state.is_live and last.finish_at is not None:
        families["bulk_finish_timestamp_seconds"].add(last.finish_at, run=run)
    _add_budgets(families, each)
    waiting = dict.fromkeys(WaitKind, 0)
    for wait in last.waits if run_state.is_live else ():
        if wait.kind is not None:
            waiting[wait.kind] += wait.count
    for kind, items in waiting.items():
        families["bulk_waiting_items"].add(items, run=run, kind=str(kind))
    if each.latencies:
        ends = [*(f"{end:g}" if end != int(end) else f"{end:.1f}" for end in LATENCIES_S), "+Inf"]
        total = 0
        for end, count in zip(ends, each.latencies, strict=True):
            total += count
            families["bulk_request_seconds"].samples.append(("_bucket", {"run": run, "le": end}, total))


def _add_audit(families: Mapping[str, _Family], each: AuditFigures) -> None:
    name = each.audit
    families["bulk_audit_night_timestamp_seconds"].add(each.at, audit=name)
    if each.good_at is not None:
        families["bulk_audit_compared_timestamp_seconds"].add(each.good_at, audit=name)
    families["bulk_audit_exit_code"].add(each.exit_code, audit=name)
    families["bulk_audit_changed_items"].add(each.changed, audit=name)
    for status, count in each.violations.items():
        families["bulk_audit_violations"].add(count, audit=name, status=status)


def _add_jobs(families: Mapping[str, _Family], each: Figures) -> None:
    names = {job.name: job.name if place < MOST_JOBS else OTHER for place, job in enumerate(each.run_state.jobs)}
    outcomes: dict[tuple[str, str], int] = {}
    items: dict[str, int | None] = {}
    for job in each.run_state.jobs:
        name = names[job.name]
        for kind, count in job.outcomes.items():
            outcomes[name, kind] = outcomes.get((name, kind), 0) + count
        known = items.get(name, 0)
        items[name] = None if job.items is None or known is None else known + job.items
    errors: dict[tuple[str, str], int] = {}
    for job_name, code, count in each.errors:
        key = names.get(job_name, OTHER), code
        errors[key] = errors.get(key, 0) + count
    for (name, kind), count in outcomes.items():
        families["bulk_items"].add(count, run=each.run, job=name, outcome=kind)
    for (name, code), count in errors.items():
        families["bulk_errors"].add(count, run=each.run, job=name, code=code)
    for name, number in items.items():
        if number is not None:
            families["bulk_job_items"].add(number, run=each.run, job=name)


def _add_budgets(families: Mapping[str, _Family], each: Figures) -> None:
    assert each.run_state.last is not None, "the caller has looked"
    for bucket in each.run_state.last.buckets:
        labels = {"run": each.run, "credential": bucket.credential, "category": bucket.category}
        values = {
            "bulk_budget_limit": bucket.limit,
            "bulk_budget_remaining": bucket.remaining,
            "bulk_budget_reserve": bucket.reserve,
            "bulk_budget_reset_timestamp_seconds": bucket.reset_at,
            "bulk_budget_used": bucket.used,
        }
        for name, value in values.items():
            if value is not None:
                families[name].add(value, **labels)


def _escaped(words: str) -> str:
    return words.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
