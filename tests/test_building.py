"""A wheel is compiled where that is possible and plain Python where it is not, and nobody has to know which."""

import ctypes
import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import hatch_build
from bulk.cli import version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
MODULES = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]["modules"]
NO_COMPILER = {"CC": "/nowhere/cc"}

SMALL = """
[build-system]
requires = ["hatchling"]
build-backend = "hatch_build"
backend-path = ["."]

[project]
name = "small"
version = "1"
requires-python = ">=3.11"

[tool.hatch.build.targets.wheel]
packages = ["bulk", "jobs/bulk_jobs"]

[tool.hatch.build.targets.wheel.hooks.custom]
compiling-requires = ["mypy", "setuptools"]
modules = ["bulk/one.py", "jobs/bulk_jobs/two.py"]
"""


def build(root: Path, into: Path, what: str = "wheel", **environ: str) -> subprocess.CompletedProcess[str]:
    """Build a wheel or an sdist of the project in `root`, as a frontend does that isolates nothing."""
    into.mkdir(parents=True, exist_ok=True)
    code = f"import hatch_build; hatch_build.build_{what}({str(into)!r})"
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root), **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def contents(wheel: Path) -> set[str]:
    """The names of the files in it."""
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def small_project(root: Path) -> Path:
    """A project of the same shape, with two small modules that are compiled."""
    for package, module, code in (
        ("bulk", "one", "def twice(number: int) -> int:\n    return 2 * number\n"),
        ("jobs/bulk_jobs", "two", "def half(number: int) -> int:\n    return number // 2\n"),
    ):
        (root / package).mkdir(parents=True)
        (root / package / "__init__.py").touch()
        (root / package / f"{module}.py").write_text(code)
    (root / "pyproject.toml").write_text(SMALL)
    (root / "hatch_build.py").write_bytes((ROOT / "hatch_build.py").read_bytes())
    return root


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """The small project, for one test to change."""
    return small_project(tmp_path / "project")


@pytest.fixture(scope="module")
def small_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small project's wheel; a module imports later what is not installed.

    It is built once: the C compiler takes six seconds.
    """
    folder = tmp_path_factory.mktemp("compiled")
    root = small_project(folder / "project")
    with (root / "bulk" / "one.py").open("a") as module:
        module.write("def later() -> object:\n    import never_installed\n\n    return never_installed\n")
    done = build(root, folder / "made", BULK_COMPILE="")
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (folder / "made").iterdir()
    return wheel


@pytest.fixture
def compiled_wheel(small_wheel: Path) -> set[str]:
    """What is in the small project's wheel."""
    return contents(small_wheel)


def test_a_wheel_has_extension_modules_where_a_compiler_works(compiled_wheel: set[str]) -> None:
    """Each listed module is in the wheel as Python and, where a C compiler works, as an extension module too."""
    assert {"bulk/one.py", "bulk_jobs/two.py"} <= compiled_wheel
    compiled = {name.partition(".")[0] for name in compiled_wheel if name.endswith(".so") and "mypyc" not in name}
    assert compiled == (set() if hatch_build.fault_of_the_compiler() else {"bulk/one", "bulk_jobs/two"})


def test_what_is_compiled_calls_its_own_functions_directly(small_wheel: Path, tmp_path: Path) -> None:
    """The functions of the library are its own: one that other libraries see might be replaced by one of theirs, so
    that each call would look it up. What Python looks for is there.
    """
    with zipfile.ZipFile(small_wheel) as archive:
        made = [Path(archive.extract(name, tmp_path)) for name in archive.namelist() if "__mypyc." in name]
    assert len(made) == (hatch_build.fault_of_the_compiler() is None)
    for path in made:
        library = ctypes.PyDLL(str(path))
        assert hasattr(library, f"PyInit_{path.name.partition('.')[0]}")
        assert not hasattr(library, "CPyDef_one___twice")


def test_what_an_extra_brings_need_not_be_there(compiled_wheel: set[str]) -> None:
    """A module that imports later what is not installed is compiled all the same."""
    compiled = any(name.startswith("bulk/one.") and name.endswith(".so") for name in compiled_wheel)
    assert compiled == (hatch_build.fault_of_the_compiler() is None)


