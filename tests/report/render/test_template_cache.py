"""The code of the page's template is made once, and what is kept of it is never taken for something else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
made = []
sys.addaudithook(lambda event, args: made.append(args[1]) if event == "compile" and args[0] is not None else None)
from bulk.report.render.html import environment
template = environment("bulk.report.render").get_template("report.html.j2")
assert template.root_render_func is not None
print(sum(str(name).endswith("report.html.j2") for name in made))
"""


def times_made(folder: Path, **variables: str) -> int:
    """How often a process that needs the template has made its code; what is kept lies in that folder."""
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environ |= {"PYTHONPYCACHEPREFIX": str(folder), **variables}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environ, capture_output=True, text=True, check=True)
    return int(done.stdout)


def kept(folder: Path) -> list[Path]:
    """The files with the code of the template."""
    return list(folder.rglob("report.html.*"))


def test_the_code_of_a_template_is_made_once(tmp_path: Path) -> None:
    """The first process makes it, the next one does not."""
    assert [times_made(tmp_path) for _ in range(3)] == [1, 0, 0]
    assert len(kept(tmp_path)) == 1


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: bytes(100), lambda data: b"", lambda data: data + b"x"]
)
def test_what_is_damaged_is_made_again(tmp_path: Path, damage) -> None:
    """Cut, overwritten, empty or longer: it does not count, and is replaced."""
    times_made(tmp_path)
    (path,) = kept(tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    assert [times_made(tmp_path) for _ in range(2)] == [1, 0]


def test_where_nothing_may_be_kept(tmp_path: Path) -> None:
    """Where Python keeps no code, or can't, the template is made each time, and nothing fails."""
    assert [times_made(tmp_path, PYTHONDONTWRITEBYTECODE="1") for _ in range(2)] == [1, 1]
    assert kept(tmp_path) == []
    (tmp_path / "file").write_text("")
    assert times_made(tmp_path / "file") == 1
