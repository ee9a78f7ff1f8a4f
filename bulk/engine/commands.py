"""The commands: run a manifest, resume or retry a run, plan, ask for the limits. `library/` is for programs.

Reading order of the whole: README → `bulk/__init__.py` → this file → `run.py`, which puts the stages together.
"""

import contextlib
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import msgspec

from bulk.bundle.checked import source_path
from bulk.check.plan import LATENCY_S, Plan, plan
from bulk.clock import Clock
from bulk.engine.again import Again
from bulk.engine.credentials.asked_limits import ToldLimits, ask_limits
from bulk.engine.credentials.credential_check import lacking_scopes
from bulk.engine.credentials.payers import Payers, budgets_of, find_payers, together
from bulk.engine.execution import check_items, execute
from bulk.engine.origin import MANIFEST, Origin
from bulk.engine.surroundings import Surroundings
from bulk.errors import RunDirectoryError
from bulk.govern.permits.accounts import CredentialSource
from bulk.items.sources import STDIN
from bulk.ledger import directory
from bulk.manifest.manifest import Manifest
from bulk.manifest.reading import Overrides, read_manifest, read_platform
from bulk.platform.auth.credentials import Credential
from bulk.platform.auth.manifest_credentials import credentials_of
from bulk.report.record import Report
from bulk.status import BucketStatus, Display, Silence
from bulk.storage.disk_threads import beside
from bulk.storage.scratch import scratch_folder

LATENCY_ASKS = 5
"""How often a plan asks for the limits, to learn how long an answer takes (count); these requests are free."""
LOOK_S = 10.0
RESET_LAG_S = 0.1
"""How long a plan waits at most for the next window, and how long after the end of the current one (seconds)."""


async def run_manifest(
    path: Path,
    *,
    overrides: Overrides,
    run_dir: Path,
    display: Display,
    environ: Mapping[str, str],
    surroundings: Surroundings,
    read: Manifest | None = None,
) -> Report:
    """Check a manifest, then run it, or go on with its run where `run_dir` holds one.

    Args:
        read: the manifest, where it has been read already: reading a large one takes seconds.

    Returns:
        The report; its exit code also says when the run was stopped with work left.

    Raises:
        BulkError: nothing could be run; its exit code says why.
    """
    if read is None:
        read = await beside(surroundings.disk, lambda: read_manifest(path, overrides, environ))
    origin = Origin.of(read, overrides, surroundings.cache)
    return await execute(read, origin, run_dir, display, environ, surroundings)


async def resume_run(
    run_dir: Path,
    *,
    again: Again,
    overrides: Overrides,
    display: Display,
    environ: Mapping[str, str],
    surroundings: Surroundings,
) -> Report:
    """Go on with a run that was stopped or killed, or run items of it again, in the same run directory.

    The directory says how the run was started; `overrides` change that. If the manifest is gone, its copy in the run
    directory is read. The items files must be where they were. For each unknown item that is retried, the platform is
    read first. If the value there is neither the one from before nor the one that was asked for, another user may have
    written it since: the value stays, and so does the outcome unknown.

    Args:
        again: a resume or a retry; of a retry also which items, and whether to write over such values all the same.

    Raises:
        BulkError: there is no such run, its manifest or its items changed, or the run is in use.
    """
    origin = Origin.load(run_dir)
    path, overridden = Path(origin.manifest), origin.overrides(overrides)

    def read() -> Manifest:
        copy = run_dir / MANIFEST
        text_at = None if path.exists() or not copy.is_file() else copy
        manifest = read_manifest(path, overridden, environ, text_at=text_at)
        _refuse_unread_stdin(manifest, run_dir)
        return manifest

    manifest = await beside(surroundings.disk, read)
    again.require([job.name for job in manifest.jobs])
    used = Origin.of(manifest, overridden, surroundings.cache)
    return await execute(manifest, used, run_dir, display, environ, surroundings, again=again)


def _refuse_unread_stdin(manifest: Manifest, run_dir: Path) -> None:
    for job in manifest.jobs:
        path = source_path(job, run_dir)
        if job.items_path == STDIN and path is not None and not path.is_file():
            command = shlex.join(["bulk", "run", str(manifest.path), "--run-dir", str(run_dir)])
            raise RunDirectoryError(
                f"the run ended before all items of {job.name} were read from standard input; give them to `{command}`"
            )


