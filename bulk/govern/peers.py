"""What a governor shares with those of other workers: budgets, what is known of accounts, and how long it may send.

Where a process is alone with its credentials, as far as it knows, there are no peers.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from bulk.govern.budgets.buckets import Bucket
from bulk.govern.budgets.shared_bucket import Lease, Wish
from bulk.platform.classification import Limits

if TYPE_CHECKING:
    from bulk.govern.accounts import Account


@dataclass(slots=True)
class SendDeadline:
    """Nothing is sent from that moment on (`Clock.elapsed`): somebody else may do the same work by then."""

    at: float


class Tokens(Protocol):
    """What stands in for the bucket of a permit queue where workers share it; `leased_tokens.LeasedTokens` is one."""

    def ready_at(self, now: float) -> float:
        """Return when a token may be taken (monotonic)."""

    def take(self, now: float) -> tuple[int, int]:
        """Take one that may be; return its window and its hold."""

    def ended(self, hold: int) -> None:
        """Note that a request is not under way any more."""

    def return_unused(self, hold: int) -> None:
        """Give back what cost nothing."""

    def exhausted(self, window: int) -> None:
        """Note that the platform said that nothing is left in that window."""

    def look(self, *, is_unlimited: bool | None = None) -> None:
        """Look for more, because somebody said that there may be some; `is_unlimited`: `/rate_limit` was answered, and
        names no limit.
        """

    async def run(self) -> None:
        """Lease what is wanted, until cancelled."""


class Peers(Protocol):
    """The other workers, as one of them reaches them.

    Attributes:
        deadline: of everything that this worker sends.
    """

    deadline: SendDeadline

    def know(self, accounts: Iterable["Account"], payers: Mapping[str, Sequence["Account"]]) -> None:
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

    def changed(self, account: "Account") -> None:
        """Tell of an account that was frozen or paused, or may go on. Called often; it must not wait."""
