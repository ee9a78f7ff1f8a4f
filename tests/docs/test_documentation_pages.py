"""What README and docs/ name is there: folders, files, modules, targets of make, words and figures."""

import ast
import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from benchmarks.__main__ import BEGIN, CLAIMS, END, known_rows, put_between_marks
from bulk import operation
from bulk.model import Effect, ErrorCode, OutcomeKind
from bulk.platform.classification import VerdictKind
from bulk_jobs.shared import team_requests
from bulk_jobs.shared.files import file_writes

ROOT = Path(__file__).parents[2]
PAGES = [path for folder in (".", "docs", "benchmarks") for path in sorted((ROOT / folder).glob("*.md"))]
MOST_WORDS = 44
"""The glossary has no more: who needs more words to read the code needs fewer ideas in it."""

MAPPED = ("bulk", "jobs", "tests", "benchmarks", "docs")
SUFFIXES = "py|md|sql|toml|yaml|yml|txt|json|j2|mjs"
NOT_OURS = re.compile(r"runs/|rehearsal/|files/|readmes/|third_party/|(?:docs/)?(?:guide|latest)\.md|docs/outside")
"""Examples of what a user's own repository or run directory holds."""
MADE = frozenset(
    ("manifest.yaml", "migration.yaml", "check.json", "origin.json", "report.json", "audit.json", "README.md")
) | frozenset(("digests.json", "undo.yaml", "undo.txt", "undo.d/", "plan.json", "gates.json"))
"""Files that a run makes, and names that examples give to a user's own files."""


def files(folder: Path) -> Iterator[Path]:
    """The files below a folder that are kept: none that is hidden or compiled."""
    for path in folder.iterdir():
        if path.name.startswith(".") or path.name in ("__pycache__", "build", "node_modules", "runs"):
            continue
        if path.is_dir():
            yield from files(path)
        else:
            yield path


FILES = sorted(path.relative_to(ROOT) for path in files(ROOT))
FOLDERS = {f"{folder}/" for path in FILES for folder in path.parents if folder.parts}
NAMES = {path.name for path in FILES}


def rows(page: str, head: str) -> list[list[str]]:
    """The cells of the table of a page whose head begins with this cell."""
    found = re.search(rf"^\| {head} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", (ROOT / page).read_text(), re.MULTILINE)
    assert found, f"{page} has no table that begins with {head}"
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in found[1].splitlines()]


def misplaced(told: Iterable[str], there: set[str]) -> list[str]:
    """Folders that have no line, or several, and lines that have no folder."""
    lines = list(told)
    return sorted({line for line in lines if line not in there or lines.count(line) > 1} | there - set(lines))


def test_the_map_of_the_tree_is_complete() -> None:
    """docs/design.md has one line for each folder, and no line without a folder."""
    there = {folder for folder in FOLDERS if folder.split("/")[0] in MAPPED}
    told = [row[0].strip("`") for row in rows("docs/design.md", "folder")]
    assert misplaced(told, there) == []
    assert misplaced(["a/", "a/", "b/"], {"a/", "c/"}) == ["a/", "b/", "c/"]


def dead(text: str) -> list[str]:
    """Names of files and folders in backticks or commands that no file or folder of the repository has."""
    found = []
    for name in re.findall(
        rf"(?<![\w/.*{{<-])((?:[\w.-]+/)*[\w.-]+\.(?:{SUFFIXES})|(?:[\w.-]+/)+)(?![\w/*{{.(-])", text
    ):
        if NOT_OURS.match(name) or name in MADE:
            continue
        is_path = "/" in name.rstrip("/") and name.split("/")[0] in (*MAPPED, ".ci", ".github")
        is_there = Path(name) in FILES or name in FOLDERS if is_path else name in NAMES or name.endswith("/")
        if not is_there:
            found.append(name)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_file_that_is_named_is_there(page: Path) -> None:
    """A page names files and folders in backticks, and in commands, only where they are."""
    text = page.read_text()
    code = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
    commands = re.findall(r"^\$ ((?:\.venv|make|python).*)$", text, re.MULTILINE)
    assert dead("\n".join([*code, *commands])) == []


@pytest.mark.parametrize("page", sorted(ROOT.glob("bulk/**/__init__.py")), ids=lambda page: page.parent.name)
def test_every_file_of_a_folder_that_its_docstring_names_is_there(page: Path) -> None:
    """The docstring of a folder names files that are in it, or in the folder of the project that it spells out."""
    named = re.findall(r"`([\w/]+(?:\.(?:py|sql)|/))`", ast.get_docstring(ast.parse(page.read_text())) or "")
    assert [name for name in named if not any((folder / name).exists() for folder in (page.parent, ROOT))] == []


