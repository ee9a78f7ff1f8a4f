"""Makes the status of a run from its parts, for the display, the log and `bulk status`.

Everything that waits is named, with the reason and the time until it goes on. Source: design.md §4, last point.
"""

import heapq
import os
from collections import deque
from collections.abc import Sequence

from bulk.clock import Clock
from bulk.engine.status.live_forecast import LiveForecast, lanes_in_memory
from bulk.engine.status.warnings import FailureWarnings
from bulk.execute.requests.request_sender import RequestSender
from bulk.execute.requests.wait_reasons import KINDS
from bulk.execute.writes.settle import Settler
from bulk.govern.governor import Governor
from bulk.govern.permits.accounts import PermitQueue, Trust
from bulk.schedule.job_progress import JobState
from bulk.schedule.remaining import waits_for
from bulk.schedule.scheduler import Scheduler
from bulk.status import LIVE, BucketStatus, JobStatus, RunStatus, Wait, WaitKind

SPAN_S = 10.0
"""Time over which throughput is measured (seconds)."""
WAITS_MOST = 20
UNREACHABLE = "platform unreachable"
LANES_MOST = 3


class Snapshot:
    """Makes a RunStatus whenever one is asked for."""

    def __init__(
        self,
        name: str,
        scheduler: Scheduler,
        governor: Governor,
        sender: RequestSender,
        settler: Settler,
        clock: Clock,
        errors: Sequence[FailureWarnings],
    ) -> None:
        self._name, self._scheduler, self._governor = name, scheduler, governor
        self._sender, self._settler, self._clock, self._errors = sender, settler, clock, errors
        self._live_forecast = LiveForecast(scheduler, governor, sender, settler, clock.monotonic())
        self._started_at = clock.now()
        self._waited: tuple[Wait, ...] = ()
        self._seen: deque[tuple[float, int]] = deque([(clock.monotonic(), self._done())])

    @property
    def is_sending(self) -> bool:
        """Whether anything is in flight, or being settled."""
        return bool(self._governor.concurrency.in_flight or self._settler.under_way or self._sender.downloads)

    def _done(self) -> int:
        return sum(sum(progress.ended.values()) for progress in self._scheduler.progress)

    def status(self, state: str, why: str = "") -> RunStatus:
        """Return the present status of the run."""
        now, wall = self._clock.monotonic(), self._clock.now()
        per_second = self._throughput(now)
        self._live_forecast.sample(now)
        queues = [queue for account in self._governor.accounts.values() for queue in account.queues.values()]
        waits = tuple(self._waits(queues, now, wall))
        if state == "running":
            self._waited = waits
        elif state == "stopped":  # nothing waits any more, but people ask what the run waited for
            waits = self._waited
        return RunStatus(
            name=self._name,
            state=state,
            at=wall,
            started_at=self._started_at,
            pid=os.getpid() if state in LIVE else None,
            jobs=tuple(self._job(number) for number in range(len(self._scheduler.jobs))),
            buckets=tuple(self._bucket(queue, now, wall) for queue in queues),
            waits=waits,
            requests=self._sender.requests,
            retries=self._sender.retries,
            settled=self._sender.settled,
            per_second=per_second,
            concurrency=self._governor.concurrency.allowed,
            in_flight=self._governor.concurrency.in_flight,
            finish_at=self._live_forecast.end_at(now, wall) if state == "running" else None,
            why=why,
        )

    def _throughput(self, now: float) -> float:
        done = self._done()
        self._seen.append((now, done))
        while len(self._seen) > 2 and now - self._seen[0][0] > SPAN_S:
            self._seen.popleft()
        span_s = now - self._seen[0][0]
        return (done - self._seen[0][1]) / span_s if span_s > 0.0 else 0.0

    def _job(self, number: int) -> JobStatus:
        scheduler = self._scheduler
        job, progress = scheduler.jobs[number], scheduler.progress[number]
        failure, failures = self._errors[number].most_frequent
        waits = waits_for(scheduler, job)
        is_waiting = waits and not progress.ended  # all items of the job may wait, each for an item of another job
        return JobStatus(
            name=job.name,
            operation=job.operation.name,
            items=progress.total if progress.is_known else None,
            outcomes={kind.value: count for kind, count in progress.ended.items()},
            in_flight=progress.in_flight,
            state=(JobState.WAITING if is_waiting else scheduler.states[number]).value,
            waits_for=waits,
            failure=failure,
            failures=failures,
        )

    def _bucket(self, queue: PermitQueue, now: float, wall: float) -> BucketStatus:
        bucket = queue.bucket
        opens_at = wall + queue.obstacle_until - now if queue.obstacle_until is not None else None
        offset = wall - self._governor.time.middle(now)
        return BucketStatus(
            credential=queue.account.name,
            category=queue.category,
            limit=bucket.limit if bucket is not None else None,
            remaining=bucket.free if bucket is not None else None,
            reserve=bucket.reserve if bucket is not None else 0,
            reset_at=bucket.reset_at + offset if bucket is not None else None,
            used=queue.used,
            pace=queue.rate,
            waiting=self._live_forecast.waiting(queue),
            closed_because=queue.obstacle if queue.waiting else "",
            opens_at=opens_at,
            window_s=self._live_forecast.window_s(queue, now) if bucket is not None else None,
        )

    def _waits(self, queues: list[PermitQueue], now: float, wall: float) -> list[Wait]:
        waits = [wait for queue in queues if (wait := self._wait_for_leave(queue, now, wall)) is not None]
        for (operation, index), until in list(self._settler.under_way.items())[:WAITS_MOST]:
            waits.append(Wait(f"settling {operation} #{index}", wall + until - now, kind=WaitKind.SETTLING))
        for path, poll in self._sender.polls.waits(now):
            until = wall + poll.not_before - now
            waits.append(Wait(f"poll interval of {path}", until, poll.waiting, WaitKind.POLL_INTERVAL))
        for pause in self._sender.wait_reasons.waits():
            until, errors = wall + pause.until - now, pause.count if pause.error else 0
            waits.append(Wait(pause.why, until, pause.count, KINDS[pause.why], pause.error, errors))
        left = sum(progress.left for progress in self._scheduler.progress)
        if left and self._scheduler.is_paused and all(wait.kind is not WaitKind.PAUSED for wait in waits):
            waits.insert(0, Wait("paused", None, left, WaitKind.PAUSED))  # none waits for leave to be sent
        longest = heapq.nlargest(LANES_MOST, lanes_in_memory(self._scheduler), key=lambda lane: lane.left)
        behind = [(lane.label, min(lane.left, left) - 1) for lane in longest]
        waits.extend(
            Wait(f"lane {label} {count} ahead", None, count, WaitKind.LANE) for label, count in behind if count > 0
        )
        for job in self._scheduler.jobs:
            if names := ", ".join(waits_for(self._scheduler, job)):
                count = max(1, self._scheduler.progress[job.number].left)
                waits.append(Wait(f"job {job.name} for {names}", None, count, WaitKind.NEEDS))
        return waits[:WAITS_MOST]

    def _wait_for_leave(self, queue: PermitQueue, now: float, wall: float) -> Wait | None:
        """Return what the items at a permit queue wait for, with the last error if they wait because of it."""
        waiting = self._live_forecast.waiting(queue)
        if queue.account.trust in (Trust.FROZEN, Trust.REFUSED) and queue.account.generation:
            what = f"credential {queue.account.name} refused (401)"
            return Wait(what, None, waiting, WaitKind.NEEDS) if waiting else None
        silence = self._governor.reachability
        if waiting and (silence.is_silent or (silence.unanswered and not self._governor.answers)):
            until = wall + silence.retry_at - now if silence.retry_at > now else None
            return Wait(UNREACHABLE, until, waiting, WaitKind.UNREACHABLE, silence.error, silence.unanswered)
        if not waiting or not (queue.obstacle or queue.is_paced):
            return None
        if not queue.obstacle:
            return Wait(f"pace of {queue.category}, {queue.rate or 0.0:.1f}/s", None, waiting, WaitKind.PACE)
        kind, errors, error = queue.obstacle_kind, queue.errors, queue.error
        if kind is not WaitKind.RETRY_AFTER:
            errors, error = 0, ""
        until = wall + queue.obstacle_until - now if queue.obstacle_until is not None else None
        return Wait(queue.obstacle, until, waiting, kind, error, errors)
