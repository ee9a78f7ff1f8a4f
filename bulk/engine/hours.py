"""Changes the reserve by `limits.hours` while a run goes on (interface.md §2)."""

import logging
from dataclasses import replace
from typing import Protocol

from bulk.clock import Clock
from bulk.manifest.manifest import Limits

log = logging.getLogger("bulk.engine.hours")

MINUTE_S = 60.0
"""The length of a minute (seconds): hours begin and end with one."""


class Limited(Protocol):
    """A run, or another object with limits that can change."""

    limits: Limits

    def change_limits(self, limits: Limits) -> None:
        """Put these limits in force.

        Raises:
            ValueError: the limits would leave nothing to run with; they stay as they were.
        """


async def follow_hours(run: Limited, clock: Clock) -> None:
    """Set the reserve to that of the hour whenever it changes, until cancelled.

    A reserve that a person sets holds until the next change. A clock that was set, or a machine that slept, is noticed
    within a minute.
    """
    limits = run.limits
    before = limits.reserve
    while limits.hours:
        reserve = limits.reserve_at(clock.now())
        if reserve != before:
            before = reserve
            try:
                run.change_limits(replace(run.limits, reserve=reserve))
            except ValueError as error:
                log.warning("limits.hours: %s; the reserve stays as it is", error)
        await clock.sleep(MINUTE_S - clock.now() % MINUTE_S)
