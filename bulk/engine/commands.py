"""The engine's face: run a manifest, retry a run, plan, ask for the limits. `library.py` offers the same to programs.

Reading order of the whole: README → `bulk/__init__.py` → this file → `run.py`, which puts the stages together.
"""

import re
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeVar

import anyio.to_thread

from bulk.bundle.checked import Checked, load_checked
from bulk.check.checking import check
from bulk.check.plan import Plan, plan
from bulk.clock import Clock, iso_utc
from bulk.engine.approval import require_approval
from bulk.engine.origin import NAME as ORIGIN
from bulk.engine.origin import Origin
from bulk.engine.run import ASK_LIMITS, Ended, Run, Surroundings
from bulk.errors import BulkError, CredentialRefused, RunStopped
from bulk.execute.resume_state import begin
from bulk.forecast import window_length
from bulk.govern.server_clock import ServerClock
from bulk.ledger.companion_files import note_making, refuse_changed_parts
from bulk.ledger.directory import Claim
from bulk.ledger.ledger import Ledger
from bulk.ledger.records import RunIdentity
from bulk.manifest.manifest import Manifest, Platform
from bulk.manifest.reading import Overrides, read_manifest, read_platform
from bulk.model import ErrorCode, Failure, FailureKind, OutcomeKind, Reply
from bulk.platform.auth.credentials import Credential
from bulk.platform.classification import Limits, VerdictKind, classify, date_from_headers, limits_from_body
from bulk.platform.transport import Transport
from bulk.redaction import redact
from bulk.report.exploration import explore
from bulk.report.fold import Report, fold, tally_of_a_running
from bulk.report.report_files import write_reports
from bulk.status import BucketStatus, Display, JobStatus, RunStatus, Silence
from bulk.storage.disk_threads import Disk
from bulk.storage.private_files import replacing

T = TypeVar("T")
RUNS = Path("runs")
"""Where runs live that were given no directory."""

MANIFEST = "manifest.yaml"
"""The copy of the manifest in a run directory."""

UNKNOWN_ITEMS = -1
"""Items of a job in the ledger while they are not known, because they are made from another job's results."""

LATENCY_ASKS = 5
"""Requests for the limits from which a plan learns how long an answer takes (count); they are free."""
LOOK_S = 10.0
RESET_LAG_S = 0.1
"""So long a plan waits for a window that shows its length, and so long after the end of the one before (seconds)."""

NOT_ASKED = Failure(kind=FailureKind.NOT_SENT, code=ErrorCode.CONNECTION, message="not asked")
RETRIED = frozenset((OutcomeKind.FAILED, OutcomeKind.SKIPPED, OutcomeKind.UNKNOWN))


async def run_manifest(
    path: Path,
    *,
    overrides: Overrides,
    run_dir: Path,
    cache: Path | None,
    display: Display,
    environ: Mapping[str, str],
    surroundings: Surroundings | None = None,
    stdin: BinaryIO | None = None,
) -> Report:
    """Check a manifest, then run it, or go on with it where `run_dir` holds a run of it.

    Args:
        cache: folder of stored validators and bodies; None: none are kept.
        stdin: for items from standard input; None: the process's own.

    Returns:
        The report; its exit code also says when the run was stopped with work left.

    Raises:
        BulkError: nothing could be run: see its exit code.
    """
    around = surroundings or Surroundings(handles_signals=True)
    around.cache = cache
    manifest = await _beside(around.disk, lambda: read_manifest(path, overrides, environ))
    return await execute(manifest, Origin.of(manifest), run_dir, display, environ, around, stdin=stdin)


