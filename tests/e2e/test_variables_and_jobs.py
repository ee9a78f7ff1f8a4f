"""A run belongs to the variables and jobs that it was begun with, also where it goes on or is retried."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support.platform import Home, Served, served

RUN = ("run", "manifest.yaml", "--run-dir", "run")


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A platform for all of them."""
    with served(tmp_path_factory.mktemp("sandbox")) as sandbox:
        yield sandbox


@pytest.fixture
def home(tmp_path: Path, sandbox: Served) -> Home:
    """A folder with a manifest whose first job reads the owner that `${org}` says."""
    home = Home(tmp_path)
    read: dict[str, Any] = {"operation": "readme.get", "with": {"owner": "${org}"}}
    jobs = {
        "first": {**read, "items": [{"repo": "hello-world"}, {"repo": "not-there"}]},
        "second": {**read, "items": [{"repo": "hello-world"}], "needs": ["first"], "needs_policy": "any-outcome"},
        "third": {**read, "items": [{"repo": "hello-world"}]},
    }
    home.manifest(sandbox.base_url, jobs, vars={"org": "nobody"})
    return home


def jobs_of(home: Home) -> list[str]:
    """The jobs in the report."""
    return [job["name"] for job in json.loads((home.folder / "run/report.json").read_text())["jobs"]]


def test_a_retry_has_the_same_variables_and_jobs(home: Home, sandbox: Served) -> None:
    """`bulk retry` asks again for what failed of the chosen jobs, with the values that the run was begun with."""
    begun = home.run(*RUN, "--var", "org=acme-eng", "--job", "second", "--with-needs")
    assert begun.exit_code == 1, begun.err
    assert sorted({line["job"] for line in home.results("run")}) == ["first", "second"]
    before = len(sandbox.journal())
    again = home.run("retry", "run")
    assert again.exit_code == 1, again.err
    sent = {line["path"] for line in sandbox.journal()[before:] if "rate_limit" not in line["path"]}
    assert sent == {"/api/v3/repos/acme-eng/not-there/readme"}
    assert jobs_of(home) == ["first", "second"]


@pytest.mark.parametrize(
    "others",
    [
        ["--job", "first"], ["--var", "org=acme-eng"], ["--var", "org=acme-ops", "--job", "first"],
        ["--var", "org=acme-eng", "--job", "third"],
    ],
)  # fmt: skip
def test_other_values_and_jobs_are_another_run(home: Home, sandbox: Served, others: list[str]) -> None:
    """The same run directory with other variables or jobs is refused (exit 5), and with the same ones it goes on."""
    same = ["--var", "org=acme-eng", "--job", "first"]
    assert home.run(*RUN, *same, "--limit", "1").exit_code == 0
    before = len(sandbox.journal())
    refused = home.run(*RUN, *others)
    assert refused.exit_code == 5, refused.err
    assert "belongs to another manifest, to other variables or jobs" in refused.err
    assert len(sandbox.journal()) == before
    assert home.run(*RUN, *same).exit_code == 1
    assert len(home.results("run")) == 2


def test_plan_and_check_take_them_too(home: Home) -> None:
    """All of these commands see the same jobs, and say which needs are left out."""
    options = ["--var", "org=acme-eng", "--job", "second"]
    checked, planned = home.run("check", "manifest.yaml", *options), home.run("plan", "manifest.yaml", *options)
    rehearsed = home.run("rehearse", "manifest.yaml", *options, "--seeds", "1")
    assert (checked.exit_code, planned.exit_code, rehearsed.exit_code) == (0, 0, 0), planned.err
    note = "job second: needs first, which --job leaves out; --with-needs takes it along"
    assert note in checked.err
    assert note in " ".join(planned.out.split())
    assert note in rehearsed.out
    assert "third" not in checked.out + planned.out
