"""What is to be done besides sending items. The scheduler says so; whoever asks it does it and tells it afterwards."""

from dataclasses import dataclass
from typing import TypeAlias

from bulk.manifest.manifest import Job
from bulk.schedule.queues import Feed, Tier


@dataclass(frozen=True, slots=True)
class Skip:
    """Record that the items of this job are not tried, because what it needs did not succeed; then `passed_by`."""

    job: Job


@dataclass(frozen=True, slots=True)
class Make:
    """Make the items of this job from results of others; then `made`."""

    job: Job


@dataclass(frozen=True, slots=True)
class Copy:
    """Only copies are left of this job: record each as that item ended which asks for the same; then `passed_by`."""

    job: Job


@dataclass(frozen=True, slots=True)
class Find:
    """Find the next item of this feed, which lies far on in its source; then `arrived`."""

    tier: Tier
    feed: Feed


JobTask: TypeAlias = Skip | Make | Copy
