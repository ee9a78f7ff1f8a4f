"""`Engine.map` and `Engine.run` (interface.md §6) against a real sandbox, and operations of others."""

import base64
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

import bulk
from bulk.engine.library.engine import _Feed
from bulk.errors import CredentialRefused, ManifestError, UsageError
from bulk.ledger.records import Finished
from bulk_jobs.contents import GetContents, PutContents
from bulk_jobs.readmes import GetReadme, ReadmeItem
from tests.e2e.support.platform import ADMIN, Home, Served
from tests.e2e.support.third_party import install
from tests.engine.library.conftest import COUNT

pytestmark = pytest.mark.anyio

MANY = 20_000
"""Items that a run does not get through before its reader has left."""
TOKEN = {"BULK_TOKEN": ADMIN}


def items(count: int) -> Iterator[dict[str, str]]:
    """`count` repositories."""
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
        with anyio.fail_after(60):
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
    with anyio.fail_after(60):
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
    assert ("items[3]", "rpeo") in [(flaw.path, flaw.field) for flaw in caught.value.flaws]
    assert len(sandbox.journal()) == before


async def test_errors_name_the_item_and_no_file_of_ours(sandbox: Served, tmp_path: Path) -> None:
    """What is wrong with items is told by their number, also where two contradict each other, kept or not; no
    path of a temporary file is in any message."""
    file = {"owner": "acme-fleet", "repo": "repo-00001", "path": "a", "message": "m"}
    wrong: list[tuple[Any, str]] = [
        ([{**file, "content": "YQ=="}, {**file, "content": "Yg=="}], r"^items\[1\]: .*item 0 .*"),
        ([{**file, "content_file": "nowhere.txt"}], r"^items\[0\]: content_file: "),
        ([{**file, "content": object()}], r"^items\[0\]: is not a JSON object"),
        ([{"owner": 5}], r"^items\[0\]: "),
    ]
    async with bulk.Engine(base_url=sandbox.base_url, environ=TOKEN) as engine:
        for number, (bad, message) in enumerate(wrong):
            for run_dir in (None, tmp_path / f"run-{number}"):
                with pytest.raises(ManifestError, match=message) as caught:
                    async for _ in engine.map("contents.put", bad, run_dir=run_dir):
                        pass
                hidden = ("bulk-scratch-", "stdin", "manifest.yaml", "items.jsonl", "jobs.map", "allow_overwrites")
                assert not [words for words in hidden if words in str(caught.value)]