def test_a_file_that_is_not_there_is_found() -> None:
    """The check sees paths and bare names, and spares a user's own."""
    text = "bulk/clock.py bulk/watch.py tests/dispatch/ intake.py clock.py runs/x.json manifest.yaml bulk/ledger/"
    assert dead(text) == ["bulk/watch.py", "tests/dispatch/", "intake.py"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_of_the_project_works(page: Path) -> None:
    """`make TARGET` and `python -m MODULE` on a page are a target and a module of the project."""
    text = page.read_text()
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    made = re.findall(r"(?:`|\$ )make (?:[A-Z]+=\S+ )?([a-z-]+)", text)
    assert [target for target in made if target not in targets] == []
    modules = re.findall(r"python -m ((?:bulk|tests|benchmarks)[\w.]*)", text)
    places = {module: ROOT / module.replace(".", "/") for module in modules}
    assert [
        module
        for module, place in places.items()
        if not (place.with_suffix(".py").exists() or (place / "__main__.py").exists())
    ] == []


def test_the_glossary_is_short() -> None:
    """docs/glossary.md has at most 44 words, each with one sentence; README and design.md lead to it."""
    words = rows("docs/glossary.md", "word")
    assert len(words) <= MOST_WORDS
    assert len({word for word, *_ in words}) == len(words)
    assert [word for word, meaning, _ in words if not re.fullmatch(r"[A-Z][^.;]*(?:\.[a-z][^.;]*)*\.", meaning)] == []
    assert "(docs/glossary.md)" in (ROOT / "README.md").read_text()
    assert "(glossary.md)" in (ROOT / "docs/design.md").read_text()


def test_the_readme_shows_what_was_measured() -> None:
    """The rows in the README are those of benchmarks/RESULTS.md, and were written at the same time."""
    readme, results = ((ROOT / name).read_text() for name in ("README.md", "benchmarks/RESULTS.md"))
    shown = re.findall(r"^\| .* \| (?:yes|no|-) \|$", readme, re.MULTILINE)
    assert len(shown) == 5
    assert [row for row in shown if row not in results.splitlines()] == []
    written = re.search(r"^Last written .*$", readme, re.MULTILINE)
    assert written
    assert written[0] in results.splitlines()


def test_what_is_measured_takes_the_place_of_what_was(tmp_path: Path) -> None:
    """`make bench` changes README and RESULTS.md between their marks only, and refuses a page without them."""
    assert set(known_rows()) >= set(CLAIMS)
    for name in ("README.md", "benchmarks/RESULTS.md"):
        before, rest = (ROOT / name).read_text().split(BEGIN)
        after = rest.split(END)[1]
        page = tmp_path / "page.md"
        page.write_text((ROOT / name).read_text())
        put_between_marks(page, "new\n")
        assert page.read_text() == f"{before}{BEGIN}new\n{END}{after}"
        page.write_text(before)
        with pytest.raises(ValueError, match="measured"):
            put_between_marks(page, "new\n")


def effects_of(name: str) -> set[str]:
    """The effects that an operation's class names; where it names none, those of the helper that makes its writes."""
    kind = type(operation.find(name))
    helpers = [each for each in vars(sys.modules[kind.__module__]).values() if each in (file_writes, team_requests)]
    for sources in ([kind], helpers):
        found = {each for source in sources for each in re.findall(r"Effect\.([A-Z_]+)", inspect.getsource(source))}
        if found:
            return {Effect[each].value for each in found}
    return set()


def test_the_page_of_lost_answers_has_every_write() -> None:
    """docs/operations.md has one row for each operation that writes, with the effect that its requests have."""
    told = {row[0].strip("`"): row[1].strip("`") for row in rows("docs/operations.md", "operation")}
    assert sorted(told) == [name for name in operation.names() if not operation.find(name).is_read]
    assert {name: {effect} for name, effect in told.items()} == {name: effects_of(name) for name in told}


def test_the_page_of_lost_answers_uses_the_words_of_the_code() -> None:
    """docs/operations.md explains every effect and every verdict, and names no outcome or code that does not exist."""
    text = (ROOT / "docs/operations.md").read_text()
    assert {effect.value for effect in Effect} == {row[0].strip("`") for row in rows("docs/operations.md", "effect")}
    verdicts = [name for row in rows("docs/operations.md", "verdict") for name in re.findall(r"`([^`]+)`", row[0])]
    assert sorted(verdicts) == sorted(VerdictKind)
    words = {word for word in re.findall(r"`([a-z_]+)`", text) if re.search(r"ed$|_|^un|noop", word)}
    fields = {name for each in map(operation.find, operation.names()) for name in each.Item.__struct_fields__}
    others = {"maybe_truncated", "dependency_snapshots", "wanted"}
    assert words <= {*OutcomeKind, *ErrorCode, *VerdictKind, *Effect, *fields, *others}
