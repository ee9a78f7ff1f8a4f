"""Reads of a job that ask for the same are sent once, and each has its own line: whatever befalls the first.

The engine and the sandbox are the real ones (`tests/simulation`).
"""

import json
import random
from pathlib import Path
from typing import Any

import anyio
import pytest

from bulk.manifest.reading import Overrides
from tests.simulation import invariants
from tests.simulation.schedules import snapshot
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import FINE, Fate, answer
from tests.simulation.world import World, simulate, world

REPOS, ITEMS = 12, 200
JSON = "application/json"


def items(count: int = ITEMS, repos: int = REPOS) -> list[dict[str, Any]]:
    """`count` reads of the READMEs of `repos`, written in different ways, some with an id."""
    dice = random.Random(7)
    found: list[dict[str, Any]] = []
    for number in range(count):
        repo = f"repo-{dice.randrange(repos):05d}"
        item: dict[str, Any] = {"owner": "fleet", "repo": repo}
        if number % 3 == 0:
            item = {"repo": repo, "media_type": "json", "owner": "fleet"}
        if number % 5 == 0:
            item["id"] = f"n{number}"
        found.append(item)
    return found


def reads(made: World) -> int:
    """Reads of READMEs that left (count)."""
    return sum(each.path.endswith("/readme") for each in made.network.exchanges)


def check_lines(made: World, manifest: Path, given: list[dict[str, Any]]) -> None:
    """Each item has its own index, id and item, and the outcome of the first that asks for the same."""
    lines = made.lines(manifest)
    assert [line["index"] for line in lines] == list(range(len(given)))
    firsts: dict[str, dict[str, Any]] = {}
    for line, item in zip(lines, given, strict=True):
        assert (line["id"], line["item"]["repo"]) == (item.get("id"), item["repo"])
        first = firsts.setdefault(item["repo"], line)
        same = ("outcome", "http_status", "request_id", "result")
        assert [line[name] for name in same] == [first[name] for name in same]
        assert (line["error"] and line["error"]["code"]) == (first["error"] and first["error"]["code"])
        assert (line["attempts"] == 0) == (line is not first)


def test_equal_reads_are_sent_once(folder: Path, figure) -> None:
    """200 reads of 12 files: 12 requests, 200 lines; the next job reads anew, because between them may be a write."""

    async def main() -> None:
        async with world(folder) as made:
            given = items()
            jobs = {
                "first": {"operation": "readme.get", "items": given},
                "then": {"operation": "readme.get", "items": given[:1], "needs": ["first"]},
                "ticks": {"operation": "rate-limit.get", "items": [{}, {}, {}]},
            }
            manifest = made.write("run", jobs)
            assert (await made.run(manifest)).exit_code == 0
            figure(f"{ITEMS} reads of {REPOS} files: {reads(made) - 1} requests")
            assert reads(made) == REPOS + 1
            lines = made.lines(manifest)
            assert [line["attempts"] for line in lines if line["job"] == "ticks"] == [1, 1, 1]
            invariants.nothing_leaked(made, made.runs[-1])
            first = made.write("only", {"first": {"operation": "readme.get", "items": given}})
            assert (await made.run(first)).exit_code == 0
            check_lines(made, first, given)

    simulate(main)


def test_copies_of_a_failure_are_tried_again_with_it(folder: Path) -> None:
    """The first fails, so do its copies; `bulk retry` sends it once more, and all have its new outcome."""

    async def main() -> None:
        async with world(folder) as made:
            given = items(40, 4)
            missing = answer(404, b'{"message": "Not Found"}', JSON)
            made.network.fate_of = lambda each: missing if "repo-00001" in each.path else FINE
            manifest = made.write("run", {"read": {"operation": "readme.get", "items": given}})
            assert (await made.run(manifest)).exit_code == 1
            check_lines(made, manifest, given)
            failed = sum(line["outcome"] == "failed" for line in made.lines(manifest))
            assert failed == sum(item["repo"] == "repo-00001" for item in given) > 1
            before = reads(made)
            made.network.fate_of = lambda _: FINE
            assert (await made.retry(manifest)).exit_code == 0
            assert reads(made) == before + 1
            check_lines(made, manifest, given)

    simulate(main)


@pytest.mark.parametrize("durable", [1, 5, REPOS, REPOS + 30, ITEMS - 1])
def test_a_run_that_is_cut_goes_on_with_its_copies(folder: Path, durable: int) -> None:
    """Cancelled after `durable` outcomes, of firsts or of copies: the resume sends only what is missing, and copies."""

    async def main() -> None:
        async with world(folder) as made:
            given = items()
            scope = anyio.CancelScope()
            made.on_told = lambda: scope.cancel() if len(made.told) >= durable else None
            manifest = made.write("run", {"read": {"operation": "readme.get", "items": given}}, {"concurrency": 1})
            with scope:
                await made.run(manifest)
            made.on_told = lambda: None
            assert (await made.run(manifest)).exit_code == 0
            check_lines(made, manifest, given)
            assert reads(made) <= REPOS + 2

    simulate(main)


