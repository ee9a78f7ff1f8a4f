"""Large files are converted by a process beside this one: with the same result, and whatever happens to that one."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from bulk.bundle import conversion
from bulk.bundle.conversion import Converter
from bulk.bundle.item_files import read_inside
from bulk.capabilities import FileError
from bulk_jobs.snapshots import CreateSnapshot
from tests.jobs.shared.sboms.bills import cyclonedx_json, graph

CREATE = CreateSnapshot()
PACKAGES = 3_000
"""Of a bill that is large enough to be converted elsewhere (count)."""
OWNER = """
import os, sys
from pathlib import Path
from bulk.bundle.conversion import CONVERTER
from bulk.operation import find
found = CONVERTER.content(Path(sys.argv[1]), find("snapshot.create"), "sbom_file", "large.json")
print(CONVERTER._child._process.pid, len(found.data), flush=True)
sys.stdin.read()
"""


def is_over(pid):
    """Whether a process has ended, be it that nobody has waited for it."""
    told = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return told.stdout.strip().startswith(("Z", "X")) or not told.stdout.strip()


class DiesConverting(CreateSnapshot):
    """Ends its process over a file, as one does that the system ends for its memory."""

    @classmethod
    def converted(cls, field, data):
        """End."""
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError


class Talkative(CreateSnapshot):
    """Says more on standard error than a pipe holds, as a library does that warns of each component."""

    @classmethod
    def converted(cls, field, data):
        """Warn of much, then convert."""
        for number in range(5_000):
            sys.stderr.write(f"component {number} has no version {'.' * 100}\n")
        return CREATE.converted(field, data)


class TalksAndFails(Talkative):
    """Ends its process after that, with a reason."""

    @classmethod
    def converted(cls, field, data):
        """Warn of much, then end."""
        super().converted(field, data)
        raise MemoryError("no memory is left")


@pytest.fixture
def folder(tmp_path):
    """A folder with a large bill, a small one, and one that is none."""
    (tmp_path / "large.json").write_bytes(cyclonedx_json(graph(PACKAGES, 1)))
    (tmp_path / "small.json").write_bytes(cyclonedx_json(graph(3, 2)))
    (tmp_path / "none.json").write_bytes(b"[" + b" " * conversion.LARGE_BYTES + b"]")
    return tmp_path


@pytest.fixture
def converter():
    """One of this test alone."""
    found = Converter()
    yield found
    found.end()


def content(converter, folder, name="large.json", operation=CREATE):
    """A file as the converter gives it."""
    return converter.content(folder, operation, "sbom_file", name)


def test_a_large_file_is_converted_as_here(converter, folder):
    """The bytes are the same; a flaw comes back with the digest; what can't be read is a FileError with its reason."""
    found = content(converter, folder)
    assert found.data == CREATE.converted("sbom_file", read_inside(folder, "large.json"))
    flawed = content(converter, folder, "none.json")
    assert (flawed.flaw.startswith("expected a bill of materials"), flawed.data) == (True, b"")
    assert len(flawed.digest) == 32
    (folder / "inside").mkdir()
    with pytest.raises(FileError, match="lies outside the manifest's folder"):
        content(converter, folder / "inside", "../large.json")


def test_a_few_small_files_start_no_process(converter, folder):
    """They are converted here, until there are many."""
    assert content(converter, folder, "small.json") is None
    assert content(converter, folder, "missing.json") is None
    assert converter._child is None
    size = (folder / "small.json").stat().st_size
    converter._here = conversion.HERE_BYTES - size + 1
    assert content(converter, folder, "small.json") is not None


def test_what_another_process_would_not_find_is_converted_here(converter, folder):
    """An operation that a function has made, or a script, is not a name that another process could look up."""

    class OfAFunction(CreateSnapshot):
        """Not to be found by its name."""

    class OfAScript(CreateSnapshot):
        """Of the program itself."""

    OfAScript.__module__, OfAScript.__qualname__ = "__main__", "OfAScript"
    assert content(converter, folder, operation=OfAFunction()) is None
    assert content(converter, folder, operation=OfAScript()) is None
    assert content(converter, folder) is not None


def test_a_process_that_was_killed_loses_no_file(converter, folder):
    """Another process converts the next file, and the one over which it was killed (failures.md row 91)."""
    wanted = content(converter, folder)
    for _ in range(3):
        converter._child.kill()
        assert content(converter, folder) == wanted
    found, killed = [], threading.Event()

    def many():
        for _ in range(10):
            found.append(content(converter, folder))
            killed.set()

    threads = [threading.Thread(target=many) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert killed.wait(60)
    converter._child.kill()
    for thread in threads:
        thread.join(60)
    assert found == [wanted] * 20


def test_a_file_that_ends_every_process_is_a_flaw_and_the_next_one_is_converted(converter, folder):
    """Two processes end over it, then it is given up; others are not touched (failures.md row 91)."""
    with pytest.raises(FileError, match=r"'large.json': the process that converts it ended 2 times, the last with -9"):
        content(converter, folder, operation=DiesConverting())
    assert content(converter, folder) is not None


def test_a_process_that_says_much_is_heard_while_it_works(converter, folder):
    """More on standard error than a pipe holds (64 kB) holds nothing up, and the last line is told where it ends."""
    assert content(converter, folder, operation=Talkative()) is not None
    with pytest.raises(FileError, match="the last with 1: MemoryError: no memory is left"):
        content(converter, folder, operation=TalksAndFails())


def test_it_ends_with_its_owner_and_gets_no_secret(folder):
    """The owner is killed, and it is gone; of its environment it has what Python needs (failures.md rows 38, 91)."""
    environ = {**os.environ, "BULK_TOKEN": "canary", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", OWNER, str(folder)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environ) as owner:
        assert owner.stdout is not None
        pid, size = map(int, owner.stdout.readline().split())
        assert size > 0
        if sys.platform == "linux":
            with open(f"/proc/{pid}/environ", "rb") as file:
                names = {part.partition(b"=")[0] for part in file.read().split(b"\0")}
            assert b"PATH" in names
            assert b"BULK_TOKEN" not in names
        owner.kill()
        owner.wait(60)
    until = time.monotonic() + 20
    while not is_over(pid):
        assert time.monotonic() < until, "it goes on without its owner"


def test_what_a_run_sends_is_what_it_checked(converter, folder):
    """A file that holds something else than when it was checked has another digest, converted or not."""
    before = content(converter, folder).digest
    text = json.loads((folder / "large.json").read_bytes())
    (folder / "large.json").write_text(json.dumps(text, indent=1))
    assert content(converter, folder).digest != before
