"""Figures that tests measured: shown at the end of the run, whether the tests passed or failed."""

from collections.abc import Callable

import pytest

NAME = "figure"


@pytest.fixture
def figure(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Note a figure: `figure("3,000 items in 10.2 s")`."""
    return lambda text: record_property(NAME, text)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Every figure, under the name of its test."""
    noted = [
        (report.nodeid.rpartition("::")[2], text)
        for reports in terminalreporter.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport) and report.when == "call"
        for name, text in report.user_properties
        if name == NAME
    ]
    if noted:
        terminalreporter.section("figures")
        for test, text in noted:
            terminalreporter.line(f"{test}: {text}")
