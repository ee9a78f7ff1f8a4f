"""What the pages of docs/ show: fenced blocks, the names of the files that they are, and shell commands in them."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from bulk.cli.app import commands

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```', re.MULTILINE | re.DOTALL)
_ASSIGNMENT = re.compile(r"[A-Z_]+=\S*")
PROGRAM = re.compile(r"(?:\S*/)?bulk")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, the name of the file that it is (or empty), and its text."""

    language: str
    title: str
    text: str


def blocks(page: Path, language: str | None = None) -> list[Block]:
    """The blocks of a page, in their order; only those of one language."""
    found = [Block(*block) for block in _BLOCK.findall(page.read_text())]
    return [block for block in found if language in (None, block.language)]


def shell_lines(page: Path) -> list[str]:
    """What a reader is told to type."""
    return [line[2:] for block in blocks(page, "console") for line in block.text.splitlines() if line.startswith("$ ")]


def bulk_arguments(line: str) -> Iterator[list[str]]:
    """The arguments of every `bulk` that a shell line starts; redirections and what follows a pipe end them."""
    words = shlex.split(re.split(r"\s(?:>>?|\||&&|;)\s|\s&$", line)[0], comments=True)
    while words and _ASSIGNMENT.fullmatch(words[0]):
        words = words[1:]
    for prefix in ("exec", "export"):
        words = words[1:] if words[:1] == [prefix] else words
    if "--" in words and words[0] == "kubectl":
        words = words[words.index("--") + 1 :]
    if words and PROGRAM.fullmatch(words[0]):
        yield words[1:]


def refused(arguments: list[str]) -> str:
    """Why the real command line can't be read; empty where it can. Nothing is run."""
    if not arguments or arguments[0].startswith("-"):
        return "" if arguments in (["--version"], ["--help"]) else "no command"
    command = commands.commands.get(arguments[0])
    if command is None:
        return f"no command {arguments[0]}"
    try:
        with command.make_context(arguments[0], arguments[1:], obj=tuple(arguments)):
            return ""
    except click.ClickException as error:
        return error.format_message()
