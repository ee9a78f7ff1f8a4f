"""One night of an audit: run, tables, comparison, policies, page, and the commit that makes it count.

Each step writes files of its own, and `audit.json` is renamed last. A process that is killed on the way leaves a run
that the next start of the same command goes on with; what was written before is written again, and is the same.
"""

import datetime
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import msgspec

from bulk.audit import history as places
from bulk.audit.comparison.drift import LOST, REMOVED, Drift, ItemChange, compare_night
from bulk.audit.history import History, Night
from bulk.audit.page.page import page_of
from bulk.audit.policies.judging import FIXED, KNOWN, NEW, UNKNOWN, WAIVED, Judgement, Violation, bind, judge
from bulk.audit.policies.policy import Policy, read_policies
from bulk.audit.policies.waivers import Waiver, read_waivers
from bulk.audit.result import MOST_CHANGES, AuditResult
from bulk.audit.tables import asking
from bulk.audit.tables.child import Task
from bulk.audit.tables.columns import CHANGES, COMMON, VIOLATIONS, table_name
from bulk.audit.tables.nights import tables_of_night, write_missing, write_rows
from bulk.audit.tables.statements import empty, name
from bulk.audit.tables.writing import tables_of
from bulk.bundle.checked import Checked
from bulk.clock import iso_utc
from bulk.engine.agreement.approval import Approve
from bulk.engine.execution import report as write_reports_of
from bulk.errors import UNDECODABLE, Flaw, ManifestError, RunDirectoryError, RunStopped, UsageError
from bulk.exit_codes import COMPLETE, of_audit
from bulk.ledger.companion_files import refuse_changed_parts
from bulk.ledger.database import LEDGER
from bulk.ledger.digests.file_digests import DIGESTS, note_files
from bulk.ledger.view import LedgerView
from bulk.manifest.audit_section import AuditSettings
from bulk.manifest.manifest import Manifest
from bulk.model import SUCCESSFUL
from bulk.report.fold import Report, fold
from bulk.report.run_state import run_state_of
from bulk.storage.private_files import write_whole

DoRun: TypeAlias = Callable[[Path, Approve | None], Report]
"""Runs the manifest in a run directory, or goes on with the run there; the `Approve` is asked before any request."""

MOST_IN_MEMORY = 200_000
"""Most items of a run whose lines are read into memory to test policies (count). Of a larger run, each policy reads the
lines from disk."""
MOST_NIGHTS = 30
GOES_ON = "everything was read, and the same command goes on with this night and asks nothing again"
SAME = "the run was begun with another manifest or other items"


@dataclass(frozen=True, slots=True)
class Prepared:
    """An audit that can begin: everything that can be checked without the platform was checked."""

    manifest: Manifest
    settings: AuditSettings
    policies: list[Policy]
    waivers: list[Waiver]


def refuse_writes(manifest: Manifest) -> None:
    """Refuse a manifest that writes.

    Raises:
        UsageError: a job of the manifest writes.
    """
    writes = [job.name for job in manifest.jobs if not job.operation.is_read]
    if writes:
        raise UsageError(
            f"an audit only reads, and {manifest.path} writes in {', '.join(writes)}: use `bulk run` for it"
        )


def prepare(manifest: Manifest, now: float) -> Prepared:
    """Check that a manifest can be run as an audit.

    Args:
        now: UTC epoch seconds.

    Raises:
        UsageError: the manifest writes, or DuckDB is missing. ManifestError: a policy or a waiver can't be used.
    """
    refuse_writes(manifest)
    asking.require_duckdb("audit")
    settings = manifest.audit or AuditSettings()
    policies = read_policies(settings.policies, manifest.path, settings.lines.get("policies", 0))
    today = datetime.date.fromisoformat(iso_utc(now)[:10])
    waivers = read_waivers(settings.waivers, policies, today, manifest.path, settings.lines.get("waivers", 0))
    bind(policies, manifest)
    return Prepared(manifest, settings, policies, waivers)


