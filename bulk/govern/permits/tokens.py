"""The tokens of a bucket that several workers share, as a permit queue takes them."""

from typing import Protocol


class Tokens(Protocol):
    """Stand-in for the bucket of a permit queue that workers share; `leased_tokens.LeasedTokens` is one."""

    def ready_at(self, now: float) -> float:
        """Return when a token may be taken (monotonic)."""

    def take(self, now: float) -> tuple[int, int]:
        """Take a token that is ready; return the numbers of its window and of its hold."""

    def ended(self, hold: int) -> None:
        """Note that a request that a token of `hold` paid for is not under way any more."""

    def return_unused(self, hold: int) -> None:
        """Give back a token of `hold` whose request cost nothing."""

    def exhausted(self, window: int) -> None:
        """Note that the platform said that nothing is left in that window."""

    def look(self, *, is_unlimited: bool | None = None) -> None:
        """Look for more tokens, because there may be some now.

        `is_unlimited`: `/rate_limit` was answered, and names no limit.
        """

    async def run(self) -> None:
        """Lease tokens as they are wanted, until cancelled."""
