"""The course of a run, from event to event until no work is left: its end, as far as it can be known.

Work is held up by the requests that may be in flight, lanes of one item at a time, budgets with their windows, pauses,
and jobs that need others. Between two events (a job ends, a budget is spent, a window opens, a pause ends) everything
flows evenly, so that there are as many steps as events; a long row of windows that are all spent to the end is one
step. The callers of the model measure the values that it takes as known.
Source: design.md §4 and §5; sandbox.md (a window begins with the first request, at a whole second).
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from bulk.forecast.flow import NONE_LEFT, BudgetFlow, JobFlow, level
from bulk.forecast.work import Budget, Capacity, Forecast, Key, Work

STEPS_MOST = 5_000
"""A forecast that has not ended after this many events is given up (count)."""

FULL_SHARE = 0.9
"""If at least this share of the requests that may be in flight are, the limit counts as used up."""


def forecast(work: Sequence[Work], budgets: Mapping[Key, Budget], capacity: Capacity, now: float) -> Forecast:
    """Return when `work` ends if it goes on from `now`. A payer without a budget has no limit."""
    return _Course(work, budgets, capacity, now).run()


class _Course:
    """One way through the events, in seconds from the beginning; `run` is called once."""

    def __init__(self, work: Sequence[Work], budgets: Mapping[Key, Budget], capacity: Capacity, now: float) -> None:
        self._capacity, self._began, self._now = capacity, now, 0.0
        self._jobs = {each.name: JobFlow(each) for each in work}
        self._budgets = {each.pays: BudgetFlow(budgets.get(each.pays), now) for each in work}
        for job in self._jobs.values():
            others = (self._jobs[name] for name in job.work.follows if name in self._jobs)
            job.follows = [other for other in others if other.work.items]
        self._following = [job for job in self._jobs.values() if job.follows]
        self._full_s = 0.0
        self._is_full = False
        self._requests_waiting = dict.fromkeys(self._budgets, 0.0)
        self._needs_left: dict[str, int] = {}
        self._needed_by: dict[str, list[JobFlow]] = {}
        for name, job in self._jobs.items():
            self._requests_waiting[job.work.pays] += job.requests
            needs = {need for need in job.work.needs if need in self._jobs}
            self._needs_left[name] = len(needs)
            for need in needs:
                self._needed_by.setdefault(need, []).append(job)
        self._waiting = [job for name, job in self._jobs.items() if not self._needs_left[name]]
        self._running: dict[Key, list[JobFlow]] = {}
        self._needed = {name for each in work for name in (*each.needs, *each.follows)}
        self._closing: list[JobFlow] = []
        self._ends: dict[str, float] = {}

    def run(self) -> Forecast:
        """Go from event to event until no work is left, or no job moves any more."""
        for _ in range(STEPS_MOST):
            while self._has_ended() or self._has_begun() or self._has_closed():
                pass
            if len(self._ends) == len(self._jobs):
                return Forecast(self._began + max(self._ends.values(), default=0.0), self._all_ends())
            self._let_flow()
            until = min(self._moments(), default=math.inf)
            if until == math.inf:
                break
            self._pass_time(max(self._now, until))
        return Forecast(None, self._all_ends())

    def _all_ends(self) -> dict[str, float]:
        return {name: self._began + seconds for name, seconds in self._ends.items()}

    def _has_ended(self) -> bool:
        over = [job for job in self._closing if job.ends_at <= self._now]
        for job in over:
            self._closing.remove(job)
            self._end(job)
        return bool(over)

    def _end(self, job: JobFlow) -> None:
        """Note that the job has ended; what needed this job alone waits no longer for others."""
        self._ends[job.work.name] = job.ends_at
        for other in self._needed_by.get(job.work.name, ()):
            self._needs_left[other.work.name] -= 1
            if not self._needs_left[other.work.name]:
                self._waiting.append(other)

    def _has_begun(self) -> bool:
        ready = [job for job in self._waiting if job.may_follow_at <= self._now]
        for job in ready:
            job.begins_at = self._now
            key = job.work.pays
            self._waiting.remove(job)
            self._requests_waiting[key] -= job.requests
            self._running.setdefault(key, []).append(job)
            self._budgets[key].part(self._now)
        return bool(ready)

    def _has_closed(self) -> bool:
        done = [job for jobs in self._running.values() for job in jobs if job.left <= NONE_LEFT]
        done = [job for job in done if all(other.ends_at < math.inf for other in job.follows)]
        for job in done:
            name, key = job.work.name, job.work.pays
            self._running[key].remove(job)
            if not self._running[key]:
                del self._running[key]
            self._budgets[key].part(self._now)
            job.close(self._now)
            if name in self._needed:
                self._closing.append(job)
            else:
                self._end(job)
        return bool(done)

    def _rounds(self) -> int:
        """Return how often the limit of items in flight has doubled: it grows only while it is used up."""
        return math.floor(self._full_s / self._capacity.round_s + 1e-9)

    def _in_flight(self) -> float:
        capacity = self._capacity
        if capacity.now >= capacity.most or capacity.round_s <= 0.0:
            return capacity.most
        return min(capacity.most, capacity.now * 2.0 ** min(64, self._rounds()))

    def _let_flow(self) -> None:
        """Set the rate of every job; a job that follows others goes by their rates."""
        for job in self._following:
            job.fed = math.inf
        running, shares = self._set_rates()
        for _ in self._following:
            before = [job.fed for job in self._following]
            for job in self._following:
                job.feed()
            if before == [job.fed for job in self._following]:
                break
            running, shares = self._set_rates()
        for job in self._following:
            job.keep_behind()
        for key, budget in self._budgets.items():
            budget.spend(sum(job.rate * job.work.cost for job in running.get(key, ())), self._now)
        used = sum(job.rate * job.work.item_s for jobs in running.values() for job in jobs)
        self._is_full = used >= self._in_flight() * FULL_SHARE
        for (key, jobs), share in zip(running.items(), shares, strict=True):
            is_in_bursts = self._budgets[key].is_in_bursts
            room = share - sum(job.rate * job.work.item_s for job in jobs)
            for job in jobs:
                job.flows(self._now, room + job.rate * job.work.item_s, is_in_bursts=is_in_bursts)

    def _set_rates(self) -> tuple[dict[Key, list[JobFlow]], list[float]]:
        """Set rates by the limit of items in flight, by lanes, and by the pace of budgets.

        Returns the jobs that flow, and the share of each payer in the items that may be in flight (count).
        """
        running: dict[Key, list[JobFlow]] = {}
        for key, jobs in self._running.items():
            if self._budgets[key].is_closed(self._now):
                for job in jobs:
                    job.stop()
            else:
                running[key] = jobs
        wanted = [min(self._capacity.each, sum(job.most_in_flight for job in jobs)) for jobs in running.values()]
        shares = level(wanted, [1.0] * len(wanted), self._in_flight())
        for (key, jobs), share in zip(running.items(), shares, strict=True):
            _spread(jobs, share, lambda job: job.most_per_s, lambda job: job.work.item_s)
            # jobs that wait for others count too: the governor paces for all requests that are left
            requests = self._requests_waiting[key] + sum(job.requests for job in jobs)
            pace = self._budgets[key].pace(requests, self._now)
            if pace is not None:
                _spread(jobs, pace, lambda job: job.rate, lambda job: job.work.cost)
        self._keep_to_capacity(running)
        return running, shares

    def _keep_to_capacity(self, running: Mapping[Key, Sequence[JobFlow]]) -> None:
        if self._capacity.per_second == math.inf:
            return
        all_jobs = [job for jobs in running.values() for job in jobs]
        asked = sum(job.rate * max(1.0, job.work.cost) for job in all_jobs)
        if asked > self._capacity.per_second:
            for job in all_jobs:
                job.rate *= self._capacity.per_second / asked

    def _moments(self) -> Iterator[float]:
        """Yield the moments at which something may change next (seconds from the beginning)."""
        for job in self._closing:
            yield job.ends_at
        for job in self._waiting:
            if job.follows and self._now < job.may_follow_at < math.inf:
                yield job.may_follow_at
        for key, jobs in self._running.items():
            yield from self._budgets[key].moments(self._now)
            for job in jobs:
                if job.rate > 0.0:
                    yield self._now + job.until_change_s()
        if self._is_full and self._in_flight() < self._capacity.most:
            yield self._now + (self._rounds() + 1) * self._capacity.round_s - self._full_s

    def _pass_time(self, until: float) -> None:
        seconds = until - self._now
        self._full_s += seconds if self._is_full else 0.0
        for jobs in self._running.values():
            for job in jobs:
                job.pass_time(seconds)
        for key, budget in self._budgets.items():
            requests = sum(job.requests for job in self._running.get(key, ()))
            budget.pass_time(seconds, until, requests, self._capacity.reset_s)
        self._now = until


def _tiers(jobs: Sequence[JobFlow]) -> Iterator[list[JobFlow]]:
    """Yield the jobs of the highest priority first."""
    priorities = {job.work.priority for job in jobs}
    if len(priorities) == 1:
        yield list(jobs)
        return
    for priority in sorted(priorities, reverse=True):
        yield [job for job in jobs if job.work.priority == priority]


def _spread(
    jobs: Sequence[JobFlow], whole: float, most: Callable[[JobFlow], float], weight: Callable[[JobFlow], float]
) -> None:
    """Share `whole` among jobs, higher priorities first; those of one priority begin as many items in a second.

    Args:
        most: returns the items of a job that may begin in a second (count). weight: returns how much of `whole` an
            item of a job takes.
    """
    for tier in _tiers(jobs):
        weights = [weight(job) for job in tier]
        rates = level([most(job) for job in tier], weights, whole)
        for job, rate, taken in zip(tier, rates, weights, strict=True):
            job.rate = rate
            whole -= rate * taken
