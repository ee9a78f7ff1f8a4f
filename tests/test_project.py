"""The project keeps its own rules: what a reader is promised is there, and each guard can fail."""

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from benchmarks.__main__ import CLAIMS

ROOT = Path(__file__).parents[1]
SOURCES = sorted(path for folder in ("bulk", "jobs", "tests", "benchmarks") for path in (ROOT / folder).rglob("*.py"))
TEXTS = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "jobs" / "examples").rglob("*.yaml")),
    *SOURCES,
]
MOST_LINES = 400
MOST_LINES_OF_A_FUNCTION = 60
MOST_ARGUMENTS = 7
"""Of a constructor, beside itself (count)."""
RECORDS = ("Request", "Finished", "Call")
"""Plain records whose constructors are written out, because what is compiled fills them faster; all take keywords."""
MOST_FILES = 15
"""Of one folder, beside its sub-folders (count)."""

BANNED_CALLS = {
    "asyncio.create_task(work())": "import asyncio",
    "asyncio.gather(work())": "import asyncio",
    "asyncio.ensure_future(work())": "import asyncio",
    "time.time()": "import time",
    "time.sleep(1)": "import time",
    "datetime.datetime.now(datetime.UTC)": "import datetime",
    "datetime.datetime.utcnow()": "import datetime",
    "random.random()": "import random",
    "random.randint(1, 2)": "import random",
    "random.choice([1])": "import random",
    "random.uniform(1, 2)": "import random",
    "random.shuffle([1])": "import random",
}


