"""Chooses the scheduler of a run: by whether single items wait for others, and whether items are split by payer."""

from collections.abc import Mapping

from bulk.bundle.checked import Checked
from bulk.execute.job_streams import JobStreams
from bulk.execute.resume_state import ResumeState
from bulk.platform.auth.manifest_credentials import AnyCredential, apps_of
from bulk.schedule.job_progress import Board
from bulk.schedule.keyed_scheduler import KeyedScheduler
from bulk.schedule.routed_scheduler import RoutedScheduler
from bulk.schedule.scheduler import Scheduler


def scheduler_of(
    checked: Checked,
    resume_state: ResumeState,
    streams: JobStreams,
    credentials: Mapping[str, AnyCredential],
    board: Board | None,
) -> Scheduler:
    """Return the scheduler that a run needs, over the items of `checked` that are left.

    Args:
        board: see `Scheduler`.

    Raises:
        RunDirectoryError: the links between items and those that they wait for can't be read.
    """
    manifest, progress = checked.manifest, resume_state.progress
    window = manifest.limits.concurrency
    if any(job.by_key for job in manifest.jobs):
        links = streams.index.links()
        scheduler: Scheduler = KeyedScheduler(
            manifest.jobs, progress, streams.offered, streams.index, window, links, resume_state.unsuccessful
        )
    else:
        is_routed = any(spec.installation is None for spec, _ in apps_of(credentials).values())
        kind = RoutedScheduler if is_routed else Scheduler
        scheduler = kind(manifest.jobs, progress, streams.offered, streams.index, window, board)
    for number, check in enumerate(checked.jobs):
        if check.copies and not scheduler.board.is_shared:  # in a shared run, copies are sent too
            progress[number].set_copies(streams.copies[number].bits(number, check.items))
    return scheduler
