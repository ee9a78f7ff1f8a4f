"""What a governor shares with those of other workers: budgets, what is known of accounts, and how long it may send.

Where a process is alone with its credentials, as far as it knows, there are no peers.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from bulk.govern.budgets.buckets import Bucket
from bulk.govern.budgets.shared_bucket import Lease, Wish
from bulk.govern.permits.accounts import Account
from bulk.platform.classification import Limits


@dataclass(slots=True)
class SendDeadline:
    """Nothing is sent from that moment on (`Clock.elapsed`): somebody else may do the same work by then."""

    at: float


class Peers(Protocol):
    """The other workers, as one of them reaches them.

    Attributes:
        deadline: of everything that this worker sends.
    """

    deadline: SendDeadline

    def know(self, accounts: Iterable[Account], payers: Mapping[str, Sequence[Account]]) -> None:
        """Learn which accounts there are, before anything else is asked, and which of them one payer pays for."""

    async def lease(
        self, account: str, category: str, wish: Wish, now: float, late: float
    ) -> tuple[Lease, Bucket | None] | None:
        """Give back and lease tokens, see `SharedBucket.lease`.

        Returns:
            What was lent, and the bucket as it stands (None: the platform has not told of it); None where the store is
            out of reach. Then nothing is known of what was given back, nor of what was lent.
        """

    async def marks(self, account: str) -> Mapping[str, int] | None:
        """Return a mark for each bucket of the account, to be taken before `/rate_limit` is asked; None: another worker
        asks."""

    async def told(
        self, account: str, limits: Mapping[str, Limits], marks: Mapping[str, int], now: float, late: float
    ) -> None:
        """Tell what `/rate_limit` said, by category, after these marks were taken."""

    def changed(self, account: Account) -> None:
        """Tell of an account that was frozen or paused, or may go on. Called often; it must not wait."""
