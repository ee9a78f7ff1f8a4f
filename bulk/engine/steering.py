"""Steers a run while it goes on: a person may look, pause, go on, stop, or change a limit.

Everything but looking is recorded in the table `actions`. One Steering lives as long as a process holds the run
directory: a request that arrives during the check is carried out as soon as the run begins. Source: interface.md §5.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from bulk import quantities
from bulk.clock import Clock, iso_utc
from bulk.control.place import user_name
from bulk.control.protocol import Answer, Ask, Refused
from bulk.control.settable import PRIORITY, SETTABLE
from bulk.engine.again import Again
from bulk.engine.run import Run
from bulk.errors import BulkError, RunStopped
from bulk.exit_codes import ExitCode
from bulk.flaws import unknown_name
from bulk.ledger.records import Action
from bulk.ledger.rows import status_json
from bulk.manifest.manifest import Limits
from bulk.schedule.priorities import set_priority
from bulk.status import Display, RunStatus, Silence

NONE = "none"
"""The value that removes a limit, where the limit is optional."""


class Steering:
    """Answers the requests of the control socket for one run (`control.server.Steered`).

    Args:
        limits: the limits that the process was started with; `concurrency` can be lowered, and raised again up to its
            value here.
        priorities: the priorities of the jobs, by name.
    """

    def __init__(self, name: str, limits: Limits, priorities: Mapping[str, int], clock: Clock) -> None:
        self._started, self._clock = limits, clock
        self._priorities = dict(priorities)
        self._run: Run | None = None
        self._is_pausing = False
        self._limits = limits
        self._stop: BulkError | None = None
        self._actions: list[Action] = []
        now = clock.now()
        self._checked = RunStatus(name=name, state="checking", at=now, started_at=now)

    def attach(self, run: Run) -> None:
        """Attach the run that was checked, and carry out what was asked meanwhile."""
        self._run = run
        run.actions += self._actions
        self._actions = []
        if self._is_pausing:
            run.pause()
        if self._limits is not self._started:
            run.change_limits(self._limits)
        self._offer_by_priority(run)
        if self._stop is not None:
            run.stop(self._stop)

    @property
    def is_checking(self) -> bool:
        """Whether no run has begun yet."""
        return self._run is None

    @property
    def _state(self) -> str:
        return "checking" if self._run is None else self._run.state

    @property
    def _in_force(self) -> Limits:
        return self._limits if self._run is None else self._run.limits

    def answer(self, ask: Ask, who: str) -> Answer:
        """Do what is asked; see `control.server.Steered`."""
        if ask.verb == "watch":
            return self._said(status=self._status())
        if ask.verb == "status":
            return self._said(status=self._status(), in_force=in_force(self._in_force, self._priorities))
        try:
            changed = self._done(ask)
        except Refused as refused:
            self._note(ask, who, str(refused))
            raise
        self._note(ask, who, self._state)
        return self._said(in_force=changed)

    def refusal(self, refused: Refused) -> Answer:
        """See `control.server.Steered`."""
        return Answer(
            ok=False, state=self._state, at=iso_utc(self._clock.now()), error=str(refused), exit=refused.exit_code
        )

    def _said(self, *, in_force: Mapping[str, Any] | None = None, status: RunStatus | None = None) -> Answer:
        return Answer(ok=True, state=self._state, at=iso_utc(self._clock.now()), in_force=in_force or {}, status=status)

    def _status(self) -> RunStatus:
        told = self._checked if self._run is None else self._run.last_status
        now = msgspec.structs.replace(told, state=self._state, at=self._clock.now())
        return msgspec.json.decode(status_json(now), type=RunStatus)

    def _note(self, ask: Ask, who: str, result: str) -> None:
        action = Action(at=self._clock.now(), who=who, verb=ask.verb, args=ask.args, result=result)
        if self._run is None:
            self._actions.append(action)
        else:
            self._run.note_action(action)

    def note_start(self, again: Again) -> None:
        """Note that a person had this process resume the run, or retry items of it."""
        self._note(Ask(verb=again.verb, args=again.args), f"{user_name(os.getuid())} ({again.by[:40]})", self._state)

    def _done(self, ask: Ask) -> Mapping[str, Any] | None:
        match ask.verb:
            case "pause":
                self._refuse_ending()
                self._is_pausing = True
                if self._run is not None:
                    self._run.pause()
            case "resume":
                self._refuse_ending()
                self._is_pausing = False
                if self._run is not None:
                    self._run.go_on()
            case "stop":
                self._end(is_now=ask.args.get("now") is True)
            case _:
                return self._set(ask.args)
        return None

    def _refuse_ending(self) -> None:
        if self._stop is not None or self._state == "draining":
            raise Refused("the run is already ending", ExitCode.RUN_DIRECTORY)

    def _end(self, *, is_now: bool) -> None:
        self._stop = self._stop or RunStopped("it was stopped by `bulk stop`")
        if self._run is not None and is_now:
            self._run.stop_now(self._stop)
        elif self._run is not None:
            self._run.stop(self._stop)

    def _set(self, args: Mapping[str, Any]) -> Mapping[str, Any]:
        limits, priorities = self._in_force, dict(self._priorities)
        for name, given in args.items():
            try:
                if name.startswith(PRIORITY):
                    priorities[self._job(name)] = quantities.priority(given)
                else:
                    limits = changed(limits, name, given, self._started.concurrency)
            except ValueError as error:
                raise Refused(f"{name}: {error}", ExitCode.UNUSABLE) from None
        try:
            if self._run is not None:
                self._run.change_limits(limits)
        except ValueError as error:
            raise Refused(f"reserve: {error}", ExitCode.UNUSABLE) from None
        self._limits, self._priorities = limits, priorities
        if self._run is not None:
            self._offer_by_priority(self._run)
        return in_force(limits, priorities)

    def _job(self, name: str) -> str:
        job = name.removeprefix(PRIORITY)
        if job not in self._priorities:
            raise ValueError(unknown_name(job, self._priorities, "job"))
        return job

    def _offer_by_priority(self, run: Run) -> None:
        for job, priority in self._priorities.items():
            set_priority(run.scheduler, run.scheduler.numbers[job], priority)

    def follow(self, display: Display) -> Display:
        """Return a display that shows the same as `display`; `status` and `watch` report from it during the check."""
        return _Followed(display, self)

    def note_check(self, status: RunStatus) -> None:
        """Note how far the check is."""
        self._checked = status


class _Followed(Silence):
    def __init__(self, display: Display, steering: Steering) -> None:
        self._display, self._steering = display, steering

    def update(self, status: RunStatus) -> None:
        self._steering.note_check(status)
        self._display.update(status)

    def note(self, text: str) -> None:
        self._display.note(text)


def changed(limits: Limits, name: str, given: object, most_concurrency: int) -> Limits:
    """Return the limits with one of them changed to the value `given`, a text.

    Args:
        most_concurrency: the concurrency that the run was started with (count).

    Raises:
        ValueError: the limit can't have that value, or can't be set; the message says what was expected.
    """
    match name:
        case "concurrency":
            try:
                return replace(limits, concurrency=quantities.count(given, 1, most_concurrency))
            except ValueError as error:
                raise ValueError(f"{error}; the run was started with {most_concurrency}") from None
        case "reserve":
            return replace(limits, reserve=quantities.reserve(given))
        case "failures":
            return replace(limits, failures=None if given == NONE else quantities.share(given))
        case "max_duration":
            return replace(limits, max_duration_s=None if given == NONE else quantities.duration_s(given))
    raise ValueError(f"can't be set; expected one of {', '.join(SETTABLE)}")


def in_force(limits: Limits, priorities: Mapping[str, int]) -> Mapping[str, Any]:
    """Return the current value of everything that can be set: each limit and the priority of each job.

    Values are counts, shares such as `10%`, or seconds; null where there is no limit.
    """
    return {
        "concurrency": limits.concurrency,
        "reserve": limits.reserve.given,
        "failures": None if limits.failures is None else limits.failures.given,
        "max_duration": limits.max_duration_s,
        "priority": dict(priorities),
    }
