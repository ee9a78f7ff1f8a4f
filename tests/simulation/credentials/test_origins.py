"""Wherever links and redirects point: a token goes to the platform's own origin and to nobody else.

The real engine runs reads that are redirected and lists whose next page is linked to targets out of a hostile mind; the
network connects to any host, and looks at each connection and each request.
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tests.simulation.wire import network as networks
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import FINE, Fate, answer
from tests.simulation.world import PREFIX, TOKEN, World, simulate, world

OWN = ("127.0.0.1", 8080)
JSON = "application/json"
SCHEMES = ["http:", "https:", "HTTP:", "file:", "ftp:", "javascript:", "http", "", "//", "data:", "ws:", "http:\t"]
USERS = ["", "", "", "me@", "me:secret@", "127.0.0.1:8080@", "%40", "@", "evil.example\\@", "127.0.0.1%3A8080@"]
HOSTS = [
    "127.0.0.1", "127.0.0.1", "127.0.0.1", "evil.example", "127.0.0.1.evil.example", "169.254.169.254",
    "[::1]", "localhost",
    "2130706433", "0x7f.1", "127.1", "[::ffff:127.0.0.1]", "127.0.0.1.", "evil.example#127.0.0.1",
    "evil.example?127.0.0.1", "",
    "\xe9vil.example", "127.0.0.1\\.evil.example", "127.0.0.1%00.evil.example", "127.0.0.2", "[", "::1",
]  # fmt: skip
PORTS = ["", ":8080", ":8080", ":8080", ":80", ":443", ":08080", ":8081", ":99999", ":-1", ":x", ":", ":8080:80"]
PATHS = [
    PREFIX, PREFIX, PREFIX, "", "/", "/api", "/api/v30", "/api/v3/..", "/api/v3/%2e%2e", "/API/v3",
    "//api/v3", "/api//v3",
    "/api/v3;x", "/./api/v3", "/other/../api/v3", "\\api\\v3", "/api/v3\\..\\..", "/api/v3/%252e%252e/x",
]  # fmt: skip
TAILS = [
    *["/repos/acme-eng/hello-world/contents/FUZZ"] * 4,  # what a redirect has to keep is put in its place
    "/repos/acme-eng/hello-world/readme", "/orgs/acme-eng/hooks", "/hooks", "/x/../../..", "/%2e%2e/%2e%2e",
    "/..;/x", "/a b", "/",
    "/%00", "/\xff", "", "/repos//x", "/.", "/%5c..%5c..", "/hooks/", "/HOOKS",
]  # fmt: skip
QUERIES = [
    "",
    "?page=2",
    "?page=2&per_page=100",
    "?cursor=%2F%2Fevil.example",
    "?",
    "?page=2#frag",
    "#",
    "?a=b?c",
    "?page=\xe9",
]


def target(dice: random.Random, asked: str = "") -> str:
    """Where somebody could want a token to go; sometimes with a character more, fewer, or changed."""
    scheme = dice.choice(SCHEMES)
    slashes = dice.choice(["//", "//", "//", "/", "", "///", "\\\\"])
    text = scheme + slashes + dice.choice(USERS) + dice.choice(HOSTS) + dice.choice(PORTS)
    if dice.random() < 0.2:
        text = dice.choice(["", "/", "//evil.example", "..", "?", "."])
    text += dice.choice(PATHS) + dice.choice(TAILS).replace("FUZZ", asked) + dice.choice(QUERIES)
    for _ in range(dice.choice([0, 0, 0, 1, 2])):
        place = dice.randrange(len(text) + 1)
        text = text[:place] + dice.choice("/\\@:%.?#[]<>;, \t\x7fe0") + text[place + dice.randrange(2) :]
    return text.strip(" \t") or "/"


@dataclass
class RateLimitPoller:
    """What was seen on the wire: connections by (host, port), and requests whose token was somebody else's to see."""

    connections: Counter[tuple[str | None, int | None]] = field(default_factory=Counter)
    astray: list[str] = field(default_factory=list)
    with_token: int = 0

    def connected(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """Note where connections go."""

        def create(connector: Any, req: Any, *args: Any) -> Any:
            self.connections[req.connection_key.host, req.connection_key.port] += 1
            return real(connector, req, *args)

        return create

    def began(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """Note whose requests carry what."""

        def begin(network: Any, head: bytes, total: int) -> Any:
            lines = head.decode("latin-1").split("\r\n")
            fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
            path = lines[0].split(" ")[1]
            if TOKEN in head.decode("latin-1"):
                self.with_token += 1
                if (
                    fields.get("host") != "127.0.0.1:8080"
                    or not path.startswith(f"{PREFIX}/")
                    or ".." in path.partition("?")[0].split("/")
                ):
                    self.astray.append(lines[0])
            return real(network, head, total)

        return begin


class Hostile:
    """Answers reads of `fuzz-…` with a redirect, lists of `fuzz-…` with a linked next page, each once."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(f"origins {seed}")
        self._answered: set[str] = set()
        self.redirects = self.links = 0

    def __call__(self, exchange: Exchange) -> Fate:
        path = exchange.path.partition("?")[0]
        if "fuzz-" not in path:
            return FINE
        name = path.rpartition("/contents/")[2]
        is_first = name not in self._answered
        self._answered.add(name)
        if "/contents/" in path and is_first:
            self.redirects += 1
            status = self._dice.choice([301, 302, 303, 307, 308])
            return answer(status, b"", Location=target(self._dice, name))
        if "/hooks" in path and is_first:
            self.links += 1
            return answer(200, b"[]", JSON, Link=f'<{target(self._dice)}>; rel="next"')
        return answer(200, b"[]", JSON)


def jobs(count: int, first: int) -> dict[str, Any]:
    """`count` reads, and as many lists."""
    place = {"owner": "acme-eng", "repo": "hello-world"}
    numbers = range(first, first + count)
    return {
        "reads": {"operation": "contents.get", "items": [{**place, "path": f"fuzz-{number}"} for number in numbers]},
        "lists": {"operation": "webhook.list", "items": [{"org": f"fuzz-{number}"} for number in numbers]},
    }


def fuzz(folder: Path, seed: int, count: int, runs: int) -> tuple[RateLimitPoller, Hostile]:
    """`count` redirects and as many links in each of `runs` runs; what was seen."""
    watch, hostile = RateLimitPoller(), Hostile(seed)

    async def main() -> None:
        async with world(folder, latency_ms=0.0) as made:
            made.network.fate_of, made.network.is_forgetful = hostile, True
            for number in range(runs):
                await _run(made, number)

    async def _run(made: World, number: int) -> None:
        manifest = made.write(f"run-{number}", jobs(count, number * count), {"concurrency": 64})
        await made.run(manifest)
        assert len(made.lines(manifest)) == 2 * count

    with (
        mock.patch.object(
            networks.MemoryConnector, "_create_connection", watch.connected(networks.MemoryConnector._create_connection)
        ),
        mock.patch.object(networks.Network, "begin", watch.began(networks.Network.begin)),
    ):
        simulate(main, at_most_s=1e9, tick_s=3_600.0)
    return watch, hostile


def classify(watch: RateLimitPoller, hostile: Hostile, count: int) -> str:
    """No token went astray, no connection was made elsewhere; a line for people."""
    assert (hostile.redirects, hostile.links) == (count, count)
    assert watch.astray == []
    assert set(watch.connections) == {OWN}
    followed = watch.with_token - 2 * count
    # the fuzz would prove nothing if all of it were refused
    assert followed > count * 0.02
    return f"{2 * count:,} fuzzed links and redirects, {followed:,} followed: 0 Authorization headers to another origin"


def test_no_token_goes_to_another_origin(folder: Path, figure: Callable[[str], None]) -> None:
    """failures.md rows 9, 10, 12: 600 fuzzed links and redirects: every connection and token is the platform's own."""
    figure(classify(*fuzz(folder, 1, 300, 1), 300))


@pytest.mark.soak
def test_no_token_goes_to_another_origin_at_length(folder: Path, figure: Callable[[str], None]) -> None:
    """failures.md rows 9, 10, 12: 100,000 of them."""
    figure(classify(*fuzz(folder, 2, 1_000, 50), 50_000))


@pytest.mark.interpreted
def test_a_token_that_goes_astray_is_seen(folder: Path) -> None:
    """The watch itself sees a token on its way to somebody else, or the tests above would prove nothing."""
    with (
        mock.patch("bulk.execute.requests.request_sender.within_base", lambda _, __, asked: f"/../..{asked}"),
        mock.patch("bulk.platform.allowed_addresses.within_base", return_value="/../../elsewhere"),
    ):
        watch, _ = fuzz(folder, 1, 5, 1)
    assert watch.astray
