"""Steers a run in a store: for `bulk pause`, `resume`, `stop`, `set`, `retry`, `approve` and `watch`."""

import shlex
import sys
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

from bulk.cli import event_loop, output
from bulk.cli.commands.cluster import stored

if TYPE_CHECKING:
    from bulk.engine.again import Again
    from bulk.store.connections import StoreConnection
    from bulk.store.runs import StoredRun


def steer(run: str, address: str, verb: str, accepted: AbstractSet[int] = frozenset()) -> int:
    """Pause, resume or stop a run, for all workers; they hear of it at once, or within seconds.

    Args:
        accepted: waves that go on though they are over a budget (numbers).
    """
    with stored.opened(address, verb) as store:
        from bulk.cluster.stored_waves import open_waves, refuse_closed
        from bulk.cluster.submission import next_command
        from bulk.store import runs

        found = runs.find(store, run)
        if accepted:
            open_waves(store, found, stored.who(), accepted=accepted)
            found = runs.find(store, run)
        if verb == "resume":
            refuse_closed(found, next_command(found, address))
        state = runs.steer(store, found, verb, stored.who(), _WHY.get(verb, ""))
    ends = ": what is in flight ends first" if state in ("pausing", "stopping") else ""
    after = "" if verb == "resume" else f"; bulk resume {shlex.quote(run)} --store {shlex.quote(address)}"
    output.say(f"{run} is {state}{ends}{after}")
    return 0


_WHY = {"pause": "it was paused by `bulk pause`", "stop": "it was stopped by `bulk stop`"}


def retry(run: str, address: str, again: "Again") -> int:
    """Let workers do again the items that did not succeed, or a part of them."""
    with stored.opened(address, "retry") as store:
        from bulk.report.render.formatting import counted
        from bulk.store import runs

        found = runs.find(store, run)
        kinds, codes, jobs = again.chosen([job[0] for job in found.identity.jobs])
        count = runs.reopen(store, found, kinds, stored.who(), again.args, codes=codes, jobs=jobs)
    are = "is" if count == 1 else "are"
    again_said = f"{counted(count, 'item')} of {run} {are} done again"
    output.say(again_said if count else f"There is nothing to retry in {run}.")
    return 0


def set_limits(run: str, address: str, changes: Mapping[str, str]) -> Mapping[str, Any]:
    """Change limits of a run, for all workers; returns all limits that are in force."""
    with stored.opened(address, "set") as store:
        from bulk.cluster import stored_limits
        from bulk.store import runs

        return stored_limits.set_limits(store, runs.find(store, run), changes, stored.who())


def watch(run: str, address: str, progress: str) -> int:
    """Show where a run stands until it has ended."""
    from bulk.cli.progress.painter import display

    with stored.opened(address, "watch") as store:
        from bulk.cluster.submission import followed

        try:
            with display(progress, sys.stderr) as shown:
                found = event_loop.run(lambda: followed(run, store, shown))
        except KeyboardInterrupt:
            output.say(f"detached from {run}, which goes on")
            return 0
        return said(found, address)


def approve(run: str, address: str, wave: int) -> int:
    """Open the waves of a run up to `wave` (number); where the run waits for that wave, its workers go on."""
    with stored.opened(address, "approve") as store:
        from bulk.cluster.stored_waves import open_waves
        from bulk.store import runs

        state = open_waves(store, runs.find(store, run), stored.who(), opened=wave)
    output.out(f"waves up to {wave} of {run} are open; it is {state}")
    if state == runs.RUNNING:
        output.say(f"bulk watch {shlex.quote(run)} --store {shlex.quote(address)}")
    return 0


def say_of_earlier(name: str, store: "StoreConnection") -> None:
    """Print the state of a run that was submitted before."""
    from bulk.cluster.submission import next_command
    from bulk.store import runs

    run = runs.find(store, name)
    output.say(f"{name} was submitted before and is {run.state}, with the limits that it has there")
    if not run.is_live:
        output.say(next_command(run, str(store.address)))


def said(run: "StoredRun", address: str) -> int:
    """Print the state of a run that is not going on; return its exit code."""
    from bulk.cluster.submission import next_command

    output.say(f"{run.name} is {run.state}" + (f": {run.why}" if run.why else ""))
    output.say(next_command(run, address))
    return run.exit_code
