"""The part of every budget that is left to others follows `limits.hours` while a run goes on (interface.md §2)."""

import logging
from dataclasses import replace
from typing import Protocol

from bulk.clock import Clock
from bulk.manifest.manifest import Limits

log = logging.getLogger("bulk.engine.hours")

MINUTE_S = 60.0
"""Hours begin and end with a minute."""


class Limited(Protocol):
    """A run, or whatever else has limits that can change."""

    limits: Limits

    def change_limits(self, limits: Limits) -> None:
        """Put these limits in force.

        Raises:
            ValueError: they would leave nothing to run with, and nothing changed.
        """


async def follow_hours(run: Limited, clock: Clock) -> None:
    """Have the reserve be that of the hour, until cancelled. What a person sets meanwhile holds until the next change;
    a clock that was set, or a machine that slept, is noticed within a minute."""
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