async def test_a_file_of_an_item_is_seen_from_the_callers_folder(
    sandbox: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative `content_file` is one of the folder that the caller is in."""
    (tmp_path / "owners.txt").write_text("* @acme\n")
    monkeypatch.chdir(tmp_path)
    item = {"owner": "acme-fleet", "repo": "repo-00002", "path": "OWNERS", "message": "m", "content_file": "owners.txt"}
    async with bulk.Engine(base_url=sandbox.base_url, environ=TOKEN) as engine:
        (written,) = [outcome async for outcome in engine.map(PutContents, [item])]
        place = {"owner": "acme-fleet", "repo": "repo-00002", "path": "OWNERS"}
        (read,) = [outcome async for outcome in engine.map(GetContents, [place])]
    assert written.outcome == "succeeded", written.error
    assert isinstance(read.result, dict)
    assert base64.b64decode(read.result["content"]) == b"* @acme\n"


async def test_items_may_be_of_the_operations_own_class(sandbox: Served) -> None:
    """A typed item is taken as its fields; a class that is not the installed operation is refused."""
    async with bulk.Engine(base_url=sandbox.base_url, environ=TOKEN) as engine:
        typed = [ReadmeItem(owner="acme-fleet", repo="repo-00001", id="mine")]
        (found,) = [outcome async for outcome in engine.map(GetReadme, typed)]
        assert (found.outcome, found.id) == ("succeeded", "mine")

        class Other(GetReadme):
            """Another one of the same name."""

        with pytest.raises(ManifestError, match=r"Other is not what is installed as 'readme\.get'"):
            async for _ in engine.map(Other, typed):
                pass


async def test_progress_is_told(sandbox: Served, tmp_path: Path) -> None:
    """`progress=` is called with typed statuses, the last of which says that all is done, by `map` and by `run`."""
    told: list[bulk.RunStatus] = []
    job = {"readmes": {"operation": "readme.get", "items": list(items(20))}}
    (tmp_path / "manifest.yaml").write_text(json.dumps({"version": 1, "jobs": job}))
    async with bulk.Engine(base_url=sandbox.base_url, environ=TOKEN) as engine:
        async for _ in engine.map("readme.get", items(300), progress=told.append):
            pass
        assert (told[-1].state, told[-1].jobs[0].done) == ("complete", 300)
        told.clear()
        await engine.run(tmp_path / "manifest.yaml", run_dir=tmp_path / "run", progress=told.append)
    assert all(isinstance(status, bulk.RunStatus) for status in told)
    assert (told[-1].state, told[-1].jobs[0].done) == ("complete", 20)


@pytest.mark.parametrize("state", ["checking", "running"])
@pytest.mark.parametrize("kind", [LookupError, SystemExit])
async def test_what_progress_raises_comes_out(
    kind: type[BaseException], state: str, sandbox: Served, tmp_path: Path
) -> None:
    """An exception of the callback ends the run and is raised as it is; the run can be resumed."""

    def broken(status: bulk.RunStatus) -> None:
        if status.state == state:
            raise kind("the caller's own")

    async with bulk.Engine(base_url=sandbox.base_url, environ=TOKEN) as engine:
        with pytest.raises(kind, match="the caller's own"):
            async for _ in engine.map("readme.get", items(COUNT), run_dir=tmp_path / "run", progress=broken):
                pass
        again = [outcome.index async for outcome in engine.map("readme.get", items(COUNT), run_dir=tmp_path / "run")]
        assert sorted(again) == list(range(COUNT))
        job = {"readmes": {"operation": "readme.get", "items": list(items(20))}}
        (tmp_path / "manifest.yaml").write_text(json.dumps({"version": 1, "jobs": job}))
        with pytest.raises(kind, match="the caller's own"):
            await engine.run(tmp_path / "manifest.yaml", run_dir=tmp_path / "other", progress=broken)


@pytest.mark.parametrize("kind", [LookupError, KeyboardInterrupt])
async def test_what_is_raised_in_the_block_comes_out(kind: type[BaseException], sandbox: Served) -> None:
    """An exception of the caller's leaves the engine's block as it is, also while a run is under way; none is lost."""
    many = [{"owner": "acme-fleet", "repo": f"nowhere-{number}"} for number in range(MANY)]

    async def work() -> None:
        async with bulk.Engine(base_url=sandbox.base_url, environ=TOKEN, concurrency=2) as engine:
            outcomes = engine.map("readme.get", many)
            await anext(outcomes)
            raise kind("the caller's own")

    with pytest.raises(kind, match="the caller's own"):
        await work()


async def test_a_wrong_token_is_an_exception(sandbox: Served) -> None:
    """A refused credential raises CredentialRefused after one request; the token is not in it."""
    before = len(sandbox.journal())
    async with bulk.Engine(base_url=sandbox.base_url, environ={"BULK_TOKEN": "wrong-token"}) as engine:
        with pytest.raises(CredentialRefused) as caught:
            async for _ in engine.map("readme.get", items(50)):
                pass
    assert len(sandbox.journal()) == before + 1
    assert "wrong-token" not in str(caught.value)


async def test_a_platform_that_is_not_there_is_waited_for() -> None:
    """Where nothing listens, `map` tries again until its time for that is over, and can be cancelled meanwhile."""
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


async def test_what_is_no_operation_and_an_engine_in_use_are_named(sandbox: Served) -> None:
    """A mistake of the program is told in its own words, before anything is sent."""
    async with bulk.Engine(base_url=sandbox.base_url, environ=TOKEN) as engine:
        for wrong in (None, int):
            with pytest.raises(TypeError, match="expected the name of an operation or its class, got"):
                async for _ in engine.map(cast(Any, wrong), items(1)):
                    pass
        with pytest.raises(bulk.UsageError, match="this Engine is in use"):
            async with engine:
                pass
        assert [each.outcome async for each in engine.map("readme.get", items(1))] == ["succeeded"]