def tool(*command: str, cwd: Path = ROOT, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a tool of the project's own environment."""
    executable = Path(sys.executable).parent / command[0]
    environ = {**os.environ, "PYTHONPATH": str(cwd / "jobs")}
    return subprocess.run(
        [executable, *command[1:]], cwd=cwd, input=stdin, capture_output=True, text=True, check=False, env=environ
    )


def linted(code: str, path: str) -> str:
    """What the linter says about `code` if it stood in `path`."""
    done = tool("ruff", "check", "--no-cache", "--output-format", "concise", "--stdin-filename", path, "-", stdin=code)
    return done.stdout


@pytest.mark.parametrize(("call", "imported"), BANNED_CALLS.items())
def test_the_linter_bans(call: str, imported: str) -> None:
    """What can't be simulated or leaks a task is refused by the linter, in the engine and in tests."""
    code = f'"""Doc."""\n\n{imported}\n\nvalue = {call}\n'
    assert "TID251" in linted(code, "bulk/sample.py")
    assert "TID251" in linted(code, "tests/test_sample.py")


def test_only_the_clocks_may_ask_the_system_for_the_time() -> None:
    """Besides the two clocks and the one of virtual time nothing reads the system's time or sleeps by itself."""
    asks = re.compile(r"time\.(time|monotonic|perf_counter)(_ns)?\(\)|(time|asyncio)\.sleep\((?!0\)).*")
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}"
        for path in (ROOT / "bulk").rglob("*.py")
        if path.name not in ("clock.py", "virtual_time.py")
        for text in [path.read_text()]
        if re.search(r"\b(time|asyncio)\b", text)  # the others have no such call
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and asks.fullmatch(ast.unparse(node))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("path", "line", "broken"),
    [
        ("bulk/errors.py", "from bulk import engine", "Imports point down"),
        ("bulk/urls.py", "from bulk.sandbox import server", "Only the command line starts the sandbox"),
        ("bulk/sandbox/clock.py", "from bulk import errors", "Imports point down"),
        ("bulk/ledger/view.py", "from bulk.govern import governor", "Imports point down"),
        ("bulk/ledger/view.py", "from bulk.platform import classification", "The ledger knows no platform"),
        ("bulk/govern/budgets/buckets.py", "from bulk.manifest import reading", "Neither ledger nor governor"),
        ("bulk/engine/commands.py", "from bulk_jobs import contents", "The engine knows no job by name"),
        ("jobs/bulk_jobs/contents.py", "from bulk.platform import transport", "Jobs know the shared words only"),
    ],
)
def test_an_import_against_the_flow_is_caught(tmp_path: Path, path: str, line: str, broken: str) -> None:
    """Each import contract breaks when a module imports what it must not."""
    for folder in ("bulk", "jobs"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with (tmp_path / path).open("a") as module:
        module.write(f"\n{line}\n")
    done = tool("lint-imports", "--no-cache", cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(rf"{broken}[^\n]*(\n[^\n]+)?BROKEN", done.stdout), done.stdout


def compiled_otherwise(code: str) -> list[str]:
    """What mypyc makes of `code` that is not what stands there: it evaluates the bounds of a slice twice, and makes a
    list of a generator comprehension, which takes memory where there are as many rows as items.
    """
    found = []
    for node in ast.walk(ast.parse(code)):
        parts: list[ast.expr | None] = []
        if isinstance(node, ast.Slice):
            parts = [node.lower, node.upper, node.step]
            kinds: tuple[type[ast.AST], ...] = (ast.Call, ast.NamedExpr, ast.Await)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "executemany":
            parts, kinds = list(node.args), (ast.GeneratorExp,)
        if any(isinstance(inner, kinds) for part in parts if part is not None for inner in ast.walk(part)):
            found.append(ast.unparse(node))
    return found


def test_what_is_compiled_does_what_is_written() -> None:
    """Modules that are compiled have no call in a slice, and no comprehension of rows for a table."""
    assert compiled_otherwise("data = data[write(data) :]") == ["write(data):"]
    assert compiled_otherwise("one.executemany(text, ((key,) for key in keys))")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    for name in project["hooks"]["custom"]["modules"]:
        assert compiled_otherwise((ROOT / name).read_text()) == [], name


def test_no_file_has_two_ideas() -> None:
    """A source file that grows beyond 400 lines is split."""
    assert [f"{path}: {lines}" for path in SOURCES if (lines := len(path.read_text().splitlines())) > MOST_LINES] == []


@dataclass
class Definitions:
    """What stands in the functions and classes of all sources, each of which is parsed once."""

    long_functions: list[str] = field(default_factory=list)
    full_constructors: list[str] = field(default_factory=list)
    strange_names: list[str] = field(default_factory=list)
    silent_tests: list[str] = field(default_factory=list)

    def take(self, path: Path, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Look at one of them."""
        name = f"{path}: {node.name}"
        docstring = ast.get_docstring(node) or ""
        if listed := names_listed(docstring):
            known = names_of(node)
            self.strange_names += [f"{name}: {each}" for each in listed if each not in known]
        if isinstance(node, ast.ClassDef):
            for made in node.body:
                if isinstance(made, ast.FunctionDef) and made.name == "__init__":
                    count = len(made.args.args) + len(made.args.kwonlyargs) - 1
                    self.full_constructors += [node.name] * (count > MOST_ARGUMENTS)
            return
        if (node.end_lineno or 0) - node.lineno + 1 > MOST_LINES_OF_A_FUNCTION:
            self.long_functions.append(name)
        is_test = path.parts[0] == "tests" and path.match("test_*.py") and node.name.startswith("test_")
        if is_test and not docstring:
            self.silent_tests.append(name)


@pytest.fixture(scope="module")
def definitions() -> Definitions:
    """Of bulk, jobs, tests and benchmarks."""
    found = Definitions()
    for path in SOURCES:
        take_all(found, path.relative_to(ROOT), ast.parse(path.read_text()))
    return found


def take_all(found: Definitions, path: Path, tree: ast.Module) -> None:
    """Look at every function and class; nothing that is a statement is inside of an expression."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        for node in ast.iter_child_nodes(waiting.pop()):
            if isinstance(node, ast.expr):
                continue
            waiting.append(node)
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                found.take(path, node)


def test_a_broken_rule_is_found_in_a_definition() -> None:
    """Wherever a function or class stands, what is wrong with it is found."""
    found = Definitions()
    arguments = ", ".join(f"a{number}" for number in range(MOST_ARGUMENTS + 1))
    full = f"class Full:\n    def __init__(self, {arguments}): pass\n"
    lines = "    pass\n" * MOST_LINES_OF_A_FUNCTION
    nested = f"if True:\n  match 1:\n    case 1:\n      async def test_long():\n{textwrap.indent(lines, '      ')}"
    strange = 'def listed(one):\n    """Doc.\n\n    Args:\n        other: so.\n    """\n'
    take_all(found, Path("tests/test_sample.py"), ast.parse(full + nested + strange))
    name = "tests/test_sample.py: test_long"
    assert found == Definitions([name], ["Full"], ["tests/test_sample.py: listed: other"], [name])


def test_no_function_is_longer_than_a_screen(definitions: Definitions) -> None:
    """A function, with its docstring, has at most as many lines as a screen."""
    assert definitions.long_functions == []


def test_no_constructor_takes_too_much(definitions: Definitions) -> None:
    """A constructor with more arguments misses a noun; plain records are named."""
    assert sorted(definitions.full_constructors) == sorted(RECORDS)


def test_no_folder_is_crowded() -> None:
    """A listing of one folder fits on a screen; a page of how-to or a schema is looked up by its name."""
    files = Counter(
        path.parent
        for name in ("bulk", "jobs", "tests", "benchmarks", "docs")
        for path in (ROOT / name).rglob("*")
        if path.is_file() and path.suffix not in (".pyc", ".so") and path.parent.name not in ("how-to", "schemas")
    )
    assert [(folder, count) for folder, count in files.items() if count > MOST_FILES] == []


def test_what_a_docstring_lists_is_there(definitions: Definitions) -> None:
    """Arguments and attributes that a docstring lists belong to what it is the docstring of."""
    assert definitions.strange_names == []
    assert names_listed("What.\n\nArgs:\n    a, b: so. c: too.\n") == ["a", "b", "c"]
    assert names_of(ast.parse("def f(a, *b, c): pass").body[0]) == {"a", "b", "c"}


def names_listed(docstring: str) -> list[str]:
    """The names in the sections Args and Attributes."""
    _, *sections = re.split(r"^(?:Args|Attributes):", docstring, flags=re.MULTILINE)
    listed = []
    for section in sections:
        text = re.split(r"^(?:Returns|Raises|Yields):", section, flags=re.MULTILINE)[0]
        listed += re.findall(r"(?:^\s*|\. )([a-z_]\w*(?:, [a-z_]\w*)*): ", text, flags=re.MULTILINE)
    return [name for names in listed for name in names.split(", ")]


def names_of(node: ast.AST) -> set[str]:
    """The arguments of a function; the attributes, methods and arguments of a class."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
    names = set()
    for inner in ast.walk(node):
        match inner:
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
            case ast.Attribute(attr=name, ctx=ast.Store()) | ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
    return names


def test_every_benchmark_can_be_run() -> None:
    """What `make bench` runs is there."""
    assert [name for name in CLAIMS if importlib.util.find_spec(f"benchmarks.{name}") is None] == []


def test_every_test_states_its_promise(definitions: Definitions) -> None:
    """Each test begins with a docstring of one line: the promise that it checks."""
    assert definitions.silent_tests == []


def test_nothing_is_unfinished() -> None:
    """No mark of unfinished work, no test that is left out."""
    marks = re.compile("TO" + "DO|FIX" + "ME|XX" + "X|NotImplemented" + "Error|mark\\." + "skip|pytest\\." + "skip")
    assert [str(path) for path in SOURCES if marks.search(path.read_text())] == []


def test_what_is_not_json_is_caught_in_every_form() -> None:
    """Whoever catches an error of decoding JSON catches those for other text and for deep nesting, too."""
    single = re.compile(r"except .*msgspec\.(?:Msgspec|Decode)Error|suppress\(.*msgspec\.")
    assert [str(path) for path in SOURCES if path.match("bulk/**/*.py") and single.search(path.read_text())] == []


def test_no_path_of_one_machine() -> None:
    """No file names a folder of the machine it was written on."""
    absolute = re.compile(r"(?<![\w./])/(?:wo" + r"rk|ho" + r"me|ro" + r"ot|Users|tmp/v)/")
    assert [str(path) for path in TEXTS if absolute.search(path.read_text())] == []


def test_nothing_reads_a_folder_outside() -> None:
    """The repository is whole: nothing refers to a folder beside it."""
    outside = "../sha" + "red"
    assert [str(path) for path in TEXTS if outside in path.read_text()] == []


def test_the_readme_has_the_two_commands() -> None:
    """Who opens the README sees how to run it and how to test it, as CI does."""
    first_screen = "\n".join((ROOT / "README.md").read_text().splitlines()[:40])
    ci = (ROOT / ".ci/run").read_text() + (ROOT / ".github/workflows/ci.yml").read_text()
    for command in ("make demo", "make test"):
        assert command in first_screen
        assert len(re.findall(rf"{command}$", ci, re.MULTILINE)) == 2
        assert re.search(rf"^{command.removeprefix('make ')}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_the_changelog_tells_of_this_version() -> None:
    """CHANGELOG.md has the Keep-a-Changelog form, and its head is this version or what is not released yet."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    text = (ROOT / "CHANGELOG.md").read_text()
    heads = re.findall(r"^## \[(.+?)\](?: - (\d{4}-\d{2}-\d{2}))?$", text, re.MULTILINE)
    assert heads
    assert heads[0][0] in ("Unreleased", version)
    assert set(re.findall(r"^### (.+)$", text, re.MULTILINE)) <= {
        "Added", "Changed", "Deprecated", "Removed", "Fixed", "Security",
    }  # fmt: skip


def test_every_installed_version_is_pinned() -> None:
    """constraints.txt pins every declared dependency by version alone: no address, no hash."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = [
        *project["dependencies"],
        *(each for extra in project["optional-dependencies"].values() for each in extra),
    ]
    pins = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.+!]+", pin) for pin in pins)
    pinned = {_normal(pin.partition("==")[0]) for pin in pins}
    assert {_normal(re.split(r"[<>=!;\[ ]", each)[0]) for each in declared} <= pinned


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_dependency_says_what_it_is_for() -> None:
    """In pyproject.toml a comment stands above each dependency."""
    lines = (ROOT / "pyproject.toml").read_text().splitlines()
    declared = [number for number, line in enumerate(lines) if re.match(r'    "[a-z][\w.-]*>=', line)]
    assert len(declared) > 20
    assert [lines[number] for number in declared if not lines[number - 1].startswith("    # ")] == []


def test_every_link_in_the_documentation_leads_somewhere() -> None:
    """A relative link in README, CONTRIBUTING or docs/ names a file of the repository, and an anchor a heading."""
    dead = []
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")):
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            file = (page.parent / name) if name else page
            if not file.exists() or (anchor and anchor not in _anchors(file)):
                dead.append(f"{page.name}: {target}")
    assert dead == []


def _anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


def test_the_failure_matrix_has_its_rows() -> None:
    """docs/ has the failure matrix with its 102 rows; test_documentation_pages.py checks the page of lost answers."""
    rows = re.findall(r"^\| (\d+) \|", (ROOT / "docs/failures.md").read_text(), re.MULTILINE)
    assert [int(row) for row in rows] == list(range(1, 103))
