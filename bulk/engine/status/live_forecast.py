"""Predicts when this run ends by what it has measured: times and costs of items, latency, lanes, budgets, pauses.

The time of an item follows from how many items are under way and how many end (Little's law), so that nothing is noted
for each item. A forecast is made a few times a second and takes a few milliseconds. Source: design.md §4, last point.
"""

import math
from dataclasses import dataclass, replace

from bulk.execute.requests.request_sender import RequestSender
from bulk.execute.requests.wait_reasons import WaitReason
from bulk.execute.writes.settle import Settler
from bulk.forecast import WRITE_S, Budget, Capacity, Key, Work, forecast, window_length
from bulk.govern.governor import Governor
from bulk.govern.permits.accounts import Account, PermitQueue, Trust
from bulk.manifest.manifest import Job
from bulk.manifest.needs.wave_ends import gates_ahead
from bulk.schedule.lanes import Lane
from bulk.schedule.remaining import paid_each, startable
from bulk.schedule.routed_scheduler import RoutedScheduler
from bulk.schedule.scheduler import Scheduler

REMEMBERED = 15
"""After this many further items, plus six for each item under way, a measurement counts for a third (count)."""
LATENCY_S = 0.1
"""The latency that is assumed until an answer has come (seconds)."""
RESET_S = 0.05
YOUNG_ROUNDS = 12
"""Until a run is this many latencies old, it still finds out how many requests may be in flight (count)."""
EVERY_JOB_S = 0.02
"""Time between two computations of the end, for each job (seconds): with more jobs, a computation takes longer."""
SETTLES_S = 2.0
"""If a lost write is not settled after this long (seconds), it is expected to take the whole settle time."""


@dataclass(slots=True)
class _Pace:
    """How long items take, measured while they are under way. `busy_s`: items times seconds; `ended`: items; both fade.

    `lane`: the lane that is measured, if it is only one. `count`: items of the job that have ended, or that are left in
    the lane. `newness`: 1.0 until the first item has ended; then it fades.
    """

    busy_s: float = 0.0
    ended: float = 0.0
    count: int = 0
    newness: float = 1.0
    lane: Lane | None = None

    def note(self, under_way: int, ended: int, seconds: float) -> None:
        """Note that `under_way` items were under way for `seconds`, and that `ended` items ended in that time."""
        keeps = math.exp(-ended / (REMEMBERED + 6 * under_way))
        self.newness *= keeps
        self.busy_s = self.busy_s * keeps + under_way * seconds
        self.ended = self.ended * keeps + ended

    def item_s(self, expected_s: float, under_way: int) -> float:
        """Return the time of an item (seconds). `expected_s` counts as much as two measured items; at first each item
        under way counts as half done."""
        return (self.busy_s + 2.0 * expected_s) / (self.ended + 2.0 + 0.5 * under_way * self.newness)


def _waits_for_token(account: Account) -> bool:
    return account.trust is Trust.FROZEN and any(queue.waiting for queue in account.queues.values())