def one_night(prepared: Prepared, history: History, run: DoRun, now: float, resume_within_s: float) -> AuditResult:
    """Run, compare, judge and commit one night. The caller holds the history.

    Args:
        now: UTC epoch seconds.
        resume_within_s: an unfinished run that is older than this is given up (seconds).

    Raises:
        BulkError: the run could not begin, or a step failed; the same command goes on with the night.
    """
    run_dir = _pending(prepared, history, now, resume_within_s)
    report = None if run_dir is None else _complete_report(run_dir)
    if report is None:
        run_dir, report = _run(prepared, history, run, run_dir, now)
    assert run_dir is not None
    if report.exit_code not in COMPLETE:
        return _not_compared(history, run_dir, report)
    try:
        return _judged(prepared, history, run_dir, report)
    except OSError as error:
        raise RunDirectoryError(f"{error.filename or history.path}: {error.strerror}; {GOES_ON}") from error
    except ManifestError as error:  # a policy fails over these rows
        raise ManifestError((*error.flaws, Flaw(str(history.path), 0, "", GOES_ON)), error.more) from error
    except (RunDirectoryError, RunStopped) as error:
        raise type(error)(f"{error}; {GOES_ON}") from error


def _judged(prepared: Prepared, history: History, run_dir: Path, report: Report) -> AuditResult:
    """Write the tables of a night whose run is complete, compare it, judge it, and make it count."""
    view, at = LedgerView(run_dir), iso_utc(report.started_at.timestamp())
    _end(view)
    tables = _tables(history, view, run_dir.name)
    good = [night for night in history.good() if night.run != run_dir.name]
    before = _refuse_gone(history.place(places.BASELINES, good[-1].run, ".db")) if good else None
    place = history.place(places.BASELINES, run_dir.name, ".db")
    ignored = prepared.settings.ignore
    drift, changes = compare_night(view, run_dir.name, before, place, ignored)
    tables["changes"] = history.place(places.CHANGES, run_dir.name, ".parquet")
    write_rows(CHANGES, (_row_of(change, run_dir.name) for change in changes), tables["changes"])
    known = _known(history, good[-1].run) if good else {}
    task = tables_of_night(tables)
    lost, removed = (
        [(table_name(change.operation), change.item) for change in changes if change.kind == kind]
        for kind in (LOST, REMOVED)
    )
    judgement = judge(
        prepared.policies, prepared.waivers, task, known, lost, removed, items=report.done, at=at, jobs=report.jobs
    )
    violations = (_row_of(each, run_dir.name) for each in judgement.violations)
    write_rows(VIOLATIONS, violations, history.place(places.VIOLATIONS, run_dir.name, ".parquet"))
    verdict = _verdict(judgement, drift)
    exit_code = of_audit(report.exit_code, is_different=_counts(prepared.settings, verdict, judgement))
    night = _night(report, run_dir.name, exit_code, drift, judgement, verdict)
    result = AuditResult(
        name=history.name,
        history=str(history.path),
        night=night,
        exit_code=exit_code,
        run_exit_code=report.exit_code,
        drift=drift,
        changes=tuple(changes[:MOST_CHANGES]),
        judgement=judgement,
        nights=(*[each for each in history.nights if each.run != night.run][1 - MOST_NIGHTS :], night),
        notes=report.notes,
    )
    _keep(history, result)
    history.commit(night)
    return result


def _end(view: LedgerView) -> None:
    """Write the reports and the digests of a complete run whose process was killed before it could."""
    head = view.head()
    if head is not None and not (view.run_dir / DIGESTS).is_file():
        refuse_changed_parts(view.run_dir)
        view.refuse_edited()
        write_reports_of(view, view.run_dir)
        note_files(view.run_dir, bytes.fromhex(head))


def _night(
    report: Report, run: str, exit_code: int, drift: Drift, judgement: Judgement, verdict: tuple[str, ...]
) -> Night:
    statuses = Counter(each.status for each in judgement.violations)
    return Night(
        run=run,
        at=iso_utc(report.started_at.timestamp()),
        exit_code=exit_code,
        items=report.done,
        failed=report.outcomes["failed"],
        units=sum(bucket.used for bucket in report.buckets),
        drift=drift.items,
        changes=drift.changes,
        lost_sight=drift.lost_sight,
        new=statuses[NEW],
        known=statuses[KNOWN],
        fixed=statuses[FIXED],
        unknown=statuses[UNKNOWN],
        waived=statuses[WAIVED],
        verdict=verdict,
        is_blind=report.done > 0 and not any(report.outcomes[kind] for kind in SUCCESSFUL),
    )


