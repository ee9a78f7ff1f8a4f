"""A `--limit` below what is done already: the run ends at once, counts what there is, and its exit code says so."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support.platform import Home, Served, served

COMMAND = ("run", "manifest.yaml", "--run-dir", "run")
FLEET = {"organization": "acme-fleet", "count": 40, "readme_bytes": 100}
SOON_S = 20.0


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A platform for all of them."""
    folder = tmp_path_factory.mktemp("sandbox")
    with served(folder, "--rate-limit", "off", seed={"repositories": FLEET}) as sandbox:
        yield sandbox


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """An empty folder."""
    return Home(tmp_path)


def repository(number: int) -> dict[str, Any]:
    """An item."""
    return {"owner": "acme-fleet", "repo": f"repo-{number:05d}"}


def readmes(*numbers: int, **fields: Any) -> dict[str, Any]:
    """A job that reads these repositories; from 40 on there is none."""
    return {"operation": "readme.get", "items": [repository(number) for number in numbers], **fields}


def counts(home: Home) -> tuple[int, int, Mapping[str, int]]:
    """Items, those that are left, and how the others ended, as the report and `bulk status` have them."""
    report = home.report("run")
    status = home.run("status", "run")
    items = report["items"]
    assert f"{sum(report['outcomes'].values()):,} of {items:,}" in status.out
    return items, report["left"], {kind: number for kind, number in report["outcomes"].items() if number}


def test_a_resume_with_a_smaller_limit_ends_at_once(home: Home, sandbox: Served) -> None:
    """Ten are done and three are asked for: nothing is sent, ten of ten items are counted, exit 0; later it goes on."""
    home.manifest(sandbox.base_url, {"a": readmes(*range(20))})
    assert home.run(*COMMAND, "--limit", "10").exit_code == 0
    before = len(sandbox.requests())
    again = home.run(*COMMAND, "--limit", "3", timeout_s=SOON_S)
    assert again.exit_code == 0, again.err
    assert len(sandbox.requests()) == before
    assert counts(home) == (10, 0, {"succeeded": 10})
    assert home.run(*COMMAND, "--limit", "12").exit_code == 0
    assert counts(home) == (12, 0, {"succeeded": 12})
    assert home.run(*COMMAND).exit_code == 0
    assert counts(home) == (20, 0, {"succeeded": 20})


def test_what_is_left_before_the_limit_is_done(home: Home, sandbox: Served) -> None:
    """Items of the end are done and the first ones are not: with a smaller limit just these are sent."""
    hot = [{**repository(0), "path": f"F{number}", "content": "QQ=="} for number in range(12)]
    others = [{**repository(number), "path": "F", "content": "QQ=="} for number in range(1, 8)]
    job = {"operation": "contents.put", "items": [*hot, *others], "with": {"message": "m"}}
    home.manifest(sandbox.base_url, {"a": job, "b": readmes(30, 31, 32, needs=["a"])})
    first = home.run(*COMMAND, "--failures", "0", "--max-duration", "0.05s", timeout_s=SOON_S)
    done = {line["index"] for line in home.results("run") if line["job"] == "a"} if first.exit_code in (0, 3) else set()
    again = home.run(*COMMAND, "--limit", "5", timeout_s=SOON_S)
    assert again.exit_code == 0, again.err
    expected = done | set(range(5))
    assert {line["index"] for line in home.results("run") if line["job"] == "a"} == expected
    items, left, outcomes = counts(home)
    assert (items, left, sum(outcomes.values())) == (len(expected) + 3, 0, len(expected) + 3)


def test_a_retry_with_a_limit_leaves_the_others(home: Home, sandbox: Served) -> None:
    """`bulk retry --limit 3` tries the failed items among the first three again; the others stay as they ended."""
    home.manifest(sandbox.base_url, {"a": readmes(0, 91, 2, 3, 4, 5, 6, 7, 98, 9)})
    assert home.run(*COMMAND).exit_code == 1
    before = len(sandbox.requests())
    again = home.run("retry", "run", "--limit", "3", timeout_s=SOON_S)
    assert again.exit_code == 1, again.err
    assert [line["path"].split("/")[-2] for line in sandbox.requests()[before:]] == ["repo-00091"]
    assert counts(home) == (10, 0, {"succeeded": 8, "failed": 2})


def test_copies_and_derived_items_beyond_the_limit(home: Home, sandbox: Served) -> None:
    """Duplicates and items that are made from results count the same: nothing is left, and nothing is sent."""
    derived = {
        "operation": "readme.get",
        "items": {"from": "a", "each": "item", "map": {"owner": "item.owner", "repo": "item.repo"}},
    }
    home.manifest(sandbox.base_url, {"a": readmes(1, 1, 2, 1, 2, 3, 4, 4, 4), "b": derived})
    assert home.run(*COMMAND).exit_code == 0
    before = len(sandbox.requests())
    for limit in ("2", "4", "7"):
        again = home.run(*COMMAND, "--limit", limit, timeout_s=SOON_S)
        assert again.exit_code == 0, again.err
        items, left, outcomes = counts(home)
        assert (items, left, outcomes["succeeded"] + outcomes["unchanged"]) == (18, 0, 18)
    assert len(sandbox.requests()) == before


def test_a_failure_beyond_the_limit_is_still_one(home: Home, sandbox: Served) -> None:
    """What is counted decides the exit code: an item behind the limit that failed makes it 1."""
    home.manifest(sandbox.base_url, {"a": readmes(0, 1, 2, 3, 94)})
    assert home.run(*COMMAND).exit_code == 1
    again = home.run(*COMMAND, "--limit", "2", timeout_s=SOON_S)
    assert again.exit_code == 1, again.err
    assert counts(home) == (5, 0, {"succeeded": 4, "failed": 1})
