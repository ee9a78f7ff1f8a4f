"""Whole runs whose reads are confirmed with a 304: the results are those of the run before, whatever reads them."""

import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.simulation.schedules import put
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import DROP_AFTER, DROP_BEFORE, FINE, TRUNCATE, Fate, answer
from tests.simulation.world import simulate, world

FILE = {"type": "file", "encoding": "base64", "size": 6, "name": "README.md", "content": "SGVs\nbG8K", "sha": "ab"}
PRETTY = json.dumps(FILE, indent=2).encode()
JSON = "application/json; charset=utf-8"
ITEM = {"owner": "fleet", "repo": "repo-00000"}


def platform(exchange: Exchange) -> Fate:
    """A platform that writes its JSON on many lines, and whose READMEs don't change."""
    if "readme" not in exchange.path:
        return FINE
    return answer(304, b"", JSON, ETag='"e"') if exchange.is_conditional else answer(200, PRETTY, JSON, ETag='"e"')


def job(**more: Any) -> dict[str, Any]:
    """Reads of READMEs."""
    return {"reads": {"operation": "readme.get", "items": [ITEM], **more}}


def test_a_confirmed_result_is_the_one_of_before(folder: Path) -> None:
    """The line of an unchanged read holds what the first one held, on one line, and a listener gets the value."""

    async def main() -> None:
        async with world(folder, fate_of=platform) as made:
            made.cache = folder / "cache"
            for name, status in (("first", 200), ("second", 304), ("third", 304)):
                manifest = made.write(name, job())
                assert (await made.run(manifest)).exit_code == 0
                (line,) = made.lines(manifest)
                outcome = "succeeded" if status == 200 else "unchanged"
                assert (line["outcome"], line["http_status"], line["result"]) == (outcome, status, FILE)
                assert [finished.result for finished in made.told] == [FILE]

    simulate(main)


def test_what_is_saved_is_decoded_from_what_was_kept(folder: Path) -> None:
    """A job with `save` writes the file's own bytes, also where a run without it has kept the answer as its result."""

    async def main() -> None:
        async with world(folder, fate_of=platform) as made:
            made.cache = folder / "cache"
            await made.run(made.write("first", job()))
            manifest = made.write("second", job(save="{repo}.md"))
            assert (await made.run(manifest)).exit_code == 0
            (line,) = made.lines(manifest)
            assert (line["http_status"], line["result"]) == (304, FILE)
            assert (made.run_dir(manifest) / "saved/repo-00000.md").read_bytes() == b"Hello\n"

    simulate(main)


def test_an_answer_that_changed_replaces_the_result(folder: Path) -> None:
    """After another 200 it is the new one that a 304 confirms."""
    told: dict[str, Any] = {"etag": '"e1"', "file": FILE}

    def fate_of(exchange: Exchange) -> Fate:
        if "readme" not in exchange.path:
            return FINE
        if exchange.is_conditional and not told.pop("is_new", False):
            return answer(304, b"", JSON, ETag=told["etag"])
        return answer(200, json.dumps(told["file"]).encode(), JSON, ETag=told["etag"])

    async def main() -> None:
        async with world(folder, fate_of=fate_of) as made:
            made.cache = folder / "cache"
            await made.run(made.write("first", job()))
            told.update(etag='"e2"', file={**FILE, "sha": "cd"}, is_new=True)
            for name, status in (("second", 200), ("third", 304)):
                manifest = made.write(name, job())
                await made.run(manifest)
                (line,) = made.lines(manifest)
                assert (line["http_status"], line["result"]["sha"]) == (status, "cd")

    simulate(main)


def test_the_store_is_closed_elsewhere_than_in_the_event_loop(folder: Path) -> None:
    """What a store still has to write at the end may take a while, and holds up no timer and no signal."""
    done: list[str] = []

    async def disk(call: Callable[[], None]) -> None:
        done.append(getattr(call, "__name__", ""))
        call()

    async def main() -> None:
        async with world(folder, fate_of=platform) as made:
            made.cache, made.disk = folder / "cache", disk
            await made.run(made.write("first", job()))
            assert "close" in done

    simulate(main)


def shown(line: dict[str, Any]) -> dict[str, Any]:
    """A result without its download URL, which is another one each time it is asked for."""
    return {name: value for name, value in line["result"].items() if name != "download_url"}


ROUGH = (answer(500), answer(200, b"{", JSON, ETag='"e"'), DROP_BEFORE, DROP_AFTER, TRUNCATE)


@pytest.mark.parametrize("seed", range(5))
def test_in_any_weather_kept_results_are_those_of_the_platform(folder: Path, seed: int) -> None:
    """Files change between runs, two runs have filled the store, answers break: results are as they are without it."""
    dice = random.Random(seed)
    repos = [f"repo-{number:05d}" for number in range(40)]
    reads = [{"owner": "fleet", "repo": repo, "path": "README.md"} for repo in repos]

    def fate_of(exchange: Exchange) -> Fate:
        return dice.choice(ROUGH) if "README.md" in exchange.path and dice.random() < 0.2 else FINE

    async def main() -> None:
        async with world(folder, fate_of=fate_of) as made:
            made.cache, found = folder / "cache", {}
            for turn in range(3):
                changed = dice.sample(repos, 10)
                writes = [put(repo, "README.md", f"{turn} of {repo}") for repo in changed]
                await made.run(made.write(f"writes-{turn}", {"puts": {"operation": "contents.put", "items": writes}}))
                manifest = made.write(f"reads-{turn}", {"reads": {"operation": "contents.get", "items": reads}})
                assert (await made.run(manifest)).exit_code == 0
                found[turn] = made.lines(manifest)
            made.cache = None
            manifest = made.write("without", {"reads": {"operation": "contents.get", "items": reads}})
            await made.run(manifest)
            assert [shown(line) for line in found[2]] == [shown(line) for line in made.lines(manifest)]
            outcomes = Counter(line["outcome"] for line in found[2])
            assert outcomes == {"unchanged": 30, "succeeded": 10}

    simulate(main)