def _pending(prepared: Prepared, history: History, now: float, within_s: float) -> Path | None:
    """Return the run directory to go on with, if there is one; other unfinished runs are given up."""
    pending = history.pending()
    for path in pending[:-1]:
        _give_up(history, path, "a later run was begun")
    if not pending:
        return None
    newest = pending[-1]
    why = _why_not(prepared, newest, now, within_s)
    if not why:
        return newest
    _give_up(history, newest, why)
    return None


def _why_not(prepared: Prepared, run_dir: Path, now: float, within_s: float) -> str:
    began = run_dir.stat().st_ctime if not (run_dir / LEDGER).is_file() else _began(LedgerView(run_dir), now)
    if now - began > within_s:
        return f"it began on {iso_utc(began)}, which is longer ago than an audit is gone on with"
    if not (run_dir / LEDGER).is_file():
        return ""
    identity, manifest = LedgerView(run_dir).identity(), prepared.manifest
    if identity.base_url != manifest.platform.base_url:
        return f"the run was begun on another platform: {identity.base_url}"
    return SAME if identity.manifest_digest != manifest.digest else ""


def _began(view: LedgerView, now: float) -> float:
    epochs = view.epochs()
    return epochs[0].started_at if epochs else now


def _give_up(history: History, run_dir: Path, why: str) -> None:
    if not (run_dir / LEDGER).is_file():
        shutil.rmtree(run_dir, ignore_errors=True)
        return
    at = iso_utc(_began(LedgerView(run_dir), 0.0))
    history.commit(Night(run=run_dir.name, at=at, is_good=False, why=why, exit_code=3))


def _complete_report(run_dir: Path) -> Report | None:
    """Return the report of a run that went to its end before its night could count."""
    if not (run_dir / LEDGER).is_file():
        return None
    view = LedgerView(run_dir)
    return fold(view) if run_state_of(view, 0.0).state == "complete" and not view.is_held() else None


def _run(prepared: Prepared, history: History, run: DoRun, pending: Path | None, now: float) -> tuple[Path, Report]:
    approve = _refusing_few(prepared.settings, history)
    if pending is not None:
        try:
            return pending, run(pending, approve)
        except RunDirectoryError:
            if not (pending / LEDGER).is_file() or LedgerView(pending).is_held():
                raise
            _give_up(history, pending, SAME)
    run_dir = history.new_run_dir(now)
    try:
        return run_dir, run(run_dir, approve)
    finally:
        if not (run_dir / LEDGER).is_file():  # nothing was sent
            shutil.rmtree(run_dir, ignore_errors=True)


def _refusing_few(settings: AuditSettings, history: History) -> Approve | None:
    """Return the `Approve` that refuses a list of items that was cut short (`min_items`), if one is needed."""
    good, least = history.good(), settings.min_items
    if least is None or not good:
        return None
    wanted = least.of(good[-1].items)

    def approve(checked: Checked) -> None:
        items = sum(job.items for job in checked.jobs)
        if items < wanted:
            raise UsageError(
                f"the manifest has {items:,} items, and the last good night had {good[-1].items:,}: audit.min_items "
                f"wants {wanted:,} at least; look at the items files, or lower it"
            )

    return approve


def _not_compared(history: History, run_dir: Path, report: Report) -> AuditResult:
    why = report.why or report.meaning
    night = Night(
        run=run_dir.name,
        at=iso_utc(report.started_at.timestamp()),
        is_good=False,
        why=why,
        exit_code=report.exit_code,
        items=report.done,
    )
    return AuditResult(
        name=history.name,
        history=str(history.path),
        night=night,
        exit_code=report.exit_code,
        run_exit_code=report.exit_code,
        why=why,
        nights=history.nights[1 - MOST_NIGHTS :],
        notes=report.notes,
    )


