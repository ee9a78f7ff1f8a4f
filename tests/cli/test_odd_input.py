"""Whatever bytes a manifest, an items file or a command line holds: a message and an exit code, never a traceback.

A small part of a long search with random bytes; its seed is fixed, so that a failure is found again.
"""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from bulk.cli import main
from bulk.exit_codes import ExitCode
from bulk.operation import find, names

CASES = 40
SHORT = (
    "",
    "a",
    "a/b",
    "..",
    "\0",
    "é",
    "\u202e",
    "null",
    "1e999",
    "101%",
    "-5%",
    ".inf",
    "%2e%2e",
    "\n",
    "2026-11-21",
)
MARKUP = ("{", "}", "{a.b.c}", "{owner!r}", "${item.x}", "*a", "&a", "!t", "- ", ": ", "# ", "<<", "'", '"')
PLACES = ("env:X", "file:/dev/null", "command:false", "http://[::bad/api/v3", "https://u:p@h/api/v3")
WORDS = (*SHORT, *MARKUP, *PLACES, "x" * 3_000, "9" * 5_000)
MARKS = (
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\\ud800",
    b"\x1f\x8b",
    b"(\xb5/\xfd",
    b"{" * 300,
    b"[" * 300,
    b"\r",
    b"\xc2\x85",
)
ESCAPES = (b"\\U00110000", b"%YAML 1.1\n---\n", b"\n...\n", b"? ", b"\0", b'"', b"\t", b"1" * 5_000)
BYTES = (*MARKS, *ESCAPES)
FILES = ("i.jsonl", "i.json", "i.csv", "i.yaml", "i.jsonl.gz", "i.csv.zst", "none.jsonl", ".")
FIELDS = (
    "version",
    "platform",
    "limits",
    "jobs",
    "items",
    "with",
    "save",
    "needs",
    "credential",
    "from",
    "map",
    "owner",
)