async def retry_run(
    run_dir: Path,
    *,
    overrides: Overrides,
    cache: Path | None,
    display: Display,
    environ: Mapping[str, str],
    surroundings: Surroundings | None = None,
    overwrites: bool = False,
) -> Report:
    """Run the failed, skipped and unknown items of a run again, in the same run directory.

    What is unknown is looked at first. Where something else stands there now than was there before and was asked for,
    somebody else may have written it since: it stays, and the item stays unknown.

    Args:
        overwrites: write it all the same.

    Raises:
        BulkError: there is no such run, its manifest is gone or was edited, or it is in use.
    """
    around = surroundings or Surroundings(handles_signals=True)
    around.cache = cache
    origin = Origin.load(run_dir)
    path, overridden = Path(origin.manifest), origin.overrides(overrides)
    manifest = await _beside(around.disk, lambda: read_manifest(path, overridden, environ))
    return await execute(manifest, origin, run_dir, display, environ, around, is_retry=True, overwrites=overwrites)


async def plan_manifest(
    path: Path, *, overrides: Overrides, environ: Mapping[str, str], stdin: BinaryIO | None = None
) -> Plan:
    """Check a manifest and say what it costs and when it would end; sends nothing but `GET /rate_limit`.

    Where the end depends on the length of a window that nobody has seen, and this one ends within `LOOK_S`, it waits
    for the next one, which shows its length.

    Raises:
        BulkError: the manifest can't be used, or the platform can't be asked.
    """
    clock = Clock()
    manifest = read_manifest(path, overrides, environ)
    with tempfile.TemporaryDirectory(prefix="bulk-plan-") as workspace:
        checked = await _check(manifest, Path(workspace), Silence(), clock, stdin)
        used = sorted({job.credential for job in manifest.jobs})
        categories = {(job.credential, job.operation.category) for job in manifest.jobs}
        credentials = _credentials(manifest, environ, clock)

        async def planned() -> Plan:
            told = await _ask_limits(manifest.platform, credentials, used, clock, asks=LATENCY_ASKS)
            needed = [bucket for bucket in told.buckets if (bucket.credential, bucket.category) in categories]
            return plan(checked, needed, clock.now(), latency_s=told.latency_s)

        found = await planned()
        resets = [bucket.reset_at - found.at for bucket in found.buckets if bucket.is_judged and bucket.reset_at]
        soon = [seconds for seconds in resets if 0.0 < seconds <= LOOK_S]
        if not soon:
            return found
        await clock.sleep(max(soon) + RESET_LAG_S)
        return await planned()


async def rate_limits(*, overrides: Overrides, environ: Mapping[str, str]) -> list[BucketStatus]:
    """Every bucket of every credential named in `overrides` (default: `env:BULK_TOKEN`).

    Raises:
        BulkError: no platform is named, it can't be reached, or it refuses a credential.
    """
    clock = Clock()
    platform = read_platform(overrides, environ)
    sources = {
        name: Credential(name, source, environ, Path.cwd(), clock=clock)
        for name, source in platform.credentials.items()
    }
    return (await _ask_limits(platform, sources, sorted(sources), clock)).buckets


@dataclass(frozen=True, slots=True)
class _Told:
    """What the platform says of its limits; `latency_s`: how long it took to say so (seconds)."""

    buckets: list[BucketStatus]
    latency_s: float


