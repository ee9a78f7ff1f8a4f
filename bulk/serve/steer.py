"""Steering of a run from the page: the verbs of the control socket, and a retry or a resume as a child process.

The process that drives a run records who did what. A child process is a command like any other, in a session of its
own: it goes on when `bulk serve` ends.
"""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bulk.control import client
from bulk.engine.again import RETRIED, Again
from bulk.engine.agreement.gates import decide
from bulk.errors import BulkError
from bulk.exit_codes import COMPLETE, ExitCode
from bulk.ledger.directory import is_held
from bulk.model import ErrorCode
from bulk.report.run_state import next_command, run_state_of
from bulk.report.wave_gates import closed_gate
from bulk.serve.fleet import view_of
from bulk.storage.child_process import python

VERBS = ("pause", "resume", "stop", "set", "retry", "gate")
SETTABLE = ("concurrency", "reserve", "failures", "max_duration")
STARTING_LOOKS, LOOK_S = 300, 0.05
"""How often a child is checked until it has sent a request or has ended, and the pause between two checks (seconds)."""
WHO = "web"
_SAID_BYTES = 2_000


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a verb: the state of the run, and the limits in force where limits were set."""

    state: str
    in_force: Mapping[str, Any] = {}


class NotDone(Exception):
    """The verb was refused, or no process could do it; `command`: the command that does the same in a terminal."""

    def __init__(self, message: str, command: str = "") -> None:
        super().__init__(message)
        self.command = command


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """Which items a retry runs again; empty: all that did not succeed."""

    job: str = ""
    outcome: str = ""
    code: str = ""

    def again(self) -> Again:
        """Return the retry of these items.

        Raises:
            NotDone: items with this outcome or code can't be run again.
        """
        if self.outcome and self.outcome not in RETRIED:
            raise NotDone(f"{self.outcome} items are not run again")
        if self.code and self.code not in tuple(ErrorCode):
            raise NotDone("there is no such code")
        if "\0" in self.job:  # no argument of a command can hold it
            raise NotDone("there is no such job")
        jobs, outcomes, codes = ((word,) if word else () for word in (self.job, self.outcome, self.code))
        return Again(is_retry=True, jobs=jobs, outcomes=outcomes, codes=codes, by=WHO)

    def options(self) -> list[str]:
        """Return the options of `bulk retry` that choose these items.

        Raises:
            NotDone: items with this outcome or code can't be run again.
        """
        return [f"--{name}={value}" for name, value in self.again().args.items()]


class Steer:
    """Steers runs as a person asks for it. Calls block.

    Args:
        command: the beginning of every command of Bulk.
        pause: waits for the given time (seconds).
    """

    def __init__(self, pause: Callable[[float], object], command: Sequence[str] = tuple(python("bulk"))) -> None:
        self._command, self._pause = tuple(command), pause
        self._children: list[subprocess.Popen[bytes]] = []

    def do(self, run_dir: Path, verb: str, args: Mapping[str, Any], now: float) -> Done:
        """Do what a verb says to a run, and return the state of the run after that.

        Raises:
            NotDone: the verb was refused, or no process could do it.
        """
        self._children = [child for child in self._children if child.poll() is None]
        if verb == "retry":
            return self._start("retry", run_dir, chosen_of(args).options(), now)
        if verb == "gate":
            return self._open(run_dir, args, now)
        if verb == "resume" and not is_held(run_dir):
            return self._start("resume", run_dir, [], now)
        if verb == "set":
            args = settings_of(args)
        elif verb == "stop":
            args = {"now": True} if args.get("now") is True else {}
        else:
            args = {}
        try:
            answer = client.ask(run_dir, verb, args, who=WHO)
        except client.Silent:
            raise NotDone("the process that drives it does not answer") from None
        except client.Unreached:
            raise NotDone("nobody drives it", _way_on(run_dir, now)) from None
        if not answer.ok:
            raise NotDone(answer.error)
        return Done(state=answer.state, in_force=answer.in_force)

    def _open(self, run_dir: Path, args: Mapping[str, Any], now: float) -> Done:
        """Open the wave that the run waits for, or accept the wave that is over its budget, and resume the run."""
        view = view_of(run_dir)
        run_state = None if view is None else run_state_of(view, now)
        gate = closed_gate(run_state.why) if run_state is not None and run_state.state == "stopped" else None
        if gate is None or args != {"wave": gate.wave}:
            raise NotDone("it does not wait for that wave any more")
        try:
            if gate.is_over:
                decide(run_dir, accepted=frozenset((gate.wave,)))
            else:
                decide(run_dir, opened=gate.wave)
        except BulkError as error:
            raise NotDone(str(error)) from None
        what = f"{WHO}, wave {gate.wave} {'accepted' if gate.is_over else 'opened'}"
        return self._start("resume", run_dir, [], now, what)

    def _start(self, verb: str, run_dir: Path, options: list[str], now: float, by: str = WHO) -> Done:
        for _ in range(STARTING_LOOKS):  # a process that has just ended the run writes its reports first
            if not is_held(run_dir):
                break
            self._pause(LOOK_S)
        else:
            raise NotDone("a process drives it already")
        place = str(run_dir.absolute())
        command = [*self._command, verb, place, *options, "--progress", "none"]
        shown = _way_on(run_dir, now)
        with contextlib.ExitStack() as stack:
            try:
                said = stack.enter_context(tempfile.TemporaryFile())
                child = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=said,
                    start_new_session=True,
                    env={**os.environ, "BULK_STARTED_BY": by},
                )
            except OSError as error:
                raise NotDone(f"the command can't be started: {error.strerror}", shown) from None
            state = "checking"
            for _ in range(STARTING_LOOKS):
                with contextlib.suppress(client.Unreached, client.Silent):
                    answer = client.ask(run_dir, "status", who=WHO)
                    state = answer.state
                    if answer.status is not None and answer.status.requests:
                        break
                if child.poll() is not None:
                    break
                self._pause(LOOK_S)
            if child.poll() is None:
                self._children.append(child)
                return Done(state=state)
            if state_now := _ended_as(run_dir, child, now):  # the child has ended before it could be asked
                return Done(state=state_now)
            said.seek(max(0, os.fstat(said.fileno()).st_size - _SAID_BYTES))
            words = said.read().decode("utf-8", "replace").strip()
        raise NotDone(words or f"it has ended with exit code {child.returncode}", shown)


def _ended_as(run_dir: Path, child: subprocess.Popen[bytes], now: float) -> str:
    """Return the state of the run that `child` has driven; empty where the child began nothing, and said why."""
    view = view_of(run_dir)
    run_state = None if view is None else run_state_of(view, now)
    if run_state is None or not run_state.epochs or run_state.epochs[-1].pid != child.pid:
        return ""
    if child.returncode in COMPLETE:
        return "complete"
    last = run_state.epochs[-1].status
    has_sent = child.returncode == ExitCode.STOPPED and last is not None and last.requests > 0
    return run_state.state if has_sent else ""


def _way_on(run_dir: Path, now: float) -> str:
    view = view_of(run_dir)
    return "" if view is None else next_command(run_state_of(view, now), run_dir)


def settings_of(args: Mapping[str, Any]) -> dict[str, str]:
    """Return the limits that are to be set.

    Raises:
        NotDone: no limit is given, or one of the names can't be set.
    """
    found = {name: str(value).strip() for name, value in args.items() if name in SETTABLE and str(value).strip()}
    if not found or len(found) != len(args):
        raise NotDone(f"what can be set is {', '.join(SETTABLE)}")
    return found


def chosen_of(args: Mapping[str, Any]) -> Chosen:
    """Return which items the arguments of a retry choose.

    Raises:
        NotDone: the arguments are not valid.
    """
    try:
        return msgspec.convert(args, Chosen)
    except msgspec.ValidationError as error:
        raise NotDone(str(error)) from None
