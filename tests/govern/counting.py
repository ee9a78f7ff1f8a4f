"""A platform in virtual time that counts requests, and credentials for it."""

from email.utils import formatdate

import anyio

from bulk.model import ErrorCode, Failure, Reply
from bulk.platform.auth.secrets import Secret
from bulk.platform.classification import Verdict, VerdictKind
from tests.virtual_time import START, VirtualClock

LATENCY_S = 0.02


class Source:
    """A credential whose tokens are a list; `renew` goes to the next."""

    name = "default"
    ends_at: float | None = None
    renews_after_s: float | None = None
    renewal_problem: str = ""
    is_gone: bool = False

    def __init__(self, *tokens: str) -> None:
        self._tokens = [Secret(token) for token in tokens]

    def read(self) -> Secret:
        """The token now."""
        return self._tokens[0]

    async def renew(self) -> bool:
        """The next token, if there is one."""
        if len(self._tokens) < 2:
            return False
        self._tokens.pop(0)
        return True


class Platform:
    """Counts requests in windows of whole seconds, as the sandbox does, and answers after a while."""

    def __init__(self, clock: VirtualClock, limit: int = 100, window_s: int = 10, skew_s: float = 0.0) -> None:
        self.clock, self.limit, self.window_s, self.skew_s = clock, limit, window_s, skew_s
        self.is_off = False
        self.good_tokens = {"token-one"}
        self.used: dict[int, int] = {}
        self.window_end = 0
        self.log: list[tuple[float, str, int]] = []
        self.asked: list[float] = []

    def now(self) -> float:
        """The platform's own time."""
        return START + self.clock.monotonic() + self.skew_s

    def _headers(self) -> dict[str, str]:
        return {"date": formatdate(int(self.now()), usegmt=True)}

    def _roll(self) -> None:
        if self.now() >= self.window_end:
            self.window_end = int(self.now()) + self.window_s
            self.used[self.window_end] = 0

    async def request(self, token: Secret, status: int = 200) -> tuple[Reply, Verdict]:
        """One request that counts, unless it is refused or answered 304."""
        await anyio.sleep(LATENCY_S / 2)
        if token.reveal() not in self.good_tokens:
            reply = Reply(status=401, headers=self._headers())
            self.log.append((self.clock.monotonic(), token.reveal(), 401))
            await anyio.sleep(LATENCY_S / 2)
            return reply, Verdict(VerdictKind.UNAUTHORIZED, ErrorCode.UNAUTHORIZED)
        self._roll()
        kind = VerdictKind.ACCEPTED
        if not self.is_off and status != 304:
            if self.used[self.window_end] >= self.limit:
                status, kind = 403, VerdictKind.LIMITED_PRIMARY
            else:
                self.used[self.window_end] += 1
        self.log.append((self.clock.monotonic(), token.reveal(), status))
        headers = self._headers()
        await anyio.sleep(LATENCY_S / 2)
        return Reply(status=status, headers=headers), Verdict(kind)

    async def ask(self, token: Secret) -> tuple[Reply, Verdict] | Failure:
        """`GET /rate_limit`."""
        await anyio.sleep(LATENCY_S / 2)
        self.asked.append(self.clock.monotonic())
        if token.reveal() not in self.good_tokens:
            self.log.append((self.clock.monotonic(), token.reveal(), 401))
            return Reply(status=401, headers=self._headers()), Verdict(VerdictKind.UNAUTHORIZED)
        if self.is_off:
            return Reply(status=404, headers=self._headers(), body={"message": "Not Found"}), Verdict(
                VerdictKind.ACCEPTED
            )
        if self.now() < self.window_end:
            remaining, reset = self.limit - self.used[self.window_end], self.window_end
        else:
            remaining, reset = self.limit, int(self.now()) + self.window_s
        entry = {"limit": self.limit, "used": self.limit - remaining, "remaining": remaining, "reset": reset}
        reply = Reply(status=200, headers=self._headers(), body={"resources": {"core": entry}})
        await anyio.sleep(LATENCY_S / 2)
        return reply, Verdict(VerdictKind.ACCEPTED)