async def _ask_limits(
    platform: Platform, sources: Mapping[str, Credential], names: Sequence[str], clock: Clock, *, asks: int = 1
) -> _Told:
    """Ask for each credential; for the first one `asks` times, and the one that opens the connection is not timed."""
    buckets: list[BucketStatus] = []
    took_s: list[float] = []
    time = ServerClock.from_local(clock.now(), clock.monotonic())
    tokens = {name: sources[name].read() for name in names}
    async with Transport(platform, concurrency=1, request_timeout_s=30.0, clock=clock) as transport:
        for name, token in tokens.items():
            answer: Reply | Failure = NOT_ASKED
            for _ in range(asks if name == names[0] else 1):
                sent = clock.monotonic()
                heard = await transport.send(ASK_LIMITS, token, None)
                took_s.append(clock.monotonic() - sent)
                if isinstance(answer, Failure) or (isinstance(heard, Reply) and heard.status == answer.status):
                    answer = heard
                date = date_from_headers(heard.headers) if isinstance(heard, Reply) else None
                if date is not None:
                    time.observe(date, sent, clock.monotonic())
            if isinstance(answer, Failure):
                raise RunStopped(f"{platform.base_url} can't be reached: {answer.message}")
            verdict = classify(ASK_LIMITS, answer, platform.vendor)
            if verdict.kind is VerdictKind.UNAUTHORIZED:
                raise CredentialRefused(name, f"the platform refused the credential {name!r} (401): {verdict.message}")
            if verdict.kind is not VerdictKind.ACCEPTED:
                raise RunStopped(f"GET /rate_limit: {verdict.message}")
            if answer.status == 404:
                buckets.append(BucketStatus(credential=name, category="core", limit=None, remaining=None))
            ahead_s, date = _ahead_s(time, clock), date_from_headers(answer.headers)
            buckets.extend(
                _bucket(name, category, limits, ahead_s, clock.now() if date is None else date - ahead_s)
                for category, limits in limits_from_body(answer.body).items()
            )
    return _Told(buckets, statistics.median(took_s[1:asks] or took_s or [0.0]))


def _ahead_s(time: ServerClock, clock: Clock) -> float:
    """How far the platform's clock is ahead of this machine's (seconds); 0.0 where they may be the same."""
    now, monotonic = clock.now(), clock.monotonic()
    if not time.is_known or time.earliest(monotonic) <= now <= time.latest(monotonic):
        return 0.0
    return time.middle(monotonic) - now


def _bucket(credential: str, category: str, limits: Limits, ahead_s: float, told_at: float) -> BucketStatus:
    """What was told of one bucket; one that is untouched shows how long its windows are.

    Args:
        told_at: the second in which it was told (UTC epoch seconds): a window begins at a whole one.
    """
    reset_at = float(limits.reset) - ahead_s
    is_whole = limits.remaining >= limits.limit and reset_at > told_at
    return BucketStatus(
        credential=credential,
        category=category,
        limit=limits.limit,
        remaining=limits.remaining,
        reset_at=reset_at,
        window_s=window_length(category, limits.limit, limits.remaining, reset_at - told_at) if is_whole else None,
    )


async def execute(
    manifest: Manifest,
    origin: Origin,
    run_dir: Path,
    display: Display,
    environ: Mapping[str, str],
    around: Surroundings,
    *,
    stdin: BinaryIO | None = None,
    is_retry: bool = False,
    overwrites: bool = False,
) -> Report:
    """Check what was read, and run it in `run_dir`; `run_manifest` and `retry_run` say the rest."""
    credentials = _credentials(manifest, environ, around.clock)
    around.environ = environ
    with Claim.take(run_dir) as claim:
        is_to_check = await _beside(around.disk, lambda: refuse_changed_parts(run_dir))
        checked = await _check(manifest, run_dir, display, around.clock, stdin, is_to_check=is_to_check)
        require_approval(around.approve, checked, run_dir)
        identity, now = _identity(checked), around.clock.now()
        writes = frozenset(job.name for job in manifest.jobs if not job.operation.is_read)
        ledger = await _beside(around.disk, lambda: Ledger.open(run_dir, identity, now=now, claim=claim, writes=writes))
        with ledger:
            await _beside(around.disk, lambda: _bind(ledger, origin, manifest))
            if is_retry:
                ledger.reopen(RETRIED, below=manifest.limit)
            settle_s, clock = checked.manifest.limits.settle_s, around.clock
            resume_state, tally = await _beside(
                around.disk,
                lambda: (
                    begin(checked, ledger, settle_s, clock.monotonic()),
                    tally_of_a_running(ledger.view(), now),
                ),
            )
            if overwrites:
                resume_state = resume_state.without_comparing()
            run = Run(checked, ledger, resume_state, credentials, display, around, tally)
            ended, failure = await _to_its_end(run)
            await around.disk(lambda: ledger.finish(ended.exit_code, ended.why, run.last_status, run.last_minute))
            if failure is not None:
                raise failure
            return await _beside(around.disk, lambda: _report(ledger, checked))