@pytest.mark.parametrize(
    ("broken", "environ"),
    [
        ("", NO_COMPILER),
        ("", {"CC": "false"}),
        ("", {"BULK_COMPILE": "0"}),
        ("def wrong() -> int:\n    return 'text'\n", {}),
    ],
    ids=["no compiler", "a compiler that fails", "not wanted", "mypyc refuses it"],
)
def test_a_wheel_is_plain_where_compiling_fails(
    small: Path, tmp_path: Path, broken: str, environ: dict[str, str]
) -> None:
    """Whatever the reason: the build succeeds, the wheel is for every platform, and one line says why."""
    with (small / "bulk" / "one.py").open("a") as module:
        module.write(broken)
    done = build(small, tmp_path / "made", **{"BULK_COMPILE": "", **environ})
    assert done.returncode == 0, done.stderr
    (wheel,) = (tmp_path / "made").iterdir()
    assert wheel.name == "small-1-py3-none-any.whl"
    (line,) = (done.stdout + done.stderr).splitlines()
    assert line.startswith("Bulk is not compiled: ")


def test_what_cannot_be_imported_is_not_taken(small: Path, tmp_path: Path) -> None:
    """Where a compiled module is missing, or raises when it is imported, nothing that was compiled counts."""
    (tmp_path / "built").mkdir()
    with pytest.raises(hatch_build.NotCompiled, match="imported from its source"):
        hatch_build.try_imports(small, ["bulk/one.py"], tmp_path / "built")
    (small / "bulk" / "one.py").write_text("raise RuntimeError('on import')\n")
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "built").mkdir()
    with pytest.raises(hatch_build.NotCompiled, match="RuntimeError: on import"):
        hatch_build.try_imports(small, ["bulk/one.py"], tmp_path / "again" / "built")


def test_what_was_asked_for_fails_loudly(small: Path, tmp_path: Path) -> None:
    """With BULK_COMPILE=1 there is no wheel where nothing can be compiled, and the message is not a traceback."""
    done = build(small, tmp_path / "made", BULK_COMPILE="1", **NO_COMPILER)
    assert done.returncode == 1
    assert "BULK_COMPILE=1" in done.stderr
    assert "/nowhere/cc" in done.stderr
    assert "Traceback" not in done.stderr
    assert list((tmp_path / "made").iterdir()) == []
    assert "expected 0" in build(small, tmp_path / "made", BULK_COMPILE="yes").stderr


def test_what_compiling_needs_is_asked_for_only_where_it_can_succeed(monkeypatch) -> None:
    """mypy and setuptools are not a requirement of a wheel without a compiler, nor of an editable installation."""
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("BULK_COMPILE", raising=False)
    monkeypatch.setenv("CC", NO_COMPILER["CC"])
    assert hatch_build.get_requires_for_build_wheel() == []
    monkeypatch.setenv("BULK_COMPILE", "1")
    assert {each.partition(">")[0] for each in hatch_build.get_requires_for_build_wheel()} > {"mypy", "setuptools"}
    assert not any(each.startswith("mypy") for each in hatch_build.get_requires_for_build_editable())
    monkeypatch.setenv("BULK_COMPILE", "0")
    assert hatch_build.get_requires_for_build_wheel() == []


def test_a_wheel_from_an_sdist_has_everything(tmp_path: Path) -> None:
    """All of both packages, the examples, schemas, templates and py.typed are in a wheel that an sdist was built to."""
    assert build(ROOT, tmp_path / "sdist", "sdist").returncode == 0
    (archive,) = (tmp_path / "sdist").iterdir()
    with tempfile.TemporaryDirectory() as folder, tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
        (source,) = Path(folder).iterdir()
        done = build(source, tmp_path / "made", BULK_COMPILE="0")
    assert done.returncode == 0, done.stderr
    (wheel,) = (tmp_path / "made").iterdir()
    files = [path for folder in ("bulk", "jobs") for path in (ROOT / folder).rglob("*") if path.is_file()]
    expected = {str(path.relative_to(ROOT)) for path in files if path.suffix not in (".pyc", ".so")}
    installed = {name.replace("jobs/examples", "bulk_jobs/examples").removeprefix("jobs/") for name in expected}
    assert {Path(name).suffix for name in installed} >= {".py", ".sql", ".typed", ".j2", ".yaml"}
    assert installed - contents(wheel) == set()


def test_the_version_looks_at_one_of_the_modules_that_are_compiled() -> None:
    """What `bulk --version` looks at stands in the list."""
    assert version.ONE_OF_THEM.replace(".", "/") + ".py" in MODULES


def test_all_of_the_modules_that_are_compiled_are_there() -> None:
    """Each of them is a file, and stands in the list once."""
    assert [name for name in MODULES if not (ROOT / name).is_file()] == []
    assert len(set(MODULES)) == len(MODULES)
