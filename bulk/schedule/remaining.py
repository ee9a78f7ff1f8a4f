"""The work that is left, and the items that may begin: the governor paces by them, and the forecast ends with them."""

from bulk.manifest.manifest import Job
from bulk.schedule.job_progress import JobState
from bulk.schedule.keyed_scheduler import KeyedScheduler
from bulk.schedule.routed_scheduler import RoutedScheduler
from bulk.schedule.scheduler import Scheduler


def work_left(scheduler: Scheduler, credential: str, category: str) -> int:
    """Return the requests still to be sent from that bucket, estimated (count)."""
    if isinstance(scheduler, RoutedScheduler):
        queue = scheduler.queues.get((credential, category))
        if queue is not None and scheduler.left_in(queue):
            unsent = scheduler.unsent_in(queue)
            costs = [paid_each(scheduler, job) for job in scheduler.jobs if job.operation.category == category]
            return -int(-unsent * max(costs) // 1)
    own = [job for job in scheduler.jobs if job.credential == credential and job.operation.category == category]
    # items that no process works on yet count where a job pays from this bucket: a pool member pays for what it gets
    left = float(scheduler.board.free) if own else 0.0
    for job in own:
        if not scheduler.is_skipped[job.number]:
            progress = scheduler.progress[job.number]
            items = max(0, progress.left - progress.copies_left - progress.in_flight)
            left += items * paid_each(scheduler, job)
    return -int(-left // 1)


def startable(scheduler: Scheduler, job: Job) -> int:
    """Return the items of a job that could begin now, if permits were there (count)."""
    progress = scheduler.progress[job.number]
    if scheduler.states[job.number] is not JobState.RUNNING or scheduler.is_skipped[job.number]:
        return 0
    if isinstance(scheduler, KeyedScheduler) and job.by_key:
        return scheduler.opened(job.number)
    return max(0, progress.left - progress.copies_left - progress.in_flight)


def waits_for(scheduler: Scheduler, job: Job) -> tuple[str, ...]:
    """Return names of the jobs without which no item of this job can begin now."""
    return scheduler.holds_up(job) if isinstance(scheduler, KeyedScheduler) else scheduler.waits_for(job)


def paid_each(scheduler: Scheduler, job: Job) -> float:
    """Return the requests that an item of this job costs its bucket: measured, or the most it can take."""
    return scheduler.progress[job.number].cost_of_one(job.operation.most_requests)
