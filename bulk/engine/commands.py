"""What the commands do: run a manifest, resume or retry a run, plan, ask for the limits. `library/` is for programs.

Reading order of the whole: README → `bulk/__init__.py` → this file → `run.py`, which puts the stages together.
"""

import contextlib
import re
import shlex
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec

from bulk.bundle.checked import source_path
from bulk.check.plan import Plan, plan
from bulk.clock import Clock, iso_utc
from bulk.engine.again import Again
from bulk.engine.credentials.payers import budgets_of, find_payers, together
from bulk.engine.execution import MANIFEST, check_items, credentials_of, execute
from bulk.engine.origin import Origin
from bulk.engine.surroundings import Surroundings
from bulk.errors import CredentialRefused, RunDirectoryError, RunStopped
from bulk.forecast import window_length
from bulk.govern.permits.accounts import CredentialSource
from bulk.govern.rate_limit_poller import ASK_LIMITS
from bulk.govern.server_clock import ServerClock
from bulk.items.sources import STDIN
from bulk.ledger.directory import unusable
from bulk.manifest.manifest import Manifest, Platform
from bulk.manifest.reading import Overrides, read_manifest, read_platform
from bulk.model import ErrorCode, Failure, FailureKind, Reply
from bulk.platform.auth.credentials import Credential
from bulk.platform.classification import Limits, VerdictKind, classify, date_from_headers, limits_from_body
from bulk.platform.transport import Transport
from bulk.report.record import Report
from bulk.status import BucketStatus, Display, Silence
from bulk.storage.disk_threads import beside
from bulk.storage.private_files import DIRECTORY_MODE

__all__ = [
    "execute",
    "new_run_dir",
    "plan_manifest",
    "rate_limits",
    "remove_if_empty",
    "resume_run",
    "retry_run",
    "run_manifest",
]

RUNS = Path("runs")
"""Folder of the runs that were given no directory."""

LATENCY_ASKS = 5
"""How often a plan asks for the limits, to learn how long an answer takes (count); these requests are free."""
LOOK_S = 10.0
RESET_LAG_S = 0.1
"""How long a plan waits at most for the next window, and how long after the end of the current one (seconds)."""

NOT_ASKED = Failure(kind=FailureKind.NOT_SENT, code=ErrorCode.CONNECTION, message="not asked")


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
    """Check a manifest, then run it, or go on with its run where `run_dir` holds one.

    Args:
        cache: folder of stored validators and bodies; None: none are kept.
        stdin: stream for items from standard input; None: that of the process.

    Returns:
        The report; its exit code also says when the run was stopped with work left.

    Raises:
        BulkError: nothing could be run; its exit code says why.
    """
    around = surroundings or Surroundings(handles_signals=True, is_steered=True)
    around.cache = cache
    manifest = await beside(around.disk, lambda: read_manifest(path, overrides, environ))
    origin = Origin.of(manifest, overrides, cache)
    return await execute(manifest, origin, run_dir, display, environ, around, stdin=stdin)


async def resume_run(
    run_dir: Path,
    *,
    overrides: Overrides,
    cache: Path | None,
    display: Display,
    environ: Mapping[str, str],
    surroundings: Surroundings | None = None,
    by: str = "cli",
) -> Report:
    """Go on with a run that was stopped or killed. Its directory says how it was started; `overrides` change that.

    If the manifest is gone, its copy in the run directory is read. The items files must be where they were.

    Args:
        by: one word for the caller, such as `cli`.

    Raises:
        BulkError: there is no such run, its manifest or its items changed, or the run is in use.
    """
    return await _again(run_dir, overrides, cache, display, environ, surroundings, Again(by=by))


async def retry_run(
    run_dir: Path,
    *,
    overrides: Overrides,
    cache: Path | None,
    display: Display,
    environ: Mapping[str, str],
    surroundings: Surroundings | None = None,
    again: Again | None = None,
) -> Report:
    """Run the failed, skipped and unknown items of a run again, in the same run directory.

    The platform is read first for each unknown item. If the value there is neither the one from before nor the one
    that was asked for, another user may have written it since: the value stays, and so does the outcome unknown.

    Args:
        again: which items are retried, and whether to write over such values all the same; None: all items, and no.

    Raises:
        BulkError: there is no such run, its manifest is gone or was edited, or the run is in use.
    """
    again = again or Again(is_retry=True)
    return await _again(run_dir, overrides, cache, display, environ, surroundings, again)


