"""Broken manifests through the real command: exit 2, the place of each flaw, and nothing is sent."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bulk.cli import main
from tests.e2e.support.platform import ADMIN, Home, Served, served
from tests.manifest.broken import MANIFESTS, Broken

AS_PROCESSES = ("unknown-item-field", "line-of-50-mb", "circular-needs", "nul", "csv-quotes", "nine-metadata-keys")

PLAN_RUN = "live-plan", "run"
"""`bulk run` takes live plans, and this one is damaged."""


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A platform that must not be asked anything."""
    with served(tmp_path_factory.mktemp("broken")) as sandbox:
        yield sandbox
        assert sandbox.journal() == []


def missing(broken: Broken, text: str) -> list[str]:
    """The flaws that the message does not lead to: file, line, field, and what was expected."""
    lines = text.splitlines()
    return [
        f"{flaw.place}…{flaw.words}"
        for flaw in broken.flaws
        if not any(f"/{flaw.place}" in line and flaw.words in line for line in lines)
    ]


@pytest.mark.parametrize(
    ("broken", "command"),
    [(each, command) for each in MANIFESTS for command in ("run", "check", "plan") if (each.name, command) != PLAN_RUN],
    ids=lambda each: each if isinstance(each, str) else each.name,
)
def test_a_broken_manifest_ends_with_its_flaws(
    broken: Broken, command: str, sandbox: Served, tmp_path: Path, monkeypatch, capfd
) -> None:
    """`run`, `plan` and `check` of a broken manifest exit 2, name each flaw, repeat no secret and send nothing."""
    folder = tmp_path / "work"
    folder.mkdir()
    path = broken.write(folder)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BULK_TOKEN", ADMIN)
    exit_code = main([command, str(path), "--base-url", sandbox.base_url])
    out, err = capfd.readouterr()
    assert exit_code == 2, err
    assert out == ""
    assert missing(broken, err) == [], err
    assert "Traceback" not in err
    assert not broken.never or broken.never not in err
    assert sandbox.journal() == []
    assert list(tmp_path.rglob("results.jsonl")) == []


@pytest.mark.parametrize(
    "broken", [each for each in MANIFESTS if each.name in AS_PROCESSES], ids=lambda broken: broken.name
)
def test_the_command_itself_refuses_it(broken: Broken, sandbox: Served, tmp_path: Path) -> None:
    """As a process of its own, `bulk run` of a broken manifest exits 2, names each flaw and sends nothing."""
    path = broken.write(tmp_path)
    ran = Home(tmp_path).run("run", str(path), "--base-url", sandbox.base_url, "--run-dir", "run")
    assert ran.exit_code == 2, ran.err
    assert missing(broken, ran.err) == [], ran.err
    assert sandbox.journal() == []


def test_there_are_more_than_thirty(figure) -> None:
    """At least the 30 kinds of broken manifests that were asked for are tried."""
    figure(f"{len(MANIFESTS)} broken manifests, {len(AS_PROCESSES)} of them as processes")
    assert len(MANIFESTS) >= 30
    assert {each.name for each in MANIFESTS} >= set(AS_PROCESSES)


def test_fifty_flaws_are_listed_and_the_rest_counted(tmp_path: Path) -> None:
    """Up to 50 flaws are listed with their lines, and how many more there are (failures.md row 52)."""
    home = Home(tmp_path)
    home.write("a.jsonl", '{"owner":"a","repo":"b"}\n' + '{"owner":"a"}\n' * 80)
    home.manifest("http://127.0.0.1:9/api/v3", {"x": {"operation": "readme.get", "items": "a.jsonl"}})
    ran = home.run("check", "manifest.yaml")
    lines = ran.err.splitlines()
    assert ran.exit_code == 2
    assert [line for line in lines if "a.jsonl:" in line] == [line for line in lines if ": repo: is missing" in line]
    assert len([line for line in lines if "a.jsonl:" in line]) == 50
    assert "30 more" in lines[-1]
