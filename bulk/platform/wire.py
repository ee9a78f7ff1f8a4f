"""The way by which requests leave, as the engine uses it: HTTP (`transport.py`), or the model of a platform in a
rehearsal."""

from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol, Self

from bulk.manifest.manifest import Platform
from bulk.model import Failure, Reply, Request


class Wire(Protocol):
    """Sends requests and gives their answers; an async context manager.

    Attributes:
        most_in_flight: requests that there is room for (count).
        platform: where the requests go.
    """

    most_in_flight: int
    platform: Platform

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    async def send(
        self,
        request: Request,
        token: Any,
        stored: Any = None,
        may_leave: Callable[[], bool] | None = None,
        holder: Any = None,
    ) -> Reply | Failure:
        """Send `request` once and return its answer, as `Transport.send`."""

    def step_aside(self, holder: Any) -> None:
        """Note that the item is about to wait for something other than an answer."""

    def distrust(self) -> None:
        """Note that an answer was not its request's, as `Transport.distrust`."""

    async def download(self, url: str, max_bytes: int, *, takes_file: bool, holder: Any) -> Reply | Failure:
        """Download from a URL that the platform gave, as `Transport.download`."""
