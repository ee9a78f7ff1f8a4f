"""The tokens of a bucket that several workers share, as a permit queue takes them."""

from typing import Protocol


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
