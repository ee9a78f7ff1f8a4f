"""Options that commands share reach the engine as they were typed."""

from typing import Any

import click
import pytest
from click.testing import CliRunner

from bulk.cli.options import LIMITS, PLATFORM, overriding
from bulk.errors import UsageError
from bulk.manifest.reading import Overrides


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
    """`--credential [NAME=]SOURCE`: an equals sign within the source is no name."""
    assert parsed("--credential", text).credentials == expected


@pytest.mark.parametrize("text", ["ghp_canary0123", "admin=ghp_canary0123", "=env:TOKEN"])
def test_a_token_instead_of_a_source_is_refused_and_not_repeated(text: str) -> None:
    """Who types a token by mistake is told what to write, and the token is not in the message."""
    with pytest.raises(UsageError) as refused:
        parsed("--credential", text)
    assert "ghp_canary" not in str(refused.value)
