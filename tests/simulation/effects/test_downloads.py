"""Files that the platform gives by a download URL, which is good once and needs no token."""

from pathlib import Path
from typing import Any

import pytest

from bulk.sandbox.areas.contents import files
from bulk.sandbox.settings import RateLimit
from tests.simulation.schedules import put
from tests.simulation.wire import network
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import DROP_AFTER, FINE, Fate, answer
from tests.simulation.world import PREFIX, now, simulate, world

TEXT = "A large file.\n" * 20
FILE = f"{PREFIX}/repos/fleet/repo-00000/contents/large"


SPOILED = {
    "lost": DROP_AFTER,
    "a page to log in": answer(200, b"<!DOCTYPE html><html>log in</html>", "text/html"),
    "a message": answer(200, b'{"message": "ok"}', "application/json"),
    "a part": answer(200, TEXT.encode()[:7], "text/plain", Content_Range=f"bytes 0-6/{len(TEXT)}"),
}


@pytest.mark.parametrize("name", SPOILED)
def test_a_download_gets_no_token_and_its_url_is_used_once(folder: Path, monkeypatch, name: str) -> None:
    """failures.md row 10: a raw read that leads to a download URL is followed there without the token; where the
    download breaks, or is not the file, the file is asked for again, and the new URL is taken."""
    monkeypatch.setattr(files, "REDIRECT_BYTES", 100)

    async def main() -> None:
        async with world(folder, limits={"core": RateLimit(100, 3_600)}) as made:
            write = {"operation": "contents.put", "items": [put("repo-00000", "large", TEXT)]}
            assert (await made.run(made.write("write", {"files": write}))).exit_code == 0
            before = len(made.network.exchanges)
            lost: list[str] = []

            def fate_of(exchange: Exchange) -> Fate:
                if "/downloads/" not in exchange.path or lost:
                    return FINE
                lost.append(exchange.path)
                return SPOILED[name]

            made.network.fate_of = fate_of
            item = {"owner": "fleet", "repo": "repo-00000", "path": "large", "media_type": "raw"}
            read = {"operation": "contents.get", "items": [item], "save": "{path}"}
            manifest = made.write("read", {"files": read})
            assert (await made.run(manifest)).exit_code == 0
            assert made.lines(manifest)[0]["result"]["size"] == len(TEXT)
            assert (made.run_dir(manifest) / "saved" / "large").read_text() == TEXT
            sent = [each for each in made.network.exchanges[before:] if "rate_limit" not in each.path]
            assert [each.path == FILE for each in sent] == [True, False, True, False]
            assert [bool(each.token) for each in sent] == [True, False, True, False]
            assert "/downloads/" in sent[1].path
            bucket = made.runs[-1].governor.queue("default", "core").bucket
            assert bucket is not None
            assert bucket.sent - bucket.given_back == 2

    simulate(main)


def test_a_download_from_where_nothing_answers_ends(folder: Path, monkeypatch) -> None:
    """failures.md row 10: a place that can't be reached is not asked for ever; each try takes a request of the
    platform, so each counts."""
    reach = network.MemoryConnector._create_connection

    async def reached(self: Any, request: Any, *more: Any) -> Any:
        if request.url.host == "files.example.test":
            raise ConnectionRefusedError(111, "refused")
        return await reach(self, request, *more)

    monkeypatch.setattr(network.MemoryConnector, "_create_connection", reached)

    async def main() -> None:
        async with world(folder) as made:
            led = answer(302, b"", Location="https://files.example.test/large")
            made.network.fate_of = lambda each: led if each.path == FILE else FINE
            item = {"owner": "fleet", "repo": "repo-00000", "path": "large", "media_type": "raw"}
            manifest = made.write("read", {"files": {"operation": "contents.get", "items": [item]}})
            assert (await made.run(manifest)).exit_code == 1
            assert made.lines(manifest)[0]["error"]["code"] == "connection"
            assert sum(each.path == FILE for each in made.network.exchanges) <= 48
            assert now() < 1_800.0

    simulate(main, tick_s=5.0)