def _tables(history: History, view: LedgerView, run: str) -> dict[str, Path]:
    with tables_of(view, run) as tables:
        found = {name: history.place(f"{places.TABLES}/{name}", run, ".parquet") for name in tables.queries}
        write_missing(tables, found)
    return found


def _known(history: History, run: str) -> dict[str, Violation]:
    """Return the violations of the last good night that were not fixed then, by fingerprint."""
    _refuse_gone(history.place(places.JUDGED, run, ".json"))
    judgement = kept(history, run).judgement
    return {each.fingerprint: each for each in judgement.violations if each.status != FIXED}


def _refuse_gone(path: Path) -> Path:
    """Return `path`, which is a file of the last good night; raise where that file is gone."""
    if not path.is_file():
        raise RunDirectoryError(f"{path}, of the last good night, is gone: restore it, or name another --history")
    return path


def _verdict(judgement: Judgement, drift: Drift) -> tuple[str, ...]:
    found = {"drift": drift.items, "violation": judgement.is_violated, "unknown": drift.lost_sight}
    return tuple(word for word, is_so in found.items() if is_so)


def _counts(settings: AuditSettings, verdict: tuple[str, ...], judgement: Judgement) -> bool:
    """Return whether the verdict makes the exit code 7."""
    fails = set(settings.fail_on)
    return bool(fails & set(verdict)) or ("new-violation" in fails and judgement.is_newly_violated)


def _keep(history: History, result: AuditResult) -> None:
    page = history.place(places.PAGES, result.night.run, ".html")
    kept = history.place(places.JUDGED, result.night.run, ".json")
    try:
        write_whole(page, page_of(result).encode())
        write_whole(kept, msgspec.json.encode(result))
    except OSError as error:
        raise RunDirectoryError(f"{history.path}: {error.strerror}") from error


def _row_of(found: ItemChange | Violation, run: str) -> dict[str, object]:
    return {"run": run, **msgspec.structs.asdict(found)}


def judge_run(prepared: Prepared, run_dir: Path, now: float) -> AuditResult:
    """Return the result of the policies over a run that has ended; nothing is written.

    Raises:
        RunDirectoryError: the run is still going, or can't be read. ManifestError: a policy can't be run.
    """
    view = LedgerView(run_dir)
    if run_state_of(view, now).is_live:
        raise RunDirectoryError(f"{run_dir} is still running: test policies when it has ended")
    report, at = fold(view), iso_utc(now)
    with tables_of(view, run_dir.resolve().name) as tables:
        kind = "TABLE" if report.done <= MOST_IN_MEMORY else "VIEW"
        made = (f"CREATE {kind} {name(table)} AS {query}" for table, query in tables.queries.items())
        rest = (f"CREATE TABLE {table} AS {empty(COMMON[table])}" for table in ("changes", "violations"))
        task = Task(statements=(tables.view, *made, *rest), allowed=(str(tables.lines),) if kind == "VIEW" else ())
        judgement = judge(prepared.policies, prepared.waivers, task, {}, items=report.done, at=at, jobs=report.jobs)
    verdict = _verdict(judgement, Drift())
    exit_code = of_audit(0, is_different=bool(verdict))
    night = Night(run=run_dir.resolve().name, at=at, exit_code=exit_code, items=report.done, verdict=verdict)
    return AuditResult(
        name=prepared.manifest.name,
        history=str(run_dir),
        night=night,
        exit_code=exit_code,
        run_exit_code=report.exit_code,
        drift=Drift(is_first=True),
        judgement=judgement,
    )


def kept(history: History, run: str) -> AuditResult:
    """Return the result of a night.

    Raises:
        RunDirectoryError: the night is none of this history, or its result is not kept any more.
    """
    path = history.path / places.JUDGED / f"{run}.json"
    try:
        return msgspec.json.decode(path.read_bytes(), type=AuditResult)
    except FileNotFoundError:
        raise RunDirectoryError(f"{run} is not a night of {history.path} that was compared and is still kept") from None
    except (OSError, *UNDECODABLE) as error:
        raise RunDirectoryError(f"{path} can't be read: {error}; restore it from a copy") from error
