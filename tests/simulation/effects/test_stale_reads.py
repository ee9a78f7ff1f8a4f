"""Copies of the platform that lag: items of a run change one file, and reads show what was there before the last."""

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.simulation.effects.in_turn import LIMITS, STALE, ended_in_turn, stale_reads
from tests.simulation.schedules import OWNER, put
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import DROP_AFTER, DROP_BEFORE, FINE, Fate, answer
from tests.simulation.wire.memory import Memory
from tests.simulation.world import simulate, world

REPO = "repo-00000"


def _delete(path: str) -> dict[str, Any]:
    return {"owner": OWNER, "repo": REPO, "path": path, "message": f"Delete {path}"}


@pytest.mark.parametrize("second", ["delete", "put"])
def test_what_this_run_has_just_written_is_known(folder: Path, second: str) -> None:
    """failures.md row 21: no read shows the file that the first item made; the second one changes it all the same."""
    jobs = [
        ("contents.put", put(REPO, "a", "one")),
        ("contents.delete", _delete("a")) if second == "delete" else ("contents.put", put(REPO, "a", "two")),
    ]
    assert ended_in_turn(folder, jobs, stale_reads) == ["succeeded"] * 2


def test_back_to_what_a_stale_read_shows(folder: Path) -> None:
    """One, two, one again: that the file seems to hold one still does not make the last item unchanged."""
    jobs = [("contents.put", put(REPO, "a", text)) for text in ("one", "two", "one")]
    assert ended_in_turn(folder, jobs, stale_reads) == ["succeeded"] * 3


def test_deleted_and_made_again(folder: Path) -> None:
    """One, gone, one again: that the file seems to be there still does not make the last item unchanged."""
    jobs = [
        ("contents.put", put(REPO, "a", "one")),
        ("contents.delete", _delete("a")),
        ("contents.put", put(REPO, "a", "one")),
    ]
    assert ended_in_turn(folder, jobs, stale_reads) == ["succeeded"] * 3


@pytest.mark.parametrize("is_lost", [False, True])
@pytest.mark.parametrize("operation", ["contents.put", "contents.delete"])
def test_what_is_so_already_is_not_written_again(folder: Path, operation: str, is_lost: bool) -> None:
    """failures.md rows 7, 21: an item wants what the one before it left, and stale reads show something else. It is
    unchanged, whatever becomes of answers: nothing is sent for it."""
    look = {"owner": OWNER, "repo": REPO, "path": "a", "media_type": "object"}
    jobs = [("contents.put", put(REPO, "a", "zero")), ("contents.get", look)]
    jobs += [(operation, put(REPO, "a", "one") if operation == "contents.put" else _delete("a"))] * 2
    writes = 0

    def fate_of(exchange: Exchange) -> Fate:
        nonlocal writes
        if not exchange.is_write:
            return FINE if writes == 1 else STALE
        writes += 1
        return DROP_AFTER if is_lost and writes == 3 else FINE

    assert ended_in_turn(folder, jobs, fate_of) == ["succeeded", "succeeded", "succeeded", "unchanged"]
    assert writes == 2


@pytest.mark.parametrize(("path", "status"), [("a", 422), ("README.md", 409), ("README.md", 422)])
def test_a_write_that_a_proxy_sent_twice_is_no_failure(folder: Path, path: str, status: int) -> None:
    """failures.md rows 7, 22: what comes back is the refusal of the second send, which finds what the first has left,
    and no copy shows that yet. The item has succeeded, and is written once."""
    twice = answer(status, b'{"message": "not as expected"}', "application/json", is_passed_on=True)
    ended = ended_in_turn(
        folder, [("contents.put", put(REPO, path, "one"))], lambda each: twice if each.is_write else STALE
    )
    assert ended == ["succeeded"]


@pytest.mark.parametrize(("word", "outcome"), [("succeeded", "succeeded"), ("successes", "unchanged")])
def test_the_next_process_knows_it_too(folder: Path, word: str, outcome: str) -> None:
    """The run is cut off when the first item is told, and goes on at once: the file is deleted all the same. A line of
    the results that can't be used tells nothing, and troubles nobody."""

    async def main() -> None:
        slow = Fate(kind="slow", request_s=1.0)
        async with world(folder, fate_of=lambda each: slow if "readme" in each.path else stale_reads(each)) as made:
            made.network.memory = Memory()
            jobs: dict[str, Any] = {
                "puts": {"operation": "contents.put", "items": [put(REPO.upper(), "a", "one", OWNER.upper())]},
                "reads": {"operation": "readme.get", "items": [{"owner": OWNER, "repo": REPO}], "needs": ["puts"]},
                "deletes": {"operation": "contents.delete", "items": [_delete("a")], "needs": ["reads"]},
            }
            manifest = made.write("run", jobs, LIMITS)
            await made.run(made.write("look", {"looks": {"operation": "contents.delete", "items": [_delete("a")]}}))
            await made.run_until_told(manifest)
            assert made.told_items == {("puts", 0)}
            results = made.run_dir(manifest) / "results.jsonl"
            results.write_bytes(results.read_bytes().replace(b"succeeded", word.encode()))
            with contextlib.closing(sqlite3.connect(results.with_name("ledger.db"))) as ledger, ledger:
                ledger.execute("DELETE FROM line_chunks")  # as of a version that kept no digests
            assert (await made.run(manifest)).exit_code == 0
            assert [line["outcome"] for line in made.lines(manifest)] == [outcome, word, "succeeded"]
            assert len(made.effects()) == (2 if word == "succeeded" else 1)

    simulate(main)


@pytest.mark.parametrize("second", ["delete", "put"])
def test_a_lost_write_is_not_blamed_on_somebody_else(folder: Path, second: str) -> None:
    """failures.md row 7: the second item's write is lost and a read-back is stale; it is repeated, no conflict."""
    jobs = [
        ("contents.put", put(REPO, "a", "zero")),
        ("contents.put", put(REPO, "a", "one")),
        ("contents.delete", _delete("a")) if second == "delete" else ("contents.put", put(REPO, "a", "two")),
    ]
    writes = 0

    def fate_of(exchange: Exchange) -> Fate:
        nonlocal writes
        if not exchange.is_write:
            return STALE
        writes += 1
        return DROP_BEFORE if writes == 3 else FINE

    assert ended_in_turn(folder, jobs, fate_of) == ["succeeded"] * 3
