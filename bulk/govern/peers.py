"""The governors of other workers, with which a governor shares budgets, the state of accounts, and a deadline.

Where a process is alone with its credentials, as far as it knows, there are no peers.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from bulk.clock import Clock
from bulk.govern.budgets.buckets import Bucket
from bulk.govern.budgets.shared_bucket import Lease, Wish
from bulk.govern.permits.accounts import Account
from bulk.platform.classification import Limits


@dataclass(slots=True)
class SendDeadline:
    """The moment from which nothing is sent (`Clock.elapsed`): another worker may do the same work by then."""

    at: float

    def has_passed(self, clock: Clock) -> bool:
        """Return whether nothing may be sent any more."""
        return clock.elapsed() >= self.at


class Peers(Protocol):
    """The other workers, as this worker reaches them.

    Attributes:
        deadline: the moment from which this worker sends nothing.
    """

    deadline: SendDeadline

    def know(self, accounts: Iterable[Account], payers: Mapping[str, Sequence[Account]]) -> None:
        """Learn which accounts there are, before anything else is asked, and which of them one payer pays for."""

    async def lease(
        self, account: str, category: str, wish: Wish, now: float, late: float
    ) -> tuple[Lease, Bucket | None] | None:
        """Give back and lease tokens, see `SharedBucket.lease`.

        Returns:
            The lease, and the bucket as it stands (None: the platform has not told of it); None where the store is out
            of reach. Then it is not known whether tokens were given back, nor whether any were lent.
        """

    async def marks(self, account: str) -> Mapping[str, int] | None:
        """Return a mark for each bucket of the account; None: another worker asks `/rate_limit`.

        The marks must be taken before `/rate_limit` is asked.
        """

    async def told(
        self, account: str, limits: Mapping[str, Limits], marks: Mapping[str, int], now: float, late: float
    ) -> None:
        """Tell the other workers what `/rate_limit` said, by category, after `marks` were taken.

        Of a category without a mark, it is only told if nobody has told anything yet.
        """

    def changed(self, account: Account) -> None:
        """Tell of an account that was frozen or paused, or may go on. Called often; it must not wait."""
