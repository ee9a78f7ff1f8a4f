"""The names of the limits that a person can set while a run goes on. Source: interface.md §4."""

from collections.abc import Mapping
from types import MappingProxyType

LIMITS = ("concurrency", "reserve", "failures", "max_duration")
PRIORITY = "priority."
"""Prefix before the name of a job, with which the priority of that job is set."""
SETTABLE = (*LIMITS, f"{PRIORITY}JOB")

NOT_IN_STORES: Mapping[str, str] = MappingProxyType(
    {
        "reserve": "all runs of a store share the budgets of a token: it can't be set for one of them",
        PRIORITY: "the workers of a store take the parts of a run in their order: it can't be set there",
    }
)
"""What can't be set for a run in a store, and why."""
IN_STORES = tuple(name for name in LIMITS if name not in NOT_IN_STORES)
"""The limits that can be set for a run in a store."""
