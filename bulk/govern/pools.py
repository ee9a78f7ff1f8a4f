"""A pool: several payers that are drained one after the other.

The member whose window is open already and ends soonest comes first. The members that were not used yet follow in the
order of the manifest. If requests were dealt out in turn, all windows would begin together and be empty together. An
item stays with the member that it began with, because another member may see something else. If that member can't go on
for a while, an item of few requests begins anew with another member, unless it has a write that may have been carried
out and must not be repeated. Source: interface.md §2 (pools).
"""

from collections.abc import Sequence

import anyio

from bulk.errors import CredentialRefused
from bulk.govern.governor import Governor
from bulk.govern.permits.accounts import Permit, PermitQueue, Trust

LOOK_S = 0.25
"""Time between two looks whether another member has requests left (seconds)."""
SHORT_S = 1.0
"""A member's pause that ends within this time is waited for (seconds)."""
ERRORS = 8
"""After this many requests in a row without a good answer (count), other members go first that have met fewer."""
MOST_AGAIN = 10
"""An item that has sent more requests than this is not begun anew, as they would all be in vain (count)."""
MOST_SETTLING = 40
"""The same for one that settles a lost write: otherwise its lane waits until the member gives good answers again."""


# Python 3.11 looks a member of an enumeration up through a descriptor, forty times slower than a name
_PROVEN, _FROZEN, _REFUSED = Trust.PROVEN, Trust.FROZEN, Trust.REFUSED


class MemberStuck(Exception):
    """The member that an item began with can send nothing for a while, and another member can."""


class Pool:
    """The members of a pool in one category.

    Args:
        queues: permit queues of the members, in the order of the manifest.
    """

    def __init__(self, governor: Governor, queues: Sequence[PermitQueue]) -> None:
        self._governor, self._queues = governor, queues
        self._current = queues[0]
        self._woken_at = 0.0

    async def permit(self) -> Permit:
        """Return a permit of the member whose turn it is, for an item that no worker has begun yet.

        Raises:
            CredentialRefused: the platform does not take the credential of any member.
            Draining: the run is ending.
        """
        while True:
            current = self._current
            queues = [current]  # as nearly always: a member stays the first as long as it has requests left
            if current.bucket is None or current.is_paced or self._is_stuck(current) or self._is_held(current):
                queues = self._in_order()
            for queue in queues:
                permit = self._governor.permit_nowait(queue)
                if permit is not None:
                    self._current = queue
                    return permit
            waits_at = next((queue for queue in queues if not self._is_stuck(queue)), queues[0])
            self._wake(queues)
            with anyio.move_on_after(LOOK_S):
                try:
                    permit = await self._governor.permit(waits_at, is_new=True)
                    self._current = waits_at
                    return permit
                except CredentialRefused:
                    if all(queue.account.trust is _REFUSED for queue in self._queues):
                        raise

    def _wake(self, queues: Sequence[PermitQueue]) -> None:
        """Have `/rate_limit` asked for each of these members when that is due: who waits at one waits for all."""
        now = self._governor.clock.monotonic()
        if len(queues) > 1 and now >= self._woken_at + LOOK_S:
            self._woken_at = now
            for queue in queues:
                queue.account.wake()

    async def permit_of(self, queue: PermitQueue, requests: int) -> Permit:
        """Return a permit for an item that began with the member of `queue` and has sent `requests` requests (count).

        Raises:
            MemberStuck: the item should begin anew with another member.
            CredentialRefused, Draining: see `Governor.permit`.
        """
        while True:
            self.leave(queue, requests)
            with anyio.move_on_after(LOOK_S):
                return await self._governor.permit(queue)

    def leave(self, queue: PermitQueue, requests: int, *, is_settling: bool = False) -> None:
        """Raise MemberStuck if an item that began with the member of `queue` and has sent `requests` requests (count)
        should begin anew with another member; `is_settling`: it reads what became of a lost write."""
        if requests > (MOST_SETTLING if is_settling else MOST_AGAIN):
            return
        others = [other for other in self._queues if other is not queue and not self._is_stuck(other)]
        if not is_settling and others and self._is_stuck(queue):
            raise MemberStuck
        if queue.errors >= ERRORS and not all(map(self._is_held, others)):
            raise MemberStuck

    def _is_stuck(self, queue: PermitQueue) -> bool:
        account = queue.account
        is_paused = account.paused_until > self._governor.clock.monotonic() + SHORT_S
        return is_paused or account.trust in (_FROZEN, _REFUSED) or self._is_empty(queue)

    def _is_held(self, queue: PermitQueue) -> bool:
        """Return whether the member waits for something of its own (a pause, a try, a new token, its share in flight),
        or gets no good answers: nobody uses it while another one has requests left.
        """
        account, governor = queue.account, self._governor
        now = governor.clock.monotonic()
        if account.paused_until > now or account.trust is not _PROVEN or queue.errors >= ERRORS:
            return True
        if account.token_expiry.ends_at is not None and governor.has_ended(account, now):
            return True
        return account.ramp is not None and not account.ramp.has_room(account.in_flight)

    def _is_empty(self, queue: PermitQueue) -> bool:
        """Return whether nothing is left in a window that is not over, or ever."""
        bucket, governor = queue.bucket, self._governor
        if bucket is None:
            return queue.hopeless > 0
        return bucket.available <= 0 and governor.time.middle(governor.clock.monotonic()) < bucket.reset_at

    def _in_order(self) -> list[PermitQueue]:
        """Return the usable queues by their turn; those that have nothing left are the last, by their reset."""
        usable = [queue for queue in self._queues if queue.account.trust is not _REFUSED]
        return sorted(usable or self._queues, key=self._turn)

    def _turn(self, queue: PermitQueue) -> tuple[bool, bool, bool, float]:
        bucket = queue.bucket
        is_empty, is_held = self._is_empty(queue), self._is_held(queue)
        if bucket is None or (bucket.own == 0 and bucket.available >= bucket.limit - bucket.reserve):
            return is_empty, is_held, True, 0.0  # sorting keeps the order of the manifest
        return is_empty, is_held, False, bucket.reset_at
