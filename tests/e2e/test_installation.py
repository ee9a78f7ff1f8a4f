"""The whole of Bulk as pip installs it, away from the working copy: compiled, and plain where there is no compiler."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import hatch_build

ROOT = Path(__file__).parents[2]


@pytest.mark.soak
@pytest.mark.parametrize("compiler", ["there is one", "there is none"])
def test_what_pip_installs_works(compiler: str, tmp_path: Path) -> None:
    """`pip install .` succeeds either way, `bulk --version` says which one it is, and `bulk demo` succeeds."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "BULK_"))}
    if compiler == "there is none":
        environ["CC"] = "/nowhere/cc"
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--target", str(tmp_path / "installed"), str(ROOT)], env=environ, check=True)
    environ |= {"PYTHONPATH": str(tmp_path / "installed"), "PYTHONSAFEPATH": "1"}
    bulk = [sys.executable, "-m", "bulk"]
    version = subprocess.run(
        [*bulk, "--version"], cwd=tmp_path, env=environ, capture_output=True, text=True, check=True
    )
    is_compiled = compiler == "there is one" and hatch_build.fault_of_the_compiler() is None
    assert ("(compiled, " if is_compiled else "(interpreted, ") in version.stdout
    demo = subprocess.run([*bulk, "demo"], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert demo.returncode == 0, demo.stdout + demo.stderr
