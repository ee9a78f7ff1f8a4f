"""The table of the specification's 45 endpoints: how many tests made each answer. It is made from what was asked.

`pytest --endpoints` prints it at the end, `--endpoint-tests` with the tests' names, and the run fails where an endpoint
has no test of the sandbox or none of an operation: so a table that is printed green is true, and can't grow old. It
needs all of those tests: `make endpoints`, or the whole suite. Counted is a test that passed and had an answer below
400 from the endpoint: of a sandbox, or of the script that tests of operations play the platform with.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import pytest

from tests.schemas.asked import key, noted
from tests.schemas.table import ENDPOINTS

NAME: Final = "endpoint"
SANDBOX_TESTS: Final = ("tests/sandbox/", "tests/clients/")
OPERATION_TESTS: Final = ("tests/jobs/",)


@dataclass(slots=True)
class Row:
    """The tests of one endpoint: of the sandbox, of operations alone, and of both together."""

    sandbox: set[str] = field(default_factory=set)
    operation: set[str] = field(default_factory=set)
    both: set[str] = field(default_factory=set)

    def add(self, test: str) -> None:
        """Count a test, by the folder that it stands in."""
        if test.startswith(SANDBOX_TESTS):
            self.sandbox.add(test)
        elif test.startswith(OPERATION_TESTS):
            self.operation.add(test)
        else:
            self.both.add(test)


def rows(asked: Iterable[tuple[str, str]]) -> dict[str, Row]:
    """A row for each endpoint of the specification, in its order, from (test, endpoint)."""
    found: dict[str, Row] = defaultdict(Row)
    for test, endpoint in asked:
        found[endpoint].add(test)
    return {name: found[key(*name.split(" ", 1))] for name in ENDPOINTS}


def empty(table: dict[str, Row]) -> list[str]:
    """Endpoints without a test of the sandbox, or without one of an operation."""
    return [name for name, row in table.items() if not row.sandbox or not row.operation]


def lines(table: dict[str, Row], *, has_tests: bool) -> Iterator[str]:
    """The table as text."""
    yield f"{'sandbox':>9} {'operation':>9} {'together':>9}  endpoint"
    for name, row in table.items():
        yield f"{len(row.sandbox):>9} {len(row.operation):>9} {len(row.both):>9}  {name}"
        if has_tests:
            yield from (f"{'':>32}{test}" for test in sorted(row.sandbox | row.operation | row.both))
    total = len(table)
    yield f"{total} endpoints, {total - len(empty(table))} with tests of the sandbox and of an operation"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the table."""
    group = parser.getgroup("endpoints")
    group.addoption("--endpoints", action="store_true", help="print the endpoints' table; fail where one has no test")
    group.addoption("--endpoint-tests", action="store_true", help="the same, with the names of the tests")


def remember(item: pytest.Item) -> None:
    """What was asked since this was last called was asked by that test."""
    known = {value for name, value in item.user_properties if name == NAME}
    item.user_properties.extend((NAME, endpoint) for endpoint in dict.fromkeys(noted()) if endpoint not in known)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """An endpoint without tests fails the run."""
    config = session.config
    if _is_wanted(config) and session.exitstatus == pytest.ExitCode.OK and empty(_table(config)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The table, and what it lacks."""
    if not _is_wanted(config):
        return
    table = _table(config)
    terminalreporter.section("endpoints")
    for line in lines(table, has_tests=config.getoption("--endpoint-tests")):
        terminalreporter.line(line)
    for name in empty(table):
        terminalreporter.line(f"FAILED: no test of the sandbox, or none of an operation, for {name}", red=True)


def _is_wanted(config: pytest.Config) -> bool:
    is_worker = hasattr(config, "workerinput")
    return not is_worker and bool(config.getoption("--endpoints") or config.getoption("--endpoint-tests"))


def _table(config: pytest.Config) -> dict[str, Row]:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    assert isinstance(reporter, pytest.TerminalReporter)
    reports = [report for each in reporter.stats.values() for report in each if isinstance(report, pytest.TestReport)]
    passed = {report.nodeid for report in reports if report.when == "call" and report.passed}
    return rows(
        (report.nodeid, str(value))
        for report in reports
        if report.nodeid in passed
        for name, value in report.user_properties
        if name == NAME
    )
