"""Limits of a run in a store: they stand in the row of the run, a person may change them, and its workers follow.

A reserve is not among them, because a budget in a store is shared by all runs with the same token; nor is a priority,
because workers take the parts of a run in their order. Source: interface.md §4.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bulk import quantities
from bulk.control.settable import NOT_IN_STORES, PRIORITY
from bulk.engine.steering import changed, in_force
from bulk.errors import RunDirectoryError, UsageError
from bulk.manifest.manifest import Limits
from bulk.store import runs
from bulk.store.connections import StoreConnection, sound
from bulk.store.runs import COMPLETE, StoredRun

MOST = "most_concurrency"
"""The name, in the row, of the `concurrency` that was submitted: it can't be set, and it bounds the one that can."""


def as_submitted(limits: Limits) -> Mapping[str, Any]:
    """Return the limits for the row of a new run."""
    return {
        **in_force(limits, {}),
        MOST: limits.concurrency,
        "request_timeout_s": limits.request_timeout_s,
    }


def settable(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the limits that are in force, as `bulk set` tells them; empty for a run that has none in its row."""
    return {name: row[name] for name in in_force(Limits(), {})} if MOST in row else {}


def applied(limits: Limits, row: Mapping[str, Any]) -> Limits:
    """Return `limits` with the values of the row."""
    with sound():
        failures, max_duration_s = row["failures"], row["max_duration"]
        return replace(
            limits,
            concurrency=int(row["concurrency"]),
            failures=None if failures is None else quantities.share(failures),
            max_duration_s=None if max_duration_s is None else float(max_duration_s),
        )


def set_limits(store: StoreConnection, run: StoredRun, given: Mapping[str, Any], who: str) -> Mapping[str, Any]:
    """Change limits of a run, all of them or none; returns all limits in force. Its workers hear of the change at once.

    Raises:
        UsageError: a value is not valid, or a name is not a limit that can be set in a store.
        RunDirectoryError: the run is complete, or an older version has submitted it.
    """
    if run.state == COMPLETE:
        raise RunDirectoryError(f"{run.name} is complete, so there is nothing to set")
    row = runs.change_limits(store, run, lambda row: _with(run, row, given), who, given)
    return settable(row)


def _with(run: StoredRun, row: Mapping[str, Any], given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the row with the given values."""
    if MOST not in row:
        raise RunDirectoryError(f"{run.name} was submitted by an older version: its limits stay as they are")
    limits = applied(Limits(), row)
    for name, value in given.items():
        try:
            if why := NOT_IN_STORES.get(PRIORITY if name.startswith(PRIORITY) else name):
                raise ValueError(why)
            limits = changed(limits, name, value, row[MOST])
        except ValueError as error:
            raise UsageError(f"{name}: {error}") from None
    return {**row, **in_force(limits, {}), "reserve": row["reserve"]}