class LiveForecast:
    """Predicts the end of a run. Call `sample` whenever a status is made; `end_at` then returns the end."""

    def __init__(self, scheduler: Scheduler, governor: Governor, sender: RequestSender, settler: Settler, now: float):
        self._scheduler, self._governor, self._sender, self._settler = scheduler, governor, sender, settler
        self._paces = [_Pace() for _ in scheduler.jobs]
        self._lane_paces = [_Pace() for _ in scheduler.jobs]
        self._began = self._sampled = now
        self._due = now
        self._end_at: float | None = None
        self._windows: dict[Key, float] = {}

    def sample(self, now: float) -> None:
        """Take in the progress of every job. `now`: monotonic seconds."""
        seconds, self._sampled = now - self._sampled, now
        for job, pace, progress in zip(self._scheduler.jobs, self._paces, self._scheduler.progress, strict=True):
            pace.note(self._under_way(job), progress.finished - pace.count, seconds)
            pace.count = progress.finished
        self._sample_lanes(seconds)

    def _sample_lanes(self, seconds: float) -> None:
        """Note how fast the longest lane of each job goes: it may decide the end."""
        longest: dict[int, Lane] = {}
        for lane in self._scheduler.lanes_at_work:
            if lane.job not in longest or lane.left > longest[lane.job].left:
                longest[lane.job] = lane
        for number, pace in enumerate(self._lane_paces):
            busiest = longest.get(number)
            if busiest is not None and busiest is pace.lane:
                progress = self._scheduler.progress[number]
                is_held_up = self._under_way(self._scheduler.jobs[number]) < progress.in_flight
                pace.note(0 if is_held_up else 1, max(0, pace.count - busiest.left), seconds)
            pace.lane, pace.count = busiest, 0 if busiest is None else busiest.left

    def _under_way(self, job: Job) -> int:
        """Return how many items of a job wait for an answer or for the disk, not for a permit (count, >= 0)."""
        scheduler, progress = self._scheduler, self._scheduler.progress[job.number]
        queue = scheduler.queue_of(job)
        waiters = sum(len(permit_queue.waiters) for permit_queue in self._permit_queues(job))
        if not waiters:
            return progress.in_flight
        together = sum(
            other.in_flight
            for number, other in enumerate(scheduler.progress)
            if scheduler.queue_of(scheduler.jobs[number]) is queue
        )
        return max(0, round(progress.in_flight * (1.0 - min(1.0, waiters / max(1, together)))))

    def _permit_queues(self, job: Job) -> list[PermitQueue]:
        """Return where the requests of a job get their permits: at several queues, for a pool and for an App."""
        governor, queues = self._governor, self._scheduler.queues_of(job.number)
        names = [name for queue in queues for name in governor.pools.get(queue.credential, (queue.credential,))]
        return [governor.accounts[name].queues[job.operation.category] for name in names]

    def waiting(self, permit_queue: PermitQueue) -> int:
        """Return how many items wait for permits of a queue: those that want one now, and all that could begin."""
        if not permit_queue.waiting:
            return 0
        waiting = len(permit_queue.waiters)
        if permit_queue.account.is_minted:  # its items are those of one owner, and each newcomer is for one of them
            return waiting + len(permit_queue.newcomers)
        for job in self._scheduler.jobs:
            if (job.credential, job.operation.category) == (permit_queue.account.name, permit_queue.category):
                waiting += startable(self._scheduler, job)
        return waiting

    def end_at(self, now: float, wall: float) -> float | None:
        """Return when the run ends (UTC epoch seconds); None: the end can't be known. `now`: monotonic, `wall`: UTC,
        seconds."""
        if now >= self._due:
            self._due = now + EVERY_JOB_S * len(self._paces)
            is_reached = self._governor.answers and not self._governor.reachability.is_silent
            has_tokens = not any(map(_waits_for_token, self._governor.accounts.values()))
            self._end_at = self._worked_out(now, wall) if is_reached and has_tokens else None
        return None if self._end_at is None else max([self._end_at, *self._not_before(now, wall)])

    def _worked_out(self, now: float, wall: float) -> float | None:
        governor, concurrency = self._governor, self._governor.concurrency
        latency_s = mean_latency_s(governor) or LATENCY_S
        work = [self._work(job, latency_s) for job in self._scheduler.jobs]
        known = [each for each in work if each is not None]
        if len(known) < len(work):
            return None
        permit_queues = [
            permit_queue for account in governor.accounts.values() for permit_queue in account.queues.values()
        ]
        budgets = {
            (permit_queue.account.name, permit_queue.category): budget
            for permit_queue in permit_queues
            if (budget := self._budget(permit_queue, now, wall)) is not None
        }
        budgets |= {
            each.pays: budget
            for each in known
            if each.pays[0] in governor.pools and (budget := self._pooled(*each.pays, now, wall)) is not None
        }
        if isinstance(self._scheduler, RoutedScheduler):
            jobs = [self._scheduler.jobs[number] for number in self._scheduler.routed]
            budgets |= {
                (job.credential, job.operation.category): budget
                for job in jobs
                if (budget := self._of_installations(self._scheduler, job, now, wall)) is not None
            }
        is_young = now - self._began < YOUNG_ROUNDS * latency_s + 1.0
        is_full = concurrency.in_flight >= concurrency.allowed - 1
        most = concurrency.most if is_young or not is_full else concurrency.allowed
        capacity = Capacity(concurrency.allowed, most, concurrency.most, latency_s, reset_s=RESET_S)
        end_at, gates_s = forecast(known, budgets, capacity, wall).end_at, self._gates_s(now)
        return None if end_at is None or gates_s is None else end_at + gates_s

    def _gates_s(self, now: float) -> float | None:
        """Return how long the gates ahead stay closed together (seconds); None: a person has to open one of them."""
        own, after_s = list[int](), 0.0
        for progress in self._scheduler.progress:
            waves = progress.waves
            ends = [] if waves is None or not progress.is_known else waves.ends(progress.items)
            own.append(sum(end > progress.offered_until for end in ends))
            if waves is not None:
                after_s = waves.after_s
                if own[-1] and len(ends) > waves.opened:
                    return None
        closed = [pause.until for pause in self._sender.wait_reasons.waits() if pause.why is WaitReason.GATE]
        return gates_ahead(self._scheduler.jobs, own) * after_s + max(0.0, max(closed, default=now) - now)

    def _not_before(self, now: float, wall: float) -> list[float]:
        """Return the times that something waits for, and now, so that no end is in the past (UTC epoch seconds)."""
        settle_s = self._settler.settle_s
        moments = [
            until for until in self._settler.under_way.values() if until > now and until - settle_s + SETTLES_S < now
        ]
        moments += [poll.not_before for _, poll in self._sender.polls.waits(now)]
        moments += [pause.until for pause in self._sender.wait_reasons.waits()]
        for account in self._governor.accounts.values():
            moments += [
                permit_queue.obstacle_until or now
                for permit_queue in account.queues.values()
                if permit_queue.waiting and permit_queue.obstacle
            ]
        return [wall, *(wall + moment - now for moment in moments)]

    def _work(self, job: Job, latency_s: float) -> Work | None:
        """Return the work that is left of a job; None: it is not known how many items the job will have."""
        scheduler, progress = self._scheduler, self._scheduler.progress[job.number]
        items, under_way = float(progress.left - progress.copies_left), self._under_way(job)
        if not progress.is_known:
            derivation = job.derivation
            if derivation is None or derivation.each != "item":
                return None
            items = float(scheduler.progress[scheduler.numbers[derivation.job]].items)
        if scheduler.is_skipped[job.number]:
            items = 0.0
        cost = paid_each(scheduler, job)
        expected_s = max(1.0, cost) * latency_s + (0.0 if job.operation.is_read else WRITE_S)
        item_s = max(1e-6, self._paces[job.number].item_s(expected_s, under_way))
        paid = self._paid_ahead(job)
        lanes, longest = self._lanes_of(job)
        return Work(
            name=job.name,
            pays=(job.credential, job.operation.category),
            items=items,
            cost=max(0.0, cost - paid / items) if items else cost,
            item_s=item_s,
            lanes=max(1.0, lanes) if longest else math.inf,
            longest=min(float(longest), items),
            lane_s=self._lane_paces[job.number].item_s(item_s, 0) if longest else None,
            needs=job.barriers,
            follows=tuple(need.job for need in job.by_key),
            opened=float(startable(scheduler, job) + progress.in_flight) if job.by_key else 0.0,
            priority=scheduler.priorities[job.number],
            is_running=under_way > 0,
        )

    def _paid_ahead(self, job: Job) -> float:
        """Return for how many requests of a job's items under way the bucket has paid already (count)."""
        scheduler = self._scheduler
        queue = scheduler.queue_of(job)
        mine = [other for other in scheduler.jobs if scheduler.queue_of(other) is queue]
        progress = [scheduler.progress[other.number] for other in mine]
        used = sum(permit_queue.used for permit_queue in self._permit_queues(job))
        paid = used - sum(each.paid for each in progress)
        under_way = sum(each.in_flight for each in progress)
        return max(0, paid) * scheduler.progress[job.number].in_flight / under_way if under_way else 0.0

    def _lanes_of(self, job: Job) -> tuple[float, int]:
        """Return the number of lanes of a job (infinity: not all are known), and how many items the longest lane has
        left at most.
        """
        left = [lane.left for lane in lanes_in_memory(self._scheduler) if lane.job == job.number]
        lanes = math.inf if self._scheduler.tier_of[job.number].cursors else float(len(left))
        return lanes, max(left, default=0)

    def _budget(self, permit_queue: PermitQueue, now: float, wall: float) -> Budget | None:
        """Return the budget of a permit queue; None: it has no limit, and nothing keeps it closed."""
        governor, bucket = self._governor, permit_queue.bucket
        closed = [permit_queue.account.paused_until, governor.quiet_until]
        if (
            permit_queue.obstacle
            and permit_queue.obstacle_until is not None
            and not permit_queue.obstacle.startswith("bucket ")
        ):
            closed.append(permit_queue.obstacle_until)
        opens_at = wall + max(0.0, max(closed) - now)
        if bucket is None:
            is_open = opens_at <= wall
            return None if is_open else Budget(math.inf, math.inf, 3_600.0, None, opens_at, is_even=False)
        reset_s = bucket.reset_at - governor.time.middle(now)
        return Budget(
            limit=float(max(0, bucket.limit - bucket.reserve)),
            left=float(bucket.available),
            window_s=self.window_s(permit_queue, now),
            reset_at=wall + reset_s,
            opens_at=opens_at,
            is_even=governor.user_limits.is_even,
        )

    def _pooled(self, pool: str, category: str, now: float, wall: float) -> Budget | None:
        """Return what the members of a pool have together; None: one of them has no limit, and nothing keeps it
        closed."""
        accounts = [self._governor.accounts[name] for name in self._governor.pools[pool]]
        usable = [each.queues for each in accounts if each.trust is not Trust.REFUSED]
        queues = [each[category] for each in usable if category in each]
        payers = {id(queue.bucket or queue): queue for queue in queues}.values()  # one bucket for each user
        budgets = [budget for queue in payers if (budget := self._budget(queue, now, wall)) is not None]
        if not budgets or len(budgets) < len(payers):
            return None
        ends = [budget.reset_at for budget in budgets if budget.reset_at is not None]
        return Budget(
            limit=sum(budget.limit for budget in budgets),
            left=sum(budget.left for budget in budgets),
            window_s=max(budget.window_s for budget in budgets),
            reset_at=max(ends, default=None),
            opens_at=min(budget.opens_at for budget in budgets),
            is_even=False,
        )

    def _of_installations(self, scheduler: RoutedScheduler, job: Job, now: float, wall: float) -> Budget | None:
        """Return what the installations of an App have for a job, as if each had a share of all that is left: the one
        that is done last decides. None: nothing limits them, as far as is known.

        One that has not been asked yet is taken to have as much as the largest of the others.
        """
        wanted = [scheduler.unsent_in(queue) * paid_each(scheduler, job) for queue in scheduler.queues_of(job.number)]
        budgets = [self._budget(permit_queue, now, wall) for permit_queue in self._permit_queues(job)]
        told = [budget for budget in budgets if budget is not None and math.isfinite(budget.limit)]
        if not told or not any(wanted):
            return None
        most = max(told, key=lambda budget: budget.limit)
        usual = replace(most, left=most.limit, reset_at=wall + most.window_s, opens_at=wall)

        def late(pair: tuple[float, Budget]) -> tuple[float, float, float]:
            lacking = pair[0] - pair[1].left
            return lacking / max(1.0, pair[1].limit), pair[1].reset_at or 0.0, pair[0]

        pairs = [(each, budget or usual) for each, budget in zip(wanted, budgets, strict=True) if each]
        own, last = max(pairs, key=late)
        share = sum(wanted) / own
        return replace(last, limit=last.limit * share, left=last.left * share)

    def window_s(self, permit_queue: PermitQueue, now: float) -> float:
        """Return the length of the windows of a bucket (seconds): as a new window has shown it, or else an estimate."""
        bucket, key = permit_queue.bucket, (permit_queue.account.name, permit_queue.category)
        assert bucket is not None, "asked where there is one"
        if bucket.window > 1:
            return max(1.0, math.ceil(bucket.window_s - 0.05))
        if key not in self._windows:
            is_whole = bucket.free + bucket.sent - bucket.given_back >= bucket.limit
            left = bucket.limit if is_whole else bucket.free
            self._windows[key] = window_length(permit_queue.category, bucket.limit, left, bucket.window_s)
        return self._windows[key]


def lanes_in_memory(scheduler: Scheduler) -> list[Lane]:
    """Return the lanes with an item under way, and those whose next item may begin or waits for its job."""
    lanes = [item[2] for queue in scheduler.queues.values() for tier in queue.tiers.values() for item in tier.ready]
    lanes += [lane for parked in scheduler.parked_lanes.values() for lane in parked]
    return [*scheduler.lanes_at_work, *lanes]


def mean_latency_s(governor: Governor) -> float:
    """Return the recent mean time from a permit to its answer (seconds); 0.0 before the first answer."""
    return governor.concurrency.mean_s
