"""What is said to a run that is complete already is checked like what is said to any other."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.support.platform import Home, served

README = {"owner": "acme-eng", "repo": "hello-world"}
WRONG = (
    ("--concurrency", "x"),
    ("--reserve", "much"),
    ("--failures", "-1"),
    ("--max-duration", "soon"),
    ("--limit", "0"),
    ("--base-url", "code.example.com"),
    ("--credential", "default=ghp:x"),
    ("--credential", "unknown=env:BULK_TOKEN"),
    ("--metrics", "."),
    ("--metrics", "manifest.yaml"),
    ("--metrics", "nowhere/metrics"),
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A folder with a run of which every item succeeded."""
    folder: Path = tmp_path_factory.mktemp("complete")
    home = Home(folder)
    with served(folder / "sandbox", "--rate-limit", "off") as sandbox:
        home.manifest(sandbox.base_url, {"a": {"operation": "readme.get", "items": [README]}})
        assert home.run("run", "manifest.yaml", "--run-dir", "run", "--progress", "none").exit_code == 0
        yield home


@pytest.mark.parametrize("command", ["resume", "retry"])
def test_a_wrong_value_is_refused_where_nothing_is_left(home: Home, command: str) -> None:
    """As by the same command while something is: who relies on the option would believe that it was heard."""
    for option, value in WRONG:
        said = home.run(command, "run", option, value)
        assert (said.exit_code, option in said.err) == (2, True), (option, value, said.err)
    right = home.run(
        command, "run", "--concurrency", "4", "--metrics", "metrics", "--base-url", "http://127.0.0.1:9/api/v3"
    )
    assert right.exit_code == 0
