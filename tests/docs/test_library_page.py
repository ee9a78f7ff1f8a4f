"""The page on the library, and the notebook, do what they show: each is run against a sandbox, cell by cell."""

import ast
import asyncio
import json
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.docs.shown import DOCS, blocks
from tests.e2e.support.platform import ADMIN, Served, served

NOTEBOOK = DOCS / "how-to" / "readmes.ipynb"
FLEET = {"organization": "acme-fleet", "count": 40, "readme_bytes": 200}
MANIFEST = {
    "version": 1,
    "jobs": {"readmes": {"operation": "readme.get", "items": [{"owner": "acme-fleet", "repo": "repo-00001"}]}},
}


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A platform that the environment names, and a folder with the manifests that the pages run."""
    folder = tmp_path / "here"
    folder.mkdir()
    for name in ("manifest.yaml", "first.yaml"):
        (folder / name).write_text(json.dumps(MANIFEST))
    monkeypatch.chdir(folder)
    with served(tmp_path / "sandbox", "--rate-limit", "core=100000/3600", seed={"repositories": FLEET}) as sandbox:
        monkeypatch.setenv("BULK_BASE_URL", sandbox.base_url)
        monkeypatch.setenv("BULK_TOKEN", ADMIN)
        yield sandbox


class Kernel:
    """What runs the cells of a notebook: one event loop that is running already, and names that stay.

    As in IPython a cell is awaited where it awaits something, and its last expression is its value.
    """

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.values: list[Any] = []

    async def run(self, code: str) -> None:
        """Run one cell."""
        assert asyncio.get_running_loop().is_running()
        module = ast.parse(code)
        last = module.body[-1]
        if isinstance(last, ast.Expr):
            module.body[-1] = ast.copy_location(ast.Assign([ast.Name("_", ast.Store())], last.value), last)
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        compiled = compile(ast.fix_missing_locations(module), "<cell>", "exec", flags)
        self.names["_"] = None
        found = eval(compiled, self.names)
        if isinstance(found, types.CoroutineType):
            await found
        self.values.append(self.names["_"])


async def run_all(cells: list[str]) -> Kernel:
    """Run cells in their order."""
    kernel = Kernel()
    for cell in cells:
        await kernel.run(cell)
    return kernel


def cells() -> list[str]:
    """The cells with code of the notebook."""
    return [
        "".join(cell["source"]) for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"
    ]


@pytest.mark.anyio
async def test_the_notebook_works(sandbox: Served, capsys: pytest.CaptureFixture[str]) -> None:
    """Each cell works in a loop that runs already, `bulk.map` and `bulk.run` too; the values are right."""
    kernel = await run_all(cells())
    assert set(kernel.names["sizes"].values()) == {200}
    assert len(kernel.names["sizes"]) == 20
    assert kernel.values[1]["succeeded"] == 1
    assert kernel.values[2] == 5
    progress = capsys.readouterr().out
    assert progress.startswith("\rchecking: "), "no number is shown that nobody knows yet"
    assert progress.endswith(f"\rcomplete: 1 items, {progress.rpartition(' ')[2]}")
    before = len(sandbox.requests())
    await kernel.run(cells()[0])
    assert len(sandbox.requests()) == before, "the run directory knew"


def test_the_page_on_notebooks_shows_its_cells() -> None:
    """The notebook and the page show the same code."""
    assert [block.text.rstrip("\n") for block in blocks(DOCS / "how-to" / "notebooks.md", "python")] == cells()


@pytest.mark.anyio
async def test_every_example_of_the_library_works(sandbox: Served, capsys: pytest.CaptureFixture[str]) -> None:
    """The examples of docs/reference/library.md, one after the other, do what the page says."""
    kernel = await run_all([block.text for block in blocks(DOCS / "reference" / "library.md", "python")])
    names = kernel.names
    assert names["total"] == 30 * 200
    assert names["urls"]
    assert set(names["sha256"]) == {"first"}
    assert set(names["first"].values()) == {"succeeded"}
    assert names["again"] == names["first"]
    assert names["report"].exit_code == 0
    told = capsys.readouterr().out
    assert "items[0] rpeo unknown field; did you mean repo?" in told
    assert "readmes 1 1" in told
    assert await names["main"]() == 30
    with anyio.fail_after(1):
        await anyio.lowlevel.checkpoint()
