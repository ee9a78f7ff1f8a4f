"""The reference page of all operations says what the code does, and can be read as Markdown."""

import re
import tomllib
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from bulk import operation
from bulk.cli.catalog import documentation, exit_status, reference

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "operations-reference.md"


def tables(text: str) -> list[list[list[str]]]:
    """The tables of a page: rows of cells, as a reader sees them."""
    found: list[list[list[str]]] = []
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.type == "table_open":
            found.append([])
        elif token.type == "tr_open":
            found[-1].append([])
        elif token.type == "inline" and found and token.level > 2:
            found[-1][-1].append("".join(part.content for part in token.children or ()))
    return found


def test_the_page_is_current() -> None:
    """docs/operations-reference.md is what the code says today; `make reference` writes it again."""
    assert PAGE.read_text() == reference.page(operation.names())


def test_every_operation_of_the_project_is_on_it() -> None:
    """The page has a section for each entry point of pyproject.toml, and the table of contents leads to it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = sorted(project["entry-points"]["bulk.operations"])
    text = PAGE.read_text()
    assert re.findall(r"^### (.+)$", text, re.MULTILINE) == declared
    assert re.findall(r"^\| \[`(.+?)`\]\(#(.+?)\)", text, re.MULTILINE) == [
        (name, name.replace(".", "")) for name in declared
    ]


@pytest.mark.parametrize("name", operation.names())
def test_a_section_has_everything(name: str) -> None:
    """Every field is a row of four cells with its type and what it is, however many bars they have; and the example."""
    told = documentation.describe(name)
    (fields,) = tables(reference.section(told))
    assert [row[0] for row in fields[1:]] == [field.name for field in told.fields]
    assert [row[1] for row in fields[1:]] == [field.type for field in told.fields]
    assert {len(row) for row in fields} == {4}
    assert [row[2] == "required" for row in fields[1:]] == [field.is_required for field in told.fields]
    text = reference.section(told)
    assert documentation.example_manifest(told) in text
    assert told.settled_by.split("`")[0][:40] in text.replace("\\", "")


@pytest.mark.parametrize("name", operation.names())
def test_a_number_is_never_empty(name: str) -> None:
    """The least value of a number is said as a number."""
    fields = [field for field in documentation.describe(name).fields if field.type in ("integer", "number")]
    wrong = [field.name for field in fields if "not empty" in field.limits]
    assert wrong == []


def test_what_a_new_webhook_gets_is_told() -> None:
    """Each field of a creation for which the platform has a value of its own names that value."""
    told = {field.name: field.description for field in documentation.describe("webhook.create").fields}
    own = {"events": "push", "active": "true", "config.content_type": "form", "config.insecure_ssl": "0"}
    assert {name: f"the platform's own: {value}" in told[name] for name, value in own.items()} == dict.fromkeys(
        own, True
    )


def test_markup_in_words_is_shown_as_it_is() -> None:
    """Patterns, bars and angle brackets of a description are text, what stands in backticks is code."""
    field = documentation.FieldDocumentation(
        name="a.*.b", type="x | y", is_required=False, default="|", description="*one* <b> [c](d) `e|*f*` \\"
    )
    told = documentation.describe("rate-limit.get")
    section = reference.section(
        type(told)(**{name: getattr(told, name) for name in told.__struct_fields__} | {"fields": (field,)})
    )
    ((_, row),) = tables(section)
    assert row == ["a.*.b", "x | y", "default |", "*one* <b> [c](d) e|*f* \\"]


def test_the_manual_page_has_the_exit_codes() -> None:
    """Each exit code of the interface has its line in the section that `make man` appends."""
    told = re.findall(r"^\\fB([\d, ]+)\\fP$", exit_status.section(), re.MULTILINE)
    codes = {int(code) for line in told for code in line.split(",")}
    interface = (ROOT / "docs" / "interface.md").read_text()
    table = interface.partition("| exit code | meaning |")[2].partition("\n\n")[0]
    wanted = {int(code) for row in re.findall(r"^\| ([\d, ]+) \|", table, re.MULTILINE) for code in row.split(",")}
    assert codes == wanted
    assert len(codes) > 8
