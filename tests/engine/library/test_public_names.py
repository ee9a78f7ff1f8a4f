"""What `import bulk` gives, how soon, and what is not imported with it."""

import json
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

import bulk
from bulk import errors

ROOT = Path(__file__).parents[3]

PROGRAM = """
import json, sys, time
before = time.perf_counter()
import bulk
took = time.perf_counter() - before
print(json.dumps([took, sorted(name for name in sys.modules if name.partition(".")[0] in
    ("aiohttp", "anyio", "msgspec", "orjson", "click", "rich", "jinja2", "ruamel", "asyncio"))]))
"""
MOST_IMPORT_S = 0.1


def test_every_public_name_is_there() -> None:
    """Each name of `__all__` is found, is in `dir(bulk)`, and no other name passes for one."""
    assert set(bulk.__all__) <= set(dir(bulk))
    for name in bulk.__all__:
        assert getattr(bulk, name) is not None
    with pytest.raises(AttributeError, match="engines"):
        _ = bulk.engines


def test_every_error_is_exported() -> None:
    """Whatever the library raises can be caught by a name of `bulk`."""
    kinds = {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, Exception) and kind.__module__ == errors.__name__
    }
    assert kinds <= set(bulk.__all__)


def test_the_version_is_the_projects() -> None:
    """`bulk.__version__` is what pyproject.toml says."""
    assert bulk.__version__ == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def test_importing_is_fast_and_light(figure: Callable[[str], None]) -> None:
    """`import bulk` takes less than 0.1 s and imports none of the libraries that the engine needs."""
    runs = []
    for _ in range(3):
        out = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout
        seconds, imported = json.loads(out)
        assert imported == []
        runs.append(seconds)
    assert min(runs) < MOST_IMPORT_S
    figure(f"import bulk: {min(runs) * 1000:.1f} ms")
