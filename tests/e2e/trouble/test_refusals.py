"""A command that is refused leaves the run directory byte for byte as it was, however late that comes."""

import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.support.platform import Home, Ran, Served, served

FLEET = {"organization": "acme-fleet", "count": 10, "readme_bytes": 100}
ITEMS = [{"owner": "acme-fleet", "repo": f"repo-{number:05d}"} for number in range(10)]
MISSING = {"owner": "acme-fleet", "repo": "missing"}
RUN = ("run", "manifest.yaml", "--run-dir", "run")


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A platform with ten repositories."""
    with served(tmp_path_factory.mktemp("sandbox"), "--rate-limit", "off", seed={"repositories": FLEET}) as sandbox:
        yield sandbox


@pytest.fixture
def home(tmp_path: Path, sandbox: Served) -> Home:
    """A folder with a run that did the first three items of ten, one of which failed."""
    home = Home(tmp_path)
    home.lines("items.jsonl", [*ITEMS[:2], MISSING, *ITEMS[3:]])
    home.manifest(sandbox.base_url, {"readmes": {"operation": "readme.get", "items": "items.jsonl"}})
    ran = home.run(*RUN, "--limit", "3")
    assert ran.exit_code == 1, ran.err
    return home


def files(folder: Path) -> dict[str, bytes]:
    """Everything in a run directory but the lock, which each process opens."""
    found = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.name != "run.lock"}
    return {name: path.read_bytes() if path.is_file() else b"a folder" for name, path in found.items()}


def is_refused(home: Home, exit_code: int, *command: str, stdin: str | None = None) -> Ran:
    """Run a command that is refused, and see that it changes nothing and that `bulk verify` finds what it did."""
    run_dir = home.folder / "run"
    before, verified = files(run_dir), home.run("verify", "run")
    ran = home.run(*command, stdin=stdin)
    assert ran.exit_code == exit_code, ran.out + ran.err
    changed = {name for name, data in (files(run_dir).items() ^ before.items())}
    assert not changed, f"{changed}: {ran.err}"
    again = home.run("verify", "run")
    assert (again.exit_code, again.out) == (verified.exit_code, verified.out)
    return ran


def touched(home: Home) -> None:
    """The items file has another time, and the same content."""
    os.utime(home.folder / "items.jsonl")


def other_items(home: Home) -> None:
    """Another item at the end, which no item of the run so far is."""
    home.lines("items.jsonl", [*ITEMS[:2], MISSING, *ITEMS[3:9], {"owner": "acme-fleet", "repo": "another"}])


def damaged_gates(home: Home) -> None:
    """What was decided about waves can't be read."""
    home.write("run/gates.json", "{")


def without_check(home: Home) -> None:
    """What the check has found is gone: it is made again."""
    (home.folder / "run" / "check.json").unlink()


def edited_results(home: Home) -> None:
    """A line of the results is not as it was written."""
    path = home.folder / "run" / "results.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"succeeded"', b'"unchanged"', 1))


def goes_on_elsewhere(home: Home) -> None:
    """A store goes on with the run."""
    with closing(sqlite3.connect(home.folder / "run" / "ledger.db", isolation_level=None)) as connection:
        connection.execute("INSERT INTO elsewhere VALUES ('bulk resume --store')")


LATE: dict[str, tuple[Callable[[Home], None], int, tuple[str, ...]]] = {
    "a wave that there is not": (lambda _: None, 2, (*RUN, "--limit", "5", "--accept-wave", "9")),
    "such a wave, touched": (touched, 2, (*RUN, "--limit", "3", "--accept-wave", "9")),
    "such a wave, without a check": (without_check, 2, (*RUN, "--limit", "3", "--accept-wave", "9")),
    "other items": (other_items, 5, RUN),
    "other items, the same limit": (other_items, 5, (*RUN, "--limit", "3")),
    "damaged gates": (damaged_gates, 5, RUN),
    "damaged gates, retried": (damaged_gates, 5, ("retry", "run")),
    "edited results": (edited_results, 5, RUN),
    "another address": (lambda _: None, 5, (*RUN, "--base-url", "http://127.0.0.1:9/api/v3")),
    "another vendor": (touched, 5, (*RUN, "--limit", "3", "--vendor", "github")),
    "it goes on elsewhere": (goes_on_elsewhere, 5, RUN),
}


@pytest.mark.parametrize("case", LATE)
def test_a_late_refusal_changes_nothing(home: Home, sandbox: Served, case: str) -> None:
    """Whatever refuses a command after its items were checked again, the run directory stays as it was."""
    prepare, exit_code, command = LATE[case]
    prepare(home)
    before = len(sandbox.journal())
    is_refused(home, exit_code, *command)
    assert len(sandbox.journal()) == before


def test_flaws_behind_the_limit_change_nothing(tmp_path: Path, sandbox: Served) -> None:
    """A larger limit reads items that can't be used: exit 2, and the run goes on with those that it has."""
    home = Home(tmp_path)
    home.lines("items.jsonl", [*ITEMS[:5], {"owner": "acme-fleet"}])
    home.manifest(sandbox.base_url, {"readmes": {"operation": "readme.get", "items": "items.jsonl"}})
    assert home.run(*RUN, "--limit", "3").exit_code == 0
    assert "repo" in is_refused(home, 2, *RUN).err
    ran = home.run(*RUN, "--limit", "5")
    assert ran.exit_code == 0, ran.err
    assert len(home.results("run")) == 5


def test_other_items_from_standard_input_are_not_kept(tmp_path: Path, sandbox: Served) -> None:
    """The copy of standard input is gone: other items are refused and not kept, and the same ones go on."""
    home, job = Home(tmp_path), {"readmes": {"operation": "readme.get", "items": "-"}}
    home.manifest(sandbox.base_url, job)
    text = home.lines("items.jsonl", ITEMS).read_text()
    assert home.run(*RUN, "--limit", "3", stdin=text).exit_code == 0
    (home.folder / "run" / "stdin-readmes.jsonl").unlink()
    is_refused(home, 5, *RUN, stdin=text.replace("repo-00009", "another"))
    ran = home.run(*RUN, stdin=text)
    assert ran.exit_code == 0, ran.err
    assert home.run("resume", "run").exit_code == 0
    assert Counter(line["index"] for line in home.results("run")) == Counter(range(10))


def test_what_a_refused_check_has_left_is_made_again(home: Home, sandbox: Served) -> None:
    """A process that was killed while it checked again leaves a folder that does no harm, and is gone at the end."""
    home.write("run/check.new/check.json", "{")
    ran = home.run(*RUN)
    assert ran.exit_code == 1, ran.err
    assert not (home.folder / "run" / "check.new").exists()
    verified = home.run("verify", "run")
    assert verified.exit_code == 0, verified.out
    assert Counter(line["index"] for line in home.results("run")) == Counter(range(10))


@pytest.mark.parametrize("data", [b'{"manifest": "\xa0"}', b"[" * 100_000, b"{", b"null", b""])
@pytest.mark.parametrize("part", ["origin.json", "check.json", "digests.json", "run.seal", "report.json"])
def test_a_part_that_is_no_json_is_no_bug(home: Home, part: str, data: bytes) -> None:
    """Whatever bytes a file of the run directory holds, each command uses the run without it, or says what to do."""
    (home.folder / "run" / part).write_bytes(data)
    for command in ("status", "verify", "report", "retry", "resume"):
        ran = home.run(command, "run")
        assert ran.exit_code in (0, 1, 5), (command, ran.err)
