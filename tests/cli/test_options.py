"""Options that commands share reach the engine as they were typed; no option is an empty text."""

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from bulk.cli import main
from bulk.cli.options import LIMITS, PLATFORM, overriding
from bulk.errors import UsageError
from bulk.manifest.reading import Overrides
from tests.cli.all_commands import all_commands


def parsed(*arguments: str) -> Overrides:
    """What a command with all shared options is given."""
    given: list[Overrides] = []

    @click.command()
    @overriding(*PLATFORM, *LIMITS)
    def sample(*, overrides: Overrides, **rest: Any) -> None:
        assert rest == {}
        given.append(overrides)

    done = CliRunner().invoke(sample, arguments)
    if done.exception is not None:
        raise done.exception
    return given[0]


def test_nothing_given_overrides_nothing() -> None:
    """Without options the manifest and the environment decide alone."""
    assert parsed() == Overrides()


def test_texts_arrive_as_typed() -> None:
    """The command line interprets nothing: the manifest's own rules decide what a text means."""
    overrides = parsed(
        "--base-url", "http://127.0.0.1:1/api/v3", "--vendor", "github", "--concurrency", "8", "--reserve", "10%",
        "--failures", "5%", "--max-duration", "90s", "--limit", "3",
    )  # fmt: skip
    assert (overrides.base_url, overrides.vendor) == ("http://127.0.0.1:1/api/v3", "github")
    assert (overrides.concurrency, overrides.reserve, overrides.failures) == ("8", "10%", "5%")
    assert (overrides.max_duration, overrides.limit) == ("90s", "3")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("env:TOKEN", {"default": "env:TOKEN"}),
        ("admin=env:TOKEN", {"admin": "env:TOKEN"}),
        ("file:/tokens/a=b", {"default": "file:/tokens/a=b"}),
        ("command:vault read --field=token", {"default": "command:vault read --field=token"}),
        ("admin=command:vault read --field=token", {"admin": "command:vault read --field=token"}),
    ],
)
def test_a_credential_may_have_a_name(text: str, expected: dict[str, str]) -> None:
    """`--credential [NAME=]SOURCE`: an equals sign within the source is not a name."""
    assert parsed("--credential", text).credentials == expected


@pytest.mark.parametrize("text", ["ghp_canary0123", "admin=ghp_canary0123", "=env:TOKEN"])
def test_a_token_instead_of_a_source_is_refused_and_not_repeated(text: str) -> None:
    """Who types a token by mistake is told what to write, and the token is not in the message."""
    with pytest.raises(UsageError) as refused:
        parsed("--credential", text)
    assert "ghp_canary" not in str(refused.value)


@pytest.mark.parametrize(("words", "command"), [pytest.param(*each, id=" ".join(each[0])) for each in all_commands()])
def test_a_value_without_text_is_refused(
    words: tuple[str, ...],
    command: click.Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """`--history "$PLACE"` where PLACE is not set is not a default, and `bulk run "$PLACE"` is not the current folder:
    exit 2 for every option and argument of every command, and nothing is made."""
    monkeypatch.chdir(tmp_path)
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.is_flag:
            assert main([*words, parameter.opts[0], ""]) == 2
            assert f"{max(parameter.opts, key=len)} is given an empty text: write a value" in capfd.readouterr().err
    if isinstance(command.params[0], click.Argument):
        assert main([*words, ""]) == 2
        assert " is given an empty text: write a value" in capfd.readouterr().err
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("line", "words"),
    [
        *(
            (f"{command} --no-cache --cache x", "leave one of them out")
            for command in ("run m.yaml", "resume run", "retry run", "audit m.yaml", "audit night m.yaml")
        ),
        ("audit tset m.yaml run", "Did you mean 'test'?"),
        ("audit notfy run", "Did you mean 'notify'?"),
        *(
            (f"schedule m.yaml --cron * --emit {form} --image x", f"--image is of no use for {form}")
            for form in ("systemd", "cron", "actions")
        ),
    ],
)
def test_words_that_do_not_go_together_are_refused(
    line: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Neither of two opposites wins silently, and a word that does nothing is told: exit 2, before anything is read."""
    monkeypatch.chdir(tmp_path)
    assert main(line.split()) == 2
    assert words in capfd.readouterr().err


def test_a_manifest_may_be_called_nearly_as_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """`bulk audit tests` is the audit of that manifest, where there is one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests").write_text("version: 2\n")
    assert main(["audit", "tests"]) == 2
    assert "tests:1: version: " in capfd.readouterr().err
