"""What README and docs/ show works: their code runs, their commands and options exist, their manifests can be read."""

import ast
import re
from pathlib import Path
from typing import Any

import click
import pytest

from bulk.cli.app import commands
from bulk.manifest.reading import Overrides, read_manifest
from bulk.model import Effect, Lost, NotApplied, Outcome, OutcomeKind, Reply, Request
from bulk.operation import Item, Operation

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of that language."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


PYTHON = [
    pytest.param(code, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, code in enumerate(blocks(page, "python"))
]


@pytest.mark.parametrize("code", PYTHON)
def test_python_compiles(code: str) -> None:
    """Every Python block is Python."""
    compile(code, "<documentation>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def shown(page: str, name: str) -> dict[str, Any]:
    """The names that the block of a page defines in which the class `name` stands."""
    code = next(block for block in blocks(ROOT / page, "python") if f"class {name}(" in block)
    names: dict[str, Any] = {"__name__": "shown"}
    exec(code, names)
    return names


def test_the_shown_read_works() -> None:
    """The read that the guide shows sends what it says and returns what came."""
    names = shown("docs/writing-operations.md", "ListRulesets")
    operation: Operation[Any] = names["ListRulesets"]()
    steps = operation.steps(names["RulesetsItem"](org="acme ops"))
    assert next(steps).path == "/orgs/acme%20ops/rulesets"
    assert outcome_of(steps, Reply(status=200, headers={}, body=[{"name": "default"}])).result == ["default"]


def test_the_shown_write_works() -> None:
    """The write that the guide shows writes only what is missing, and settles a lost answer by reading."""
    names = shown("docs/writing-operations.md", "AssignTeam")
    operation: Operation[Any] = names["AssignTeam"]()
    item: Item = names["AssignmentItem"](enterprise="acme", team="ent:platform", org="acme-eng")
    there, missing = Reply(status=200, headers={}), Reply(status=404, headers={})

    steps = operation.steps(item)
    next(steps)
    assert outcome_of(steps, there).kind is OutcomeKind.UNCHANGED

    steps = operation.steps(item)
    next(steps)
    write: Request = steps.send(missing)
    assert (write.method, write.effect) == ("PUT", Effect.SET)
    assert outcome_of(steps, Reply(status=201, headers={})).kind is OutcomeKind.SUCCEEDED

    lost = Lost(method="PUT", path=write.path, sent_at=0.0)
    settling = operation.settle(item, lost)
    assert next(settling).is_fresh
    assert outcome_of(settling, there).kind is OutcomeKind.SUCCEEDED
    settling = operation.settle(item, lost)
    next(settling)
    assert isinstance(outcome_of(settling, missing), NotApplied)


def outcome_of(steps: Any, reply: Reply) -> Any:
    """What a generator returns when it is sent its last reply."""
    with pytest.raises(StopIteration) as ended:
        steps.send(reply)
    found: Outcome | NotApplied = ended.value.value
    return found


def test_every_shown_command_exists() -> None:
    """Every `bulk COMMAND` of the documentation is a command."""
    found = {name for page in PAGES for name in re.findall(r"(?:`|\$ )bulk ([a-z][a-z-]*)\b", page.read_text())}
    assert len(found) > 8
    assert found <= set(commands.commands)


def options(command: click.Command) -> set[str]:
    """The long options of a command."""
    return {name for parameter in command.params for name in parameter.opts if name.startswith("--")}


def test_the_interface_names_every_option() -> None:
    """docs/interface.md lists exactly the options that `bulk` and its commands have, besides help."""
    text = (ROOT / "docs/interface.md").read_text()
    documented = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))
    groups = [group for group in commands.commands.values() if isinstance(group, click.Group)]
    below = [command for group in groups for command in group.commands.values()]
    existing = options(commands).union(*(options(command) for command in (*commands.commands.values(), *below)))
    assert documented == existing


def test_the_interface_names_every_command() -> None:
    """docs/interface.md has a row for each command."""
    text = (ROOT / "docs/interface.md").read_text()
    assert {name for name in commands.commands if f"`bulk {name}" not in text} == set()


@pytest.mark.parametrize("page", ["README.md", "docs/interface.md"])
def test_the_shown_manifest_can_be_read(tmp_path: Path, page: str) -> None:
    """The manifest that a reader sees first is one."""
    text = next(block for block in blocks(ROOT / page, "yaml") if "jobs:" in block)
    path = tmp_path / "manifest.yaml"
    path.write_text(text)
    for name in ("repos.csv", "repos.jsonl", "orgs.csv", "corp-ca.pem"):
        (tmp_path / name).touch()
    assert read_manifest(path, Overrides(), {}).jobs


def test_every_hook_of_an_operation_is_explained() -> None:
    """Whatever an operation can say about itself stands in the page about writing one."""
    page = (ROOT / "docs" / "writing-operations.md").read_text()
    hooks = {name for name in vars(Operation) if not name.startswith("_")} | set(Operation.__annotations__)
    words = set(re.findall(r"\w+", page))
    assert hooks - words == {"resource"}, "what is made from the name is not a hook"
