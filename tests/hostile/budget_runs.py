"""Whole runs of the engine against a platform that serves READMEs and charges them to hostile budgets.

Requests and answers are bytes on connections in memory; nothing of the sandbox is behind them.
"""

import asyncio
import base64
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from typing import Any

from bulk.engine import commands
from bulk.engine.surroundings import Surroundings
from bulk.manifest.reading import Overrides
from bulk.report.fold import Report
from bulk.status import Silence
from tests.hostile.http.limits import Limits
from tests.simulation.wire.network import Network
from tests.simulation.world import disk_in_place, simulate
from tests.virtual_time import START, VirtualClock

PREFIX = "/api/v3"
TOKEN = "ghp_" + "budget" * 6
LIMITED = {"message": "API rate limit exceeded for user ID 1."}
README = b"# Read me\n"
REASONS = {
    200: "OK",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    502: "Bad Gateway",
    429: "Too Many Requests",
    503: "Service Unavailable",
}

Answer = tuple[int, dict[str, str], Any]
Instead = Callable[["BudgetPlatform", str], Answer | None]


@dataclass(slots=True)
class BudgetPlatform:
    """Serves `GET /repos/{owner}/{repo}/readme` and `GET /rate_limit`.

    Attributes:
        instead: answers in place of the platform, where it returns something; asked with the path.
        sent: paths of all requests in order, each with its moment (seconds).
    """

    limits: Limits
    instead: Instead | None = None
    sent: list[tuple[float, str]] = field(default_factory=list)

    def now(self) -> float:
        """The platform's time (UTC epoch seconds)."""
        return START + asyncio.get_running_loop().time()

    def answer(self, path: str) -> Answer:
        """Status, headers and body."""
        path = path.removeprefix(PREFIX)
        self.sent.append((self.now() - START, path))
        said = self.instead(self, path) if self.instead is not None else None
        if said is not None:
            return said
        if path == "/rate_limit":
            body = self.limits.body(self.now())
            return (body, {}, {"message": "No."}) if isinstance(body, int) else (200, {}, body)
        is_served = self.limits.charge(self.now())
        headers = self.limits.headers(self.now())
        return (200, headers, readme(path)) if is_served else (403, headers, LIMITED)

    def paths(self) -> list[str]:
        """What was asked for, but for limits."""
        return [path for _, path in self.sent if path != "/rate_limit"]


def readme(path: str) -> dict[str, Any]:
    """A file as the platform shows it."""
    _, _, owner, repo, _ = path.split("/")
    url = f"https://platform.example/api/v3/repos/{owner}/{repo}/contents/README.md?ref=main"
    return {
        "type": "file", "encoding": "base64", "size": len(README), "name": "README.md", "path": "README.md",
        "content": base64.b64encode(README).decode(), "sha": "3d21ec53a331a6f037a91c368710b99387d012c1", "url": url,
        "git_url": url, "html_url": url, "download_url": url,
        "_links": {"self": url, "git": url, "html": url},
    }  # fmt: skip


class Server(asyncio.Protocol):
    """One connection to it."""

    def __init__(self, platform: BudgetPlatform) -> None:
        self._platform, self._read = platform, b""
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep it."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer each request whose head is complete; none has a body."""
        self._read += data
        while b"\r\n\r\n" in self._read:
            head, _, self._read = self._read.partition(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode()
            if path.endswith("/rate_limit") and self._platform.limits.is_lost():
                if not self._platform.limits.hangs:
                    self._transport.close()
                return
            status, headers, body = self._platform.answer(path)
            content = json.dumps(body).encode()
            lines = [
                f"HTTP/1.1 {status} {REASONS[status]}",
                f"Date: {formatdate(int(self._platform.now()), usegmt=True)}",
                "Content-Type: application/json; charset=utf-8",
                f"Content-Length: {len(content)}",
                *(f"{name}: {value}" for name, value in headers.items()),
            ]
            self._transport.write("\r\n".join(lines).encode() + b"\r\n\r\n" + content)


@dataclass(frozen=True, slots=True)
class Ran:
    """A run that has ended: its report, when (seconds), and what of it can be looked at."""

    report: Report
    ended_s: float
    outcomes: list[str]


def run(folder: Path, platform: BudgetPlatform, items: int, limits: dict[str, Any], *, most_s: float) -> Ran:
    """Read `items` READMEs; a run that takes longer than `most_s` (virtual seconds) hangs."""
    rows = folder / "items.jsonl"
    rows.write_text("".join(json.dumps({"owner": "acme", "repo": f"r{number}"}) + "\n" for number in range(items)))
    manifest = folder / "budget.yaml"
    manifest.write_text(
        json.dumps(
            {
                "version": 1,
                "name": "budget",
                "platform": {"base_url": "http://127.0.0.1:8080/api/v3"},
                "limits": {"concurrency": 16, **limits},
                "jobs": {"reads": {"operation": "readme.get", "items": str(rows)}},
            }
        )
    )

    async def main() -> Ran:
        network = Network(server=lambda: Server(platform))
        network.is_forgetful = True
        around = Surroundings(
            clock=VirtualClock(), dice=random.Random(0), disk=disk_in_place, connector=network.connector()
        )
        report = await commands.run_manifest(
            manifest,
            overrides=Overrides(),
            run_dir=folder / "run",
            display=Silence(),
            environ={"BULK_TOKEN": TOKEN},
            surroundings=around,
        )
        if around.connector is not None and not around.connector.closed:
            await around.connector.close()
        lines = (folder / "run" / "results.jsonl").read_text().splitlines()
        outcomes = [json.loads(line)["outcome"] for line in lines]
        return Ran(report, asyncio.get_running_loop().time(), outcomes)

    return simulate(main, at_most_s=most_s, tick_s=5.0)
