"""How many requests are still to be sent: the governor paces by it, and the forecast ends with it."""

from bulk.manifest.manifest import Job
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
    # what nobody works on yet counts where a job pays from this bucket: a member of a pool pays for what it is given
    left = float(scheduler.board.free) if own else 0.0
    for job in own:
        if not scheduler.is_skipped[job.number]:
            progress = scheduler.progress[job.number]
            items = max(0, progress.left - progress.copies_left - progress.in_flight)
            left += items * paid_each(scheduler, job)
    return -int(-left // 1)


def paid_each(scheduler: Scheduler, job: Job) -> float:
    """Return the requests that an item of this job costs its bucket: measured, or the most it can take."""
    return scheduler.progress[job.number].cost_of_one(job.operation.most_requests)