async def _again(
    run_dir: Path,
    overrides: Overrides,
    cache: Path | None,
    display: Display,
    environ: Mapping[str, str],
    surroundings: Surroundings | None,
    again: Again,
) -> Report:
    around = surroundings or Surroundings(handles_signals=True, is_steered=True)
    around.cache = cache
    origin = Origin.load(run_dir)
    path, overridden = Path(origin.manifest), origin.overrides(overrides)

    def read() -> Manifest:
        copy = run_dir / MANIFEST
        text_at = None if path.exists() or not copy.is_file() else copy
        manifest = read_manifest(path, overridden, environ, text_at=text_at)
        _refuse_unread_stdin(manifest, run_dir)
        return manifest

    manifest = await beside(around.disk, read)
    again.require([job.name for job in manifest.jobs])
    used = Origin.of(manifest, overridden, cache)
    return await execute(manifest, used, run_dir, display, environ, around, again=again)


def _refuse_unread_stdin(manifest: Manifest, run_dir: Path) -> None:
    for job in manifest.jobs:
        path = source_path(job, run_dir)
        if job.items_path == STDIN and path is not None and not path.is_file():
            command = shlex.join(["bulk", "run", str(manifest.path), "--run-dir", str(run_dir)])
            raise RunDirectoryError(
                f"the run ended before all items of {job.name} were read from standard input; give them to `{command}`"
            )


async def plan_manifest(
    path: Path, *, overrides: Overrides, environ: Mapping[str, str], stdin: BinaryIO | None = None
) -> Plan:
    """Check a manifest, and return what its run costs and when it would end.

    Only `GET /rate_limit` is sent, and for pools and Apps the requests that find their payers. Where the end depends on
    the length of a window that was not seen, and the current window ends within `LOOK_S`, wait for the next one, which
    shows its length.

    Raises:
        BulkError: the manifest can't be used, or the platform can't be asked.
    """
    clock = Clock()
    manifest = read_manifest(path, overrides, environ)
    with tempfile.TemporaryDirectory(prefix="bulk-plan-") as workspace:
        checked = await check_items(manifest, Path(workspace), Silence(), clock, stdin)
        used = sorted({job.credential for job in manifest.jobs})
        categories = {(job.credential, job.operation.category) for job in manifest.jobs}
        credentials = credentials_of(manifest, environ, clock)
        payers = await find_payers(checked, credentials, Path(workspace), clock)

        async def planned() -> Plan:
            plain = {name: each for name, each in credentials.items() if isinstance(each, Credential)}
            sources = {**{name: plain[name] for name in used if name in plain}, **payers.sources}
            told = await _ask_limits(manifest.platform, sources, list(sources), clock, asks=LATENCY_ASKS)
            needed = [bucket for bucket in told.buckets if (bucket.credential, bucket.category) in categories]
            joined, shown = budgets_of(payers, told.buckets, clock.now())
            found = plan(checked, [*needed, *joined], clock.now(), latency_s=told.latency_s)
            buckets = tuple(together(bucket, shown, manifest.limits.reserve) for bucket in found.buckets)
            return msgspec.structs.replace(found, buckets=buckets, payers=shown, notes=(*found.notes, *payers.notes))

        found = await planned()
        resets = [bucket.reset_at - found.at for bucket in found.buckets if bucket.is_judged and bucket.reset_at]
        soon = [seconds for seconds in resets if 0.0 < seconds <= LOOK_S]
        if not soon:
            return found
        await clock.sleep(max(soon) + RESET_LAG_S)
        return await planned()


async def ask_budgets(manifest: Manifest, environ: Mapping[str, str]) -> tuple[list[BucketStatus], float]:
    """Return the status of every bucket that the jobs of a manifest use, and how long an answer took (seconds).

    `reset_at` is in seconds from now.

    Raises:
        BulkError: the platform can't be asked.
    """
    clock = Clock()
    credentials = credentials_of(manifest, environ, clock)
    plain = {name: each for name, each in credentials.items() if isinstance(each, Credential)}
    used = [name for name in sorted({job.credential for job in manifest.jobs}) if name in plain]
    told = await _ask_limits(manifest.platform, plain, used, clock, asks=LATENCY_ASKS)
    now = clock.now()
    buckets = [
        msgspec.structs.replace(bucket, reset_at=None if bucket.reset_at is None else max(0.0, bucket.reset_at - now))
        for bucket in told.buckets
    ]
    return buckets, told.latency_s


