"""The library of interface.md §6: `Engine.map` and `Engine.run` against a real sandbox, and operations of others."""

import base64
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path

import anyio
import pytest

import bulk
from bulk.engine.library import _Feed
from bulk.errors import CredentialRefused, ManifestError, UsageError
from bulk.finished import Finished
from tests.e2e.support.platform import ADMIN, Home, Served, served
from tests.e2e.support.third_party import install

pytestmark = pytest.mark.anyio

COUNT = 1_500
"""Repositories that are there; more than `FEED_MOST`."""
MANY = 20_000
"""Items that a run does not get through before its reader has left."""
FLEET = {"organization": "acme-fleet", "count": COUNT, "readme_bytes": 200}
TOKEN = {"BULK_TOKEN": ADMIN}


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A platform for all of them."""
    folder = tmp_path_factory.mktemp("sandbox")
    with served(folder, "--rate-limit", "core=100000/3600", seed={"repositories": FLEET}) as sandbox:
        yield sandbox


def items(count: int) -> Iterator[dict[str, str]]:
    """So many repositories."""
    return ({"owner": "acme-fleet", "repo": f"repo-{number:05d}"} for number in range(count))


async def test_map_gives_every_outcome(sandbox: Served) -> None:
    """`Engine.map` over a generator gives each item's outcome once, with its result, as in interface.md."""
    async with bulk.Engine(base_url=sandbox.base_url, environ=TOKEN) as engine:
        outcomes = [outcome async for outcome in engine.map("readme.get", items(200))]
    assert Counter(outcome.index for outcome in outcomes) == Counter(range(200))
    assert {outcome.outcome for outcome in outcomes} == {"succeeded"}
    for outcome in outcomes:
        text = base64.b64decode(outcome.result["content"])
        assert text.startswith(b"# " + outcome.item["repo"].encode())
        assert outcome.result["size"] == len(text)


async def test_map_takes_an_async_generator_and_keeps_ids(sandbox: Served) -> None:
    """Items may come from an async generator; a user's `id` comes back; a failed item is a value, no exception."""

    async def some() -> AsyncIterator[dict[str, str]]:
        for repo in ("repo-00001", "nowhere"):
            await anyio.lowlevel.checkpoint()
            yield {"owner": "acme-fleet", "repo": repo, "id": f"my {repo}"}

    async with bulk.Engine(base_url=sandbox.base_url, environ=TOKEN) as engine:
        found = {outcome.id: outcome async for outcome in engine.map("readme.get", some())}
    assert found["my repo-00001"].outcome == "succeeded"
    assert found["my nowhere"].error is not None
    assert found["my nowhere"].error.code == "not_found"


async def test_a_slow_reader_misses_nothing(sandbox: Served) -> None:
    """A reader that stops until the platform has been asked for everything still gets every outcome."""
    before = len(sandbox.requests())
    seen = []
    async with bulk.Engine(base_url=sandbox.base_url, environ=TOKEN) as engine:
        async for outcome in engine.map("readme.get", items(COUNT)):
            seen.append(outcome.index)
            while len(seen) == 1 and len(sandbox.requests()) < before + COUNT:
                await anyio.wait_all_tasks_blocked()
                await anyio.to_thread.run_sync(sandbox.process.poll)
    assert sorted(seen) == list(range(COUNT))


@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "left"])
async def test_a_reader_may_stop_early(is_closed: bool, sandbox: Served) -> None:
    """A reader that leaves stops the run soon, and the engine can be used again at once."""
    before = len(sandbox.requests())
    many = [{"owner": "acme-fleet", "repo": f"nowhere-{number}"} for number in range(MANY)]
    async with bulk.Engine(base_url=sandbox.base_url, environ=TOKEN, concurrency=2) as engine:
        with anyio.fail_after(20):
            if is_closed:
                async with aclosing(engine.map("readme.get", many)) as outcomes:
                    async for _ in outcomes:
                        break
            else:
                async for _ in engine.map("readme.get", many):
                    break
            again = [outcome async for outcome in engine.map("readme.get", items(5))]
    assert len(again) == 5
    assert len(sandbox.requests()) < before + MANY


@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "left"])
async def test_a_reader_may_stop_while_the_run_waits_for_it(is_closed: bool, sandbox: Served) -> None:
    """A run that waits until its reader takes more ends when the reader closes `map`, or leaves the engine's block."""
    before = len(sandbox.requests())
    with anyio.fail_after(20):
        async with bulk.Engine(base_url=sandbox.base_url, environ=TOKEN) as engine:
            outcomes = engine.map("readme.get", items(COUNT))
            await anext(outcomes)
            while len(sandbox.requests()) < before + COUNT:
                await anyio.sleep(0.05)
            await anyio.sleep(0.2)  # the last ones are on disk
            if is_closed:
                await outcomes.aclose()
        if not is_closed:
            with pytest.raises(UsageError, match="block of the engine has ended"):
                await anext(outcomes)
            with pytest.raises(UsageError, match="async with"):
                await anext(engine.map("readme.get", items(1)))