async def plan_manifest(
    path: Path, *, overrides: Overrides, environ: Mapping[str, str], display: Display | None = None
) -> Plan:
    """Check a manifest, and return what its run costs and when it would end.

    Only `GET /rate_limit` is sent, and for pools and Apps the requests that find their payers. Where the end depends on
    the length of a window that was not seen, and the current window ends within `LOOK_S`, wait for the next one, which
    shows its length. Where the question is sent and gets no answer, plan without limits, and say so in a note.

    Args:
        display: shows how many items are checked; None: nothing is shown.

    Raises:
        BulkError: the manifest can't be used, or the platform can't be asked.
    """
    clock = Clock()
    manifest = read_manifest(path, overrides, environ)
    with scratch_folder("plan") as workspace:
        checked = await check_items(manifest, workspace, display or Silence(), clock, None)
        used = sorted({job.credential for job in manifest.jobs})
        categories = {(job.credential, job.operation.category) for job in manifest.jobs}
        credentials = credentials_of(manifest, environ, clock)
        payers = await find_payers(checked, credentials, workspace, clock)

        async def planned() -> Plan:
            plain = {name: each for name, each in credentials.items() if isinstance(each, Credential)}
            sources = {**{name: plain[name] for name in used if name in plain}, **payers.sources}
            names = list(sources)
            wanted = {each for pair in categories for each in payers.of(*pair)}
            told = await ask_limits(
                manifest.platform, sources, names, clock, asks=LATENCY_ASKS, may_be_silent=True, wanted=wanted
            )
            needed = [bucket for bucket in told.buckets if (bucket.credential, bucket.category) in categories]
            joined, shown = budgets_of(payers, told.buckets, clock.now())
            latency_s = told.latency_s or LATENCY_S
            unknown = {pair for pair in categories if any(told.is_unknown(*each) for each in payers.of(*pair))}
            found = plan(checked, [*needed, *joined], clock.now(), latency_s=latency_s, unknown=unknown)
            buckets = tuple(together(bucket, shown, manifest.limits.reserve) for bucket in found.buckets)
            lacking = lacking_scopes(manifest, credentials, told.scopes)
            notes = (*found.notes, *payers.notes, *told.notes, *lacking)
            return msgspec.structs.replace(found, buckets=buckets, payers=shown, notes=notes)

        found = await planned()
        resets = [bucket.reset_at - found.at for bucket in found.buckets if bucket.is_judged and bucket.reset_at]
        soon = [seconds for seconds in resets if 0.0 < seconds <= LOOK_S]
        if not soon:
            return found
        await clock.sleep(max(soon) + RESET_LAG_S)
        return await planned()


async def ask_budgets(manifest: Manifest, environ: Mapping[str, str]) -> ToldLimits:
    """Return the limits of all buckets that the jobs of a manifest use; there, `reset_at` is in seconds from now. Pools
    and Apps have the buckets of their payers together.

    Raises:
        BulkError: an item of an App can't be used, or the platform can't be asked.
    """
    clock = Clock()
    credentials = credentials_of(manifest, environ, clock)
    used = {name: credentials[name] for name in sorted({job.credential for job in manifest.jobs})}
    sources: dict[str, CredentialSource] = {n: each for n, each in used.items() if isinstance(each, Credential)}
    payers = Payers()
    if len(sources) < len(used):
        with scratch_folder("plan") as workspace:
            checked = await check_items(manifest, workspace, Silence(), clock, None)
            payers = await find_payers(checked, credentials, workspace, clock)
    sources |= payers.sources
    wanted = {each for job in manifest.jobs for each in payers.of(job.credential, job.operation.category)}
    told = await ask_limits(
        manifest.platform, sources, list(sources), clock, asks=LATENCY_ASKS, may_be_silent=True, wanted=wanted
    )
    now = clock.now()
    buckets = [
        msgspec.structs.replace(bucket, reset_at=None if bucket.reset_at is None else max(0.0, bucket.reset_at - now))
        for bucket in (*told.buckets, *budgets_of(payers, told.buckets, now)[0])
        if bucket.credential in used
    ]
    return replace(told, buckets=buckets)


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
    return (await ask_limits(platform, sources, sorted(sources), clock)).buckets


def new_run_dir(name: str, clock: Clock) -> Path:
    """Make a new directory `runs/NAME-TIMESTAMP` and return it.

    Raises:
        RunDirectoryError: the directory can't be made.
    """
    try:
        return directory.new_below(directory.RUNS, name, clock.now())
    except OSError as error:
        raise directory.unusable(directory.RUNS, error) from error


def remove_if_empty(run_dir: Path, *, with_parent: bool) -> None:
    """Remove the directory that `new_run_dir` made if it is empty; `with_parent`: also the folder of runs."""
    with contextlib.suppress(OSError):
        run_dir.rmdir()
        if with_parent:
            run_dir.parent.rmdir()