def _bind(ledger: Ledger, origin: Origin, manifest: Manifest) -> None:
    """Write where the run comes from, where that is not there yet, and bind all parts to the ledger."""
    wanted = {ORIGIN: origin.text(), MANIFEST: redact(manifest.text).encode()}
    for name, text in wanted.items():
        path = ledger.run_dir / name
        if path.is_symlink() or not path.is_file() or path.read_bytes() != text:
            note_making(ledger.run_dir, is_naming=True)
            with replacing(path) as file:
                file.write(text)
    ledger.bind_parts()


def _report(ledger: Ledger, checked: Checked) -> Report:
    view = ledger.view()
    report = fold(view, manifest=checked.manifest.path, notes=checked.notes)
    write_reports(report, ledger.run_dir, explore(view, report))
    return report


async def _beside(disk: Disk, call: Callable[[], T]) -> T:
    """What `call` returns; it blocks for so long that it must not hold the event loop."""
    found: list[T] = []
    await disk(lambda: found.append(call()))
    return found[0]


async def _to_its_end(run: Run) -> tuple[Ended, BulkError | None]:
    """Run it; a failure before anything was sent still ends the epoch cleanly."""
    failure: BulkError | None = None
    try:
        return await run.execute(), None
    except* BulkError as group:
        failure = _first(group)
    assert failure is not None, "execute returns or raises"
    return Ended(failure.exit_code, str(failure)), failure


def _first(group: BaseExceptionGroup[BulkError]) -> BulkError:
    """The one error to tell: groups are unwrapped here and nowhere else."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, BulkError), "except* selects them"
    return error


def _credentials(manifest: Manifest, environ: Mapping[str, str], clock: Clock) -> dict[str, Credential]:
    folder = manifest.path.resolve().parent
    return {
        name: Credential(name, source, environ, folder, clock=clock)
        for name, source in manifest.platform.credentials.items()
    }


def _identity(checked: Checked) -> RunIdentity:
    manifest = checked.manifest
    return RunIdentity(
        name=manifest.name,
        base_url=manifest.platform.base_url,
        vendor=manifest.platform.vendor,
        manifest_digest=manifest.digest,
        items_digest=checked.digest,
        jobs=tuple(
            (job.name, job.operation.name, found.items if job.derivation is None else UNKNOWN_ITEMS)
            for job, found in zip(manifest.jobs, checked.jobs, strict=True)
        ),
    )


async def _check(
    manifest: Manifest,
    workspace: Path,
    display: Display,
    clock: Clock,
    stdin: BinaryIO | None,
    *,
    is_to_check: bool = False,
) -> Checked:
    """The check of an earlier process where nothing has changed since; otherwise all items are read, in a thread."""
    started_at = clock.now()

    def tell(items: int) -> None:
        job = JobStatus(name="items", operation="check", items=None, outcomes={"checked": items})
        display.update(
            RunStatus(name=manifest.name, state="checking", at=clock.now(), started_at=started_at, jobs=(job,))
        )

    def note() -> None:
        note_making(workspace, is_checking=True)

    def work() -> Checked:
        found = None if is_to_check else load_checked(manifest, workspace, note)
        if found is None:
            note()
            found = check(manifest, workspace, stdin=stdin or (sys.stdin.buffer if sys.stdin else None), progress=tell)
        return found

    return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)


def new_run_dir(name: str, clock: Clock) -> Path:
    """`runs/NAME-TIMESTAMP` that is not there yet; the time is UTC, so that runs sort by it."""
    safe = re.sub(r"[^\w.-]+", "-", name).strip("-.") or "run"
    stamp = iso_utc(clock.now())[:19].replace("-", "").replace(":", "")
    path, number = RUNS / f"{safe}-{stamp}", 1
    while path.exists():
        number += 1
        path = RUNS / f"{safe}-{stamp}-{number}"
    return path