async def rate_limits(*, overrides: Overrides, environ: Mapping[str, str]) -> list[BucketStatus]:
    """Return every bucket of every credential named in `overrides` (default: `env:BULK_TOKEN`).

    Raises:
        BulkError: no platform is named, it can't be reached, or it refuses a credential.
    """
    clock = Clock()
    platform = read_platform(overrides, environ)
    sources = {
        name: Credential(name, source, environ, Path.cwd(), clock=clock)
        for name, source in platform.credentials.items()
        if name in overrides.credentials or not overrides.credentials
    }
    return (await _ask_limits(platform, sources, sorted(sources), clock)).buckets


@dataclass(frozen=True, slots=True)
class _Told:
    """The limits that the platform reported; `latency_s`: how long an answer took (seconds)."""

    buckets: list[BucketStatus]
    latency_s: float


async def _ask_limits(
    platform: Platform, sources: Mapping[str, CredentialSource], names: Sequence[str], clock: Clock, *, asks: int = 1
) -> _Told:
    """Ask for the limits of each credential; of the first one `asks` times, to time all answers but the very first."""
    buckets: list[BucketStatus] = []
    took_s: list[float] = []
    time = ServerClock.from_local(clock.now(), clock.monotonic())
    for name in names:
        source = sources[name]
        if isinstance(source, Credential):
            await source.opened()
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
                for category, limits in limits_from_body(answer.body, date).items()
            )
    return _Told(buckets, statistics.median(took_s[1:asks] or took_s or [0.0]))


def _ahead_s(time: ServerClock, clock: Clock) -> float:
    """Return how far the platform's clock is ahead of this machine's (seconds); 0.0 where the two may agree."""
    now, monotonic = clock.now(), clock.monotonic()
    if not time.is_known or time.earliest(monotonic) <= now <= time.latest(monotonic):
        return 0.0
    return time.middle(monotonic) - now


def _bucket(credential: str, category: str, limits: Limits, ahead_s: float, told_at: float) -> BucketStatus:
    """Return the status of one bucket. A bucket that is untouched shows how long its windows are.

    Args:
        told_at: the second in which the platform told of it (UTC epoch seconds); a window begins at a whole second.
    """
    reset_at = float(limits.reset) - ahead_s if limits.reset else None  # 0: none could be read
    window_s = None
    if reset_at is not None and limits.remaining >= limits.limit and reset_at > told_at:
        window_s = window_length(category, limits.limit, limits.remaining, reset_at - told_at)
    return BucketStatus(
        credential=credential,
        category=category,
        limit=limits.limit,
        remaining=limits.remaining,
        reset_at=reset_at,
        window_s=window_s,
    )


def new_run_dir(name: str, clock: Clock) -> Path:
    """Make a new directory `runs/NAME-TIMESTAMP` and return it. The time is UTC, so that runs sort by time.

    Raises:
        RunDirectoryError: the directory can't be made.
    """
    safe = re.sub(r"[^\w.-]+", "-", name).strip("-.") or "run"
    stamp = iso_utc(clock.now())[:19].replace("-", "").replace(":", "")
    path, number = RUNS / f"{safe}-{stamp}", 1
    try:
        RUNS.mkdir(parents=True, exist_ok=True)
        while True:
            try:
                path.mkdir(mode=DIRECTORY_MODE)
            except FileExistsError:  # another run was started in the same second
                number += 1
                path = RUNS / f"{safe}-{stamp}-{number}"
            else:
                return path
    except OSError as error:
        raise unusable(path, error) from error


def remove_if_empty(run_dir: Path, *, with_parent: bool) -> None:
    """Remove the directory that `new_run_dir` made if it is empty; `with_parent`: also the folder of runs."""
    with contextlib.suppress(OSError):
        run_dir.rmdir()
        if with_parent:
            run_dir.parent.rmdir()