class Odd:
    """Makes what nobody would write."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)

    def value(self, depth: int = 0) -> Any:
        """Any JSON value."""
        kind = self.dice.randrange(10)
        if depth > 3 or kind < 6:
            return self.dice.choice(WORDS)
        if kind < 7:
            return self.dice.choice((0, -1, 2**64, 10**400, 1.5, True, None))
        values = [self.value(depth + 1) for _ in range(self.dice.randrange(4))]
        return values if kind == 7 else {self.dice.choice((*WORDS, *FIELDS)): value for value in values}

    def item(self, operation: str) -> dict[str, Any]:
        """An item that is nearly right."""
        item = dict(find(operation).example)
        for _ in range(self.dice.randrange(3)):
            item[self.dice.choice((*item, *FIELDS))] = self.value()
        return item

    def manifest(self) -> dict[str, Any]:
        """A manifest that is nearly right."""
        jobs: dict[str, Any] = {}
        for number in range(self.dice.randint(1, 3)):
            operation = self.dice.choice(names())
            items = [self.item(operation) for _ in range(self.dice.randrange(3))]
            job = {"operation": operation, "items": self.dice.choice((*FILES, items, items, items))}
            for _ in range(self.dice.randrange(3)):
                job[self.dice.choice(FIELDS)] = self.value()
            jobs[f"j{number}"] = job
        made = {"version": 1, "platform": {"base_url": "http://127.0.0.1:9/api/v3"}, "jobs": jobs}
        for _ in range(self.dice.randrange(2)):
            made[self.dice.choice(FIELDS)] = self.value()
        return made

    def damaged(self, data: bytes) -> bytes:
        """`data` with some bytes changed, taken out or put in."""
        for _ in range(self.dice.choice((0, 1, 1, 2, 8))):
            at = self.dice.randrange(len(data) + 1)
            put = self.dice.choice((*BYTES, self.dice.randbytes(3), b""))
            data = data[:at] + put + data[at + self.dice.randrange(4) :]
        return data

    def files(self, folder: Path) -> None:
        """A manifest, and files of items of each kind."""
        operation = self.dice.choice(names())
        items = [self.item(operation) for _ in range(self.dice.randrange(4))]
        cells = "\n".join(
            ",".join(self.dice.choice((*FIELDS, *WORDS, "a.b", "a.")) for _ in range(4)) for _ in range(4)
        )
        for name in FILES[:-2]:
            text = (
                cells if ".csv" in name else "\n".join(map(json.dumps, items)) if "jsonl" in name else json.dumps(items)
            )
            (folder / name).write_bytes(self.damaged(text.encode()))
        (folder / "m.yaml").write_bytes(self.damaged(json.dumps(self.manifest()).encode()))


@pytest.mark.parametrize("seed", range(4))
def test_nothing_that_is_read_shows_a_traceback(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Odd manifests and items end with 0, 2 or 5, and words."""
    monkeypatch.chdir(tmp_path)
    odd = Odd(seed)
    for case in range(CASES // 4):
        odd.files(tmp_path)
        exit_code = main(["check", "m.yaml"])
        printed = capsys.readouterr().err
        assert exit_code in (0, 2, 5), (case, printed)
        assert (exit_code == 0) or printed.startswith("bulk: ")
        assert "Traceback" not in printed


@pytest.mark.parametrize("command", ["check", "plan", "status", "report", "diff", "operations", "completion", "none"])
def test_no_command_line_shows_a_traceback(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Odd arguments and options end with 0, 2 or 5, and words."""
    monkeypatch.chdir(tmp_path)
    dice = random.Random(command)
    options = (
        "--base-url",
        "--reserve",
        "--limit",
        "--json",
        "--only",
        "--format",
        "--credential",
        "--log-level",
        "--",
    )
    for _ in range(12):
        arguments = [dice.choice((dice.choice(WORDS), dice.choice(options))) for _ in range(dice.randrange(4))]
        exit_code = main([command, *(text.replace("\0", "") for text in arguments)])
        printed = capsys.readouterr().err
        assert exit_code in (0, 2, 5), (arguments, printed)
        assert exit_code != ExitCode.BUG
        assert "Traceback" not in printed


@pytest.mark.parametrize(
    "words", [("sql", ".", "select \udcff"), ("audit", "m.yaml", "--history", "h\udcff"), ("run", "\udcff")]
)
def test_an_argument_that_is_no_utf_8_is_refused(words, capsys):
    """Exit 2, and which one it is: it could not be written into a ledger."""
    assert main(list(words)) == ExitCode.UNUSABLE
    assert f"argument {len(words)}: " in capsys.readouterr().err


def test_a_folder_whose_path_is_no_utf_8_is_named(tmp_path, monkeypatch, capsys):
    """Exit 2 where the path had to be written down; what writes nothing works there."""
    folder = tmp_path / "w\udcff"
    folder.mkdir()
    monkeypatch.chdir(folder)
    jobs = {"readmes": {"operation": "readme.get", "items": [{"owner": "a", "repo": "b"}]}}
    text = json.dumps({"version": 1, "platform": {"base_url": "http://127.0.0.1:9/api/v3"}, "jobs": jobs})
    Path("m.yaml").write_text(text)
    monkeypatch.setenv("BULK_TOKEN", "t")
    assert main(["run", "m.yaml", "--progress", "none"]) == ExitCode.UNUSABLE
    assert "the path of this folder is not UTF-8" in capsys.readouterr().err
    assert main(["check", "m.yaml"]) == ExitCode.DONE


@pytest.mark.parametrize("name", ["XDG_CACHE_HOME", "HOME"])
def test_a_variable_that_is_no_utf_8_is_named(name, tmp_path, monkeypatch, capsys):
    """Exit 2 where what it names had to be written down."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv(name, f"{tmp_path}/\udcff")
    jobs = {"readmes": {"operation": "readme.get", "items": [{"owner": "a", "repo": "b"}]}}
    text = json.dumps({"version": 1, "platform": {"base_url": "http://127.0.0.1:9/api/v3"}, "jobs": jobs})
    Path("m.yaml").write_text(text)
    monkeypatch.setenv("BULK_TOKEN", "t")
    assert main(["run", "m.yaml", "--progress", "none"]) == ExitCode.UNUSABLE
    assert f"the variable {name} is not UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["x" * 300, "x/" * 3_000, "loop"])
@pytest.mark.parametrize(
    "words",
    [(each,) for each in ("resume", "status", "report", "verify", "retry", "watch", "check", "plan")]
    + [("run", "m.yaml", "--run-dir"), ("check", "ca.yaml")],
)
def test_a_name_that_nothing_can_have_is_no_bug(
    words: tuple[str, ...],
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A name that is too long, or a link to itself, ends with 2 or 5, and the message names it."""
    monkeypatch.chdir(tmp_path)
    Path("loop").symlink_to("loop")
    manifest = {"version": 1, "jobs": {"a": {"operation": "readme.get", "items": [{"owner": "a", "repo": "b"}]}}}
    Path("m.yaml").write_text(json.dumps(manifest))
    Path("ca.yaml").write_text(json.dumps({**manifest, "platform": {"ca_bundle": name}}))
    arguments = words if words[-1] == "ca.yaml" else (*words, name)
    assert main(list(arguments)) in (ExitCode.UNUSABLE, ExitCode.RUN_DIRECTORY)
    assert capsys.readouterr().err.startswith("bulk: ")
