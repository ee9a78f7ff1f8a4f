"""docs/guarantees.md: every promise has its limits and a command that runs a test of it."""

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guarantees.md").read_text()
COMMAND = ".venv/bin/python -m pytest"


def test_every_promise_has_its_limits_and_a_command() -> None:
    """Each section of the page says what it does not promise, but for the one on the tests, and how it is tested."""
    sections = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
    assert len(sections) >= 8
    assert [section.splitlines()[0] for section in sections[:-1] if "**Limits.**" not in section] == []
    assert [section.splitlines()[0] for section in sections if f"$ {COMMAND} " not in section] == []


def test_every_command_runs_a_test() -> None:
    """Each command is pytest with places that hold tests, long ones where it asks for those."""
    commands = re.findall(r"^\$ (.*)$", PAGE, re.MULTILINE)
    assert commands
    for command in commands:
        assert command.startswith(COMMAND + " "), command
        places, _, marker = command.removeprefix(COMMAND).partition(" -m ")
        assert marker in ("", "soak"), command
        for place in shlex.split(places):
            path = ROOT / place
            sources = [path] if path.is_file() else sorted(path.rglob("test_*.py"))
            texts = [source.read_text() for source in sources]
            assert any(re.search(r"^(async )?def test_", text, re.MULTILINE) for text in texts), command
            assert not marker or any("@pytest.mark.soak" in text for text in texts), command