def test_first_items_only(folder: Path) -> None:
    """`--limit` counts copies as items; without it the run goes on, and what was read is not read again."""

    async def main() -> None:
        async with world(folder) as made:
            given = items()
            manifest = made.write("run", {"read": {"operation": "readme.get", "items": given}})
            assert (await made.run(manifest, overrides=Overrides(limit=30))).exit_code == 0
            assert len(made.lines(manifest)) == 30
            assert (await made.run(manifest)).exit_code == 0
            check_lines(made, manifest, given)
            assert reads(made) == REPOS

    simulate(main)


def test_jobs_that_save_send_each(folder: Path) -> None:
    """Two items that differ in nothing but the id that names their files: each is read, and each has its file."""

    async def main() -> None:
        async with world(folder) as made:
            given = [{"owner": "fleet", "repo": "repo-00001", "id": name} for name in ("a", "b")]
            job = {"operation": "readme.get", "items": given, "save": "{id}.md"}
            manifest = made.write("run", {"read": job})
            assert (await made.run(manifest)).exit_code == 0
            assert reads(made) == 2
            saved = made.run_dir(manifest) / "saved"
            assert sorted(path.name for path in saved.iterdir()) == ["a.md", "b.md"]

    simulate(main)


def test_a_skipped_job_has_no_copies(folder: Path) -> None:
    """What a job needs failed: every item of it is skipped, copies too; a retry sends each file's read once."""

    async def main() -> None:
        async with world(folder) as made:
            broken = answer(404, b'{"message": "Not Found"}', JSON)

            def fate_of(exchange: Exchange) -> Fate:
                return broken if "acme-ops" in exchange.path else FINE

            made.network.fate_of = fate_of
            jobs = {
                "before": {"operation": "readme.get", "items": [{"owner": "acme-ops", "repo": "runbook"}]},
                "read": {"operation": "readme.get", "items": items(30, 3), "needs": ["before"]},
            }
            manifest = made.write("run", jobs)
            assert (await made.run(manifest)).exit_code == 1
            assert {line["outcome"] for line in made.lines(manifest) if line["job"] == "read"} == {"skipped"}
            made.network.fate_of = lambda _: FINE
            before = reads(made)
            assert (await made.retry(manifest)).exit_code == 0
            assert {line["outcome"] for line in made.lines(manifest)} == {"succeeded"}
            assert reads(made) == before + 1 + 3

    simulate(main)


def test_items_made_from_results_save_as_much(folder: Path) -> None:
    """Made from results: equal reads are sent once, superseded snapshots not at all, a second content is refused."""

    async def main() -> None:
        async with world(folder) as made:
            first = {"owner": "fleet", "repo": "repo-00001"}
            file = {"owner": "item.owner", "repo": "repo-00002", "path": "a", "message": "Write", "content": "item.id"}
            given = {name: value for name, value in snapshot("repo-00003", "build").items() if name != "repo"}
            jobs: dict[str, Any] = {
                "from": {"operation": "readme.get", "items": [{**first, "id": "YQ=="}, {**first, "id": "Yg=="}]},
                "reads": {"operation": "readme.get", "map": {"owner": "item.owner", "repo": "repo-00009"}},
                "puts": {"operation": "contents.put", "map": file},
                "snapshots": {"operation": "snapshot.create", "with": given, "map": {"repo": "repo-00003"}},
            }
            for job in list(jobs.values())[1:]:
                job["items"] = {"from": "from", "map": job.pop("map")}
            manifest = made.write("run", {"from": jobs["from"]})
            text = json.loads(manifest.read_text())
            text["jobs"] |= {name: job for name, job in jobs.items() if name != "from"}
            manifest.write_text(json.dumps(text))
            assert (await made.run(manifest)).exit_code == 1
            ended = [(line["job"], line["outcome"], line["attempts"]) for line in made.lines(manifest)]
            assert ended == [
                ("from", "succeeded", 1),
                ("from", "succeeded", 0),
                ("puts", "succeeded", 1),
                ("puts", "failed", 0),
                ("reads", "succeeded", 1),
                ("reads", "succeeded", 0),
                ("snapshots", "skipped", 0),
                ("snapshots", "succeeded", 1),
            ]
            refused, superseded = made.lines(manifest)[3]["error"], made.lines(manifest)[6]["error"]
            assert (refused["code"], superseded["code"]) == ("invalid_item", "superseded")
            assert "item 0" in refused["message"]
            assert reads(made) == 2
            assert len(made.effects()) == 2
            invariants.nothing_leaked(made, made.runs[-1])

    simulate(main)
