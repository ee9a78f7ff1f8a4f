"""Gives a job another priority while the run goes on: what the job offers moves to another tier of its queue.

Items that workers hold already keep their turn. A lane keeps its order, whatever the priorities. Source: design.md §5.
"""

from bulk.schedule.queues import Tier
from bulk.schedule.scheduler import Scheduler


def set_priority(scheduler: Scheduler, number: int, priority: int) -> None:
    """Offer a job (number) with this priority from now on."""
    old = scheduler.priorities[number]
    if priority == old:
        return
    scheduler.priorities[number] = priority
    for queue in scheduler.queues_of(number):
        before, after = queue.tiers[old], queue.tiers.setdefault(priority, Tier())
        others = [
            other for other in range(len(scheduler.jobs)) if other != number and scheduler.priorities[other] == old
        ]
        is_last = not any(queue in scheduler.queues_of(other) for other in others)
        # lanes of other jobs that are left there move to their own tier as soon as their turn comes
        before.move(None if is_last else number, after)
        if is_last:
            del queue.tiers[old]
        queue.tiers = dict(sorted(queue.tiers.items(), reverse=True))
    scheduler.tier_of[number] = scheduler.queues_of(number)[0].tiers[priority]