async def test_an_outcome_that_is_not_told_is_noticed(sandbox: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that has more outcomes than its reader was given ends in an error, not in silence."""
    durable = _Feed.durable

    async def forgetful(feed: _Feed, finished: Sequence[Finished]) -> None:
        await durable(feed, finished[1:])

    async def work() -> None:
        async with bulk.Engine(base_url=sandbox.base_url, environ=TOKEN) as engine:
            async for _ in engine.map("readme.get", items(3)):
                pass

    monkeypatch.setattr(_Feed, "durable", forgetful)
    with pytest.raises(BaseExceptionGroup) as caught:
        await work()
    assert caught.group_contains(AssertionError, match="were told")


async def test_a_bad_item_sends_nothing(sandbox: Served) -> None:
    """An item that can't be used raises ManifestError with its place and field before the first request."""
    before = len(sandbox.journal())
    bad = [*items(3), {"owner": "acme-fleet", "rpeo": "x"}]
    async with bulk.Engine(base_url=sandbox.base_url, environ=TOKEN) as engine:
        with pytest.raises(ManifestError) as caught:
            async for _ in engine.map("readme.get", bad):
                pass
        with pytest.raises(ManifestError, match=r"did you mean readme\.get"):
            async for _ in engine.map("readme.gte", items(1)):
                pass
    assert (4, "rpeo") in [(flaw.line, flaw.field) for flaw in caught.value.flaws]
    assert len(sandbox.journal()) == before


async def test_a_wrong_token_is_an_exception(sandbox: Served) -> None:
    """A refused credential raises CredentialRefused after one request; the token is not in it."""
    before = len(sandbox.journal())
    async with bulk.Engine(base_url=sandbox.base_url, environ={"BULK_TOKEN": "wrong-token"}) as engine:
        with pytest.raises(CredentialRefused) as caught:
            async for _ in engine.map("readme.get", items(50)):
                pass
    assert len(sandbox.journal()) == before + 1
    assert "wrong-token" not in str(caught.value)


async def test_a_platform_that_is_not_there_is_an_exception() -> None:
    """Where nothing listens, `map` raises when its time for that is over instead of waiting for ever."""
    engine = bulk.Engine(base_url="http://127.0.0.1:9/api/v3", environ=TOKEN)
    async with engine:
        with anyio.move_on_after(1.0) as scope:
            async for _ in engine.map("readme.get", items(3)):
                pass
    assert scope.cancelled_caught


async def test_outside_of_its_block_it_says_so(sandbox: Served) -> None:
    """`map` without `async with` is told what is missing."""
    with pytest.raises(UsageError, match="async with"):
        async for _ in bulk.Engine(base_url=sandbox.base_url, environ=TOKEN).map("readme.get", items(1)):
            pass


async def test_run_gives_the_report(sandbox: Served, tmp_path: Path) -> None:
    """`Engine.run` runs a manifest on the engine's platform and returns the report; again, it resumes."""
    home = Home(tmp_path)
    job = {"readmes": {"operation": "readme.get", "items": list(items(20))}}
    home.write("manifest.yaml", json.dumps({"version": 1, "jobs": job}))
    before = len(sandbox.requests())
    async with bulk.Engine(base_url=sandbox.base_url, environ=TOKEN) as engine:
        for _ in range(2):
            report = await engine.run(tmp_path / "manifest.yaml", run_dir=tmp_path / "run")
            assert report.exit_code == 0
    assert len(sandbox.requests()) == before + 20
    assert Counter(line["outcome"] for line in home.results("run")) == {"succeeded": 20}
    with pytest.raises(ManifestError):
        async with bulk.Engine(base_url=sandbox.base_url, environ=TOKEN) as engine:
            await engine.run(home.write("bad.yaml", "version: 1\n"), run_dir=tmp_path / "bad")


PROGRAM = """
import anyio, bulk, sys

async def main():
    async with bulk.Engine(base_url=sys.argv[1]) as engine:
        async for outcome in engine.map("acme-files.count", [{"owner": "acme-eng", "repo": "hello-world"}]):
            print(outcome.outcome, outcome.result["files"])

anyio.run(main)
"""


def test_an_operation_of_others_is_found_and_run(sandbox: Served, tmp_path: Path) -> None:
    """A package with an entry point of the group `bulk.operations` is listed, checked and run like our own."""
    home = Home(tmp_path, variables={"PYTHONPATH": str(install(tmp_path / "site"))})
    assert "acme-files.count" in home.run("operations").out
    schema = json.loads(home.run("operations", "acme-files.count", "--schema").out)
    assert schema["title"] == "acme-files.count"
    item = {"owner": "acme-eng", "repo": "hello-world"}
    home.manifest(
        sandbox.base_url, {"count": {"operation": "acme-files.count", "items": [item, {**item, "repo": "x"}]}}
    )
    ran = home.run("run", "manifest.yaml", "--run-dir", "run")
    assert ran.exit_code == 1, ran.err
    first, second = sorted(home.results("run"), key=lambda line: int(line["index"]))
    assert (first["outcome"], first["result"]) == ("succeeded", {"files": 4})
    assert (second["outcome"], second["error"]["code"]) == ("failed", "not_found")
    home.manifest(
        sandbox.base_url, {"count": {"operation": "acme-files.count", "items": [{"owner": 5}]}}, name="bad.yaml"
    )
    bad = home.run("check", "bad.yaml")
    assert bad.exit_code == 2
    assert "owner" in bad.err
    program = home.run_any([sys.executable, "-c", PROGRAM, sandbox.base_url])
    assert (program.exit_code, program.out) == (0, "succeeded 4\n"), program.err
