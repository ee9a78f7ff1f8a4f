"""A pool: several payers of which one after the other is drained.

First comes the one whose window is open already and ends soonest, then those that were not touched, in the order of
the manifest: were the requests dealt out in turn, all windows would begin together and be empty together. An item stays
with the member that it began with, because another one may see something else; where that one can't go on for a while,
a read of few requests begins anew with another. Source: interface.md §2 (pools).
"""

from collections.abc import Sequence

import anyio

from bulk.errors import CredentialRefused
from bulk.govern.governor import Governor
from bulk.govern.permits.accounts import Permit, PermitQueue, Trust

LOOK_S = 0.25
"""How often it is looked whether another member has something left (seconds)."""
SHORT_S = 1.0
"""A pause that is over so soon is waited for (seconds)."""
MOST_AGAIN = 10
"""An item of more requests than this is not begun anew: they were in vain (count)."""


class MemberStuck(Exception):
    """Nothing of the member that an item began with leaves for a while, and another one has something left."""


class Pool:
    """The members of a pool in one category.

    Args:
        queues: of the members, in the order of the manifest.
    """

    def __init__(self, governor: Governor, queues: Sequence[PermitQueue]) -> None:
        self._governor, self._queues = governor, queues
        self._current = queues[0]

    async def permit(self) -> Permit:
        """Return a permit for an item that nobody has begun yet, of the member whose turn it is.

        Raises:
            CredentialRefused: of all members.
            Draining: the run is ending.
        """
        while True:
            queues = [self._current]  # nearly always: it is the first of them as long as it has something left
            if self._current.bucket is None or self._current.is_paced or self._is_stuck(self._current):
                queues = self._in_order()
            for queue in queues:
                permit = self._governor.permit_nowait(queue)
                if permit is not None:
                    self._current = queue
                    return permit
            waits_at = next((queue for queue in queues if not self._is_stuck(queue)), queues[0])
            with anyio.move_on_after(LOOK_S):
                try:
                    permit = await self._governor.permit(waits_at, is_new=True)
                    self._current = waits_at
                    return permit
                except CredentialRefused:
                    if all(queue.account.trust is Trust.REFUSED for queue in self._queues):
                        raise

    async def permit_of(self, queue: PermitQueue, requests: int) -> Permit:
        """Return a permit for an item that began with that member, and has sent so many requests.

        Raises:
            MemberStuck: it should begin anew, with another member.
            CredentialRefused, Draining: see `Governor.permit`.
        """
        while True:
            if requests <= MOST_AGAIN and self._is_stuck(queue) and not all(map(self._is_stuck, self._queues)):
                raise MemberStuck
            with anyio.move_on_after(LOOK_S):
                return await self._governor.permit(queue)

    def _is_stuck(self, queue: PermitQueue) -> bool:
        account = queue.account
        is_paused = account.paused_until > self._governor.clock.monotonic() + SHORT_S
        return is_paused or account.trust in (Trust.FROZEN, Trust.REFUSED) or _is_empty(queue)

    def _in_order(self) -> list[PermitQueue]:
        """Return the members that may have something left, the one whose turn it is first; else the next to reset."""
        usable = [queue for queue in self._queues if queue.account.trust is not Trust.REFUSED]
        with_some = [queue for queue in usable if not _is_empty(queue)]
        if with_some:
            return sorted(with_some, key=_turn)
        return sorted(usable or self._queues, key=lambda queue: queue.bucket.reset_at if queue.bucket else 0.0)


def _is_empty(queue: PermitQueue) -> bool:
    bucket = queue.bucket
    return bucket is not None and bucket.available <= 0


def _turn(queue: PermitQueue) -> tuple[int, float]:
    bucket = queue.bucket
    if bucket is None or (bucket.own == 0 and bucket.available >= bucket.limit - bucket.reserve):
        return 1, 0.0  # sorting keeps the order of the manifest
    return 0, bucket.reset_at


def join_payers(queues: Sequence[Sequence[PermitQueue]]) -> None:
    """Let queues of each group share their bucket: they are of tokens whose requests one payer pays for."""
    for group in queues:
        for queue in group:
            queue.siblings = tuple(other for other in group if other is not queue)
