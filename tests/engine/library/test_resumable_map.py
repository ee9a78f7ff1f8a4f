"""`map(run_dir=…)`: killed in the middle and called again, every effect happens once and every result is there."""

import json
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import bulk
from tests.e2e.support.platform import ADMIN, Home, Served, wait_for

TOKEN = {"BULK_TOKEN": ADMIN}
WRITES = 150

PROGRAM = """
import json, sys
import bulk

items = [
    {"owner": "acme-fleet", "repo": f"repo-{number % 40:05d}", "path": f"{sys.argv[3]}/{number}.txt",
     "message": "m", "content": "YQ==", "id": str(number)}
    for number in range(int(sys.argv[4]))
]
for outcome in bulk.map("contents.put", items, base_url=sys.argv[1], run_dir=sys.argv[2], concurrency=8):
    print(json.dumps([outcome.index, outcome.id, outcome.outcome]), flush=True)
"""


def outcomes(text: str) -> list[Any]:
    """What the program printed; a line that was cut off by its end does not count."""
    return [json.loads(line) for line in text.splitlines() if line.endswith("]")]


def test_killed_and_called_again(sandbox: Served, tmp_path: Path) -> None:
    """After kill -9 in the middle, twice, the same call gives every outcome, and every file was written once."""
    home = Home(tmp_path)
    command = [sys.executable, "-c", PROGRAM, sandbox.base_url, str(tmp_path / "run"), "killed", str(WRITES)]

    def writes() -> int:
        return sum(line["method"] == "PUT" and "/killed/" in line["path"] for line in sandbox.requests())

    for enough in (WRITES // 4, WRITES // 2):
        with home.start_any(command) as process:
            wait_for(lambda enough=enough: writes() > enough, process)  # type: ignore[misc]
            process.send_signal(signal.SIGKILL)
            process.wait()
    ran = home.run_any(command)
    assert ran.exit_code == 0, ran.err
    found = outcomes(ran.out)
    assert Counter(index for index, _, _ in found) == Counter(range(WRITES))
    assert {(str(index), "succeeded") for index in range(WRITES)} == {(own, outcome) for _, own, outcome in found}
    applied = Counter(
        line["path"]
        for line in sandbox.requests()
        if line["method"] == "PUT" and "/killed/" in line["path"] and line["status"] == 201
    )
    assert len(applied) == WRITES
    assert set(applied.values()) == {1}
    before = len(sandbox.requests())
    again = home.run_any(command)
    assert sorted(outcomes(again.out)) == sorted(found), "all of it again, in whatever order"
    assert len(sandbox.requests()) == before


def reads(count: int, start: int = 0) -> list[dict[str, str]]:
    """`count` READMEs."""
    return [{"owner": "acme-fleet", "repo": f"repo-{number:05d}"} for number in range(start, start + count)]


def public(result: Any) -> Any:
    """A result without the address that has a token, which is kept nowhere."""
    return result and {name: value for name, value in result.items() if name != "download_url"}


def test_what_comes_again_is_what_came(sandbox: Served, tmp_path: Path) -> None:
    """An outcome that is told again has the same fields as when it was new, without its secrets."""

    def run() -> dict[int, Any]:
        some = [*reads(3), {"owner": "acme-fleet", "repo": "nowhere", "id": "mine"}]
        found = bulk.map("readme.get", some, base_url=sandbox.base_url, environ=TOKEN, run_dir=tmp_path / "run")
        return {one.index: one for one in found}

    first, second = run(), run()
    assert first.keys() == second.keys() == set(range(4))
    for index, one in first.items():
        other = second[index]
        for name in ("job", "id", "item", "outcome", "http_status", "attempts", "request_id", "error"):
            assert getattr(one, name) == getattr(other, name), name
            assert type(getattr(one, name)) is type(getattr(other, name)), name
        assert public(one.result) == public(other.result)
        assert abs(one.started_at - other.started_at) < 0.001
        assert abs(one.elapsed_ms - other.elapsed_ms) <= 0.05


def test_other_items_are_refused(sandbox: Served, tmp_path: Path) -> None:
    """Items that are not those of the run are refused by their number, or as too many or too few, and so is another
    operation; nothing is sent."""
    again: Any = {"base_url": sandbox.base_url, "environ": TOKEN, "run_dir": tmp_path / "run"}
    assert len(list(bulk.map("readme.get", reads(5), **again))) == 5
    before = len(sandbox.journal())
    fewer, more = "there are fewer items, 4, than there were", "there are more items than the 5 that there were"
    for items, what in ((reads(4), fewer), (reads(6), more), (reads(5, start=1), r"items\[0\] is not what it was")):
        with pytest.raises(bulk.RunDirectoryError, match=f"^{what} when the run in "):
            list(bulk.map("readme.get", items, **again))
    with pytest.raises(bulk.RunDirectoryError, match="belongs to another run"):
        list(bulk.map("contents.get", reads(5), **again))
    assert len(sandbox.journal()) == before


def test_a_bad_item_may_be_corrected(sandbox: Served, tmp_path: Path) -> None:
    """A call that was refused before anything was sent binds nothing: the corrected items may take the directory."""
    again: Any = {"base_url": sandbox.base_url, "environ": TOKEN, "run_dir": tmp_path / "run"}
    with pytest.raises(bulk.ManifestError, match=r"^items\[0\]: rpeo"):
        list(bulk.map("readme.get", [{"owner": "acme-fleet", "rpeo": "x"}], **again))
    assert [one.outcome for one in bulk.map("readme.get", reads(1), **again)] == ["succeeded"]


def test_a_directory_of_somebody_else_is_left_alone(sandbox: Served, tmp_path: Path) -> None:
    """A folder with other files, or with a manifest of the user's own, is refused and stays as it is."""
    for name, content in (("notes.txt", "mine"), ("manifest.yaml", "version: 1\n")):
        folder = tmp_path / name.partition(".")[0]
        folder.mkdir()
        (folder / name).write_text(content)
        with pytest.raises(bulk.RunDirectoryError):
            list(bulk.map("readme.get", reads(1), base_url=sandbox.base_url, environ=TOKEN, run_dir=folder))
        assert (folder / name).read_text() == content


def test_secrets_are_not_kept(sandbox: Served, tmp_path: Path) -> None:
    """Items with secret fields can't be kept in a run directory: that is refused before anything is written."""
    hook = {"org": "acme-eng", "config": {"url": "https://h.example.com", "secret": "a-secret-of-hooks"}}
    with pytest.raises(bulk.UsageError, match=r"webhook\.create hold secrets"):
        list(bulk.map("webhook.create", [hook], base_url=sandbox.base_url, environ=TOKEN, run_dir=tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_the_directory_is_a_run_directory(sandbox: Served, tmp_path: Path) -> None:
    """`bulk status`, `bulk report` and `bulk retry` work on it, and what a retry brought comes next."""
    home = Home(tmp_path)
    some = [*reads(2), {"owner": "acme-fleet", "repo": "later"}]
    again: Any = {"base_url": sandbox.base_url, "environ": TOKEN, "run_dir": tmp_path / "run"}
    assert [one.outcome for one in sorted(bulk.map("readme.get", some, **again), key=lambda one: one.index)] == [
        "succeeded",
        "succeeded",
        "failed",
    ]
    assert json.loads(home.run("status", "run", "--json").out)["state"] == "complete"
    retried = home.run("retry", "run")
    assert retried.exit_code == 1, retried.err
    assert sorted(one.index for one in bulk.map("readme.get", some, **again)) == [0, 1, 2]
    assert (tmp_path / "run").stat().st_mode & 0o077 == 0
