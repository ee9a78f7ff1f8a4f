"""A run that several workers of this machine do, with a PostgreSQL of its own beside its run directory.

The run, the store and the workers are the same as on several machines. `folder_beside.py` has the folder with all of
their files.
"""

import logging
import math
import signal
from collections.abc import Callable, Iterator, Mapping

import anyio
import anyio.abc
import anyio.to_thread

from bulk.clock import Clock
from bulk.cluster.local.folder_beside import Beside
from bulk.cluster.local.local_workers import LocalWorkers, Told
from bulk.cluster.submission import followed
from bulk.errors import BulkError, Interrupted
from bulk.manifest.manifest import Manifest
from bulk.platform.auth.credentials import Credential
from bulk.platform.auth.manifest_credentials import credentials_of
from bulk.status import Display
from bulk.storage.child_process import python
from bulk.store import runs
from bulk.store.connections import StoreConnection


def read_tokens(manifest: Manifest, environ: Mapping[str, str]) -> None:
    """Read the tokens that the jobs use, as each worker will.

    Raises:
        CredentialMissing: a source has no token.
    """
    credentials = credentials_of(manifest, environ, Clock())
    for name in sorted({job.credential for job in manifest.jobs}):
        one = credentials[name]
        if isinstance(one, Credential):
            one.read()


def workers_of(
    manifest: Manifest, count: int, beside: Beside, store: StoreConnection, note: Callable[[str], None], module: str
) -> LocalWorkers:
    """Return the workers of a run; none is started yet.

    Args:
        store: a connection that the workers' object alone uses. module: the module that a worker runs, which reads a
            `Told`.
    """
    told = [
        Told(
            store=str(store.address),
            base_url=manifest.platform.base_url,
            credentials=dict(manifest.platform.credentials),
            folder=str(beside.of_worker(number).absolute()),
            secrets=str(manifest.path.resolve().parent),
            log_level=logging.getLogger().level or logging.WARNING,
        )
        for number in range(count)
    ]
    return LocalWorkers(python(module), told, store, beside.workers, note)


async def to_its_end(
    name: str, store: StoreConnection, display: Display, workers: LocalWorkers, who: str, *, is_new: bool
) -> runs.StoredRun:
    """Have the workers do a run, and show where it stands; returns the run as it was when it ended or was paused.

    Args:
        is_new: whether this command has begun the run; else it is resumed, with a `max_duration` of its own.

    Raises:
        Interrupted: a signal came; requests in flight have ended, and the same command goes on with the run.
        RunStopped: a worker can't work, or the store is out of reach.
    """
    run = await anyio.to_thread.run_sync(runs.find, store, name)
    if run.state == runs.COMPLETE:
        return run
    if run.state != runs.RUNNING or not is_new:
        await anyio.to_thread.run_sync(runs.steer, store, run, "resume", who)
    signals: list[int] = []
    failures: list[BulkError] = []
    async with anyio.create_task_group() as group:
        following = anyio.CancelScope()
        await group.start(_heed_signals, signals, following, workers, display.note)

        async def work() -> None:
            try:
                await workers.run()
            except* BulkError as errors:
                failures.extend(_leaves(errors))
            group.cancel_scope.cancel()

        group.start_soon(work)
        with following:
            run = await followed(name, store, display, nobody_s=math.inf)
        workers.end()
        await anyio.sleep_forever()  # until `work` is over
    if signals:
        raise Interrupted(signal.Signals(signals[0]).name, 128 + signals[0])
    if failures:
        raise failures[0]
    return run


def _leaves(group: BaseExceptionGroup[BulkError]) -> Iterator[BulkError]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error


async def _heed_signals(
    signals: list[int],
    following: anyio.CancelScope,
    workers: LocalWorkers,
    note: Callable[[str], None],
    *,
    task_status: anyio.abc.TaskStatus[None],
) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as received:
        task_status.started()
        async for number in received:
            if signals:
                workers.kill()
            else:
                note("interrupted: requests in flight end first; a second signal stops at once")
            signals.append(number)
            following.cancel()
