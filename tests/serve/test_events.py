"""What happened, as lines that another process goes on with: nothing is missed, nothing comes twice."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from bulk.ledger.records import Action
from bulk.model import OutcomeKind
from bulk.serve.events import Position, since
from tests.e2e.support.platform import Home
from tests.report.ledgers import START, Run, finished, status

SCHEMA = Path(__file__).parents[2] / "docs" / "schemas" / "events.schema.json"


def told(run: Run, position: str | None = None, most: int | None = None) -> list[dict[str, Any]]:
    """The next events, at most `most`."""
    start = Position() if position is None else Position.from_text(position)
    return [json.loads(line) for line, _ in since(run.view, start)][:most]


def keys(events: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """Job and index of the items among them."""
    return [(event["line"]["job"], event["line"]["index"]) for event in events if event["kind"] == "item"]


def test_it_goes_on_after_any_line(tmp_path: Path) -> None:
    """Whatever line a reader stopped behind, the rest follows, also what was committed since; a rewrite tells all
    again, and says so.
    """
    run = Run(tmp_path / "run", readmes=100)
    with run.open() as ledger:
        ledger.commit([run.record(finished(index, "failed" if index % 3 else "succeeded")) for index in range(40)])
        every = told(run)
        assert keys(every) == [("readmes", index) for index in range(40)]
        for place in range(0, 40, 7):
            assert told(run, every[place]["position"]) == every[place + 1 :]
        ledger.commit([run.record(finished(index)) for index in range(40, 50)])
        assert keys(told(run, every[-1]["position"])) == [("readmes", index) for index in range(40, 50)]
        ledger.reopen({OutcomeKind.FAILED})
        ledger.finish(3, "", status(START + 1))
    again = told(run, every[-1]["position"])
    assert again[0]["kind"] == "again"
    assert keys(again) == [("readmes", index) for index in range(50) if index >= 40 or index % 3 == 0]


@pytest.mark.parametrize("position", ["0:3:0", "0:999999999:0", "0:0:7", "999999999:3:7", "-3:0:0"])
def test_a_position_of_another_run_tells_everything(tmp_path: Path, position: str) -> None:
    """No half of a line is told for a line, nothing is left out, and no file is called damaged."""
    run = Run(tmp_path / "run", readmes=9)
    with run.open() as ledger:
        ledger.commit([run.record(finished(index)) for index in range(9)])
        action = Action(at=START, who="alice (web)", verb="pause", args={}, result="paused")
        ledger.finish(0, "", status(START + 1), None, [action])
    events = told(run, position)
    assert keys(events) == [("readmes", index) for index in range(9)]
    assert [event["kind"] for event in events if event["kind"] != "item"] == ["action", "again"][
        : 1 + (position[0] != "-")
    ]
    assert told(run, events[-1]["position"]) == []


@pytest.mark.parametrize("position", [" ", "1", "1:2", "x:0:0", "0:-1:0", "0:0:0:0"])
def test_what_is_no_position_is_refused(tmp_path: Path, position: str) -> None:
    """A position is what a line carries; anything else is an error with its place, exit 2."""
    Run(tmp_path / "run").epoch([finished()])
    ran = Home(tmp_path).run("watch", "run", "--events", "--after", position)
    assert (ran.exit_code, "is not a position" in ran.err) == (2, True)


def test_a_run_that_has_ended_is_told_to_its_end(tmp_path: Path) -> None:
    """The command prints each item and action once, as the schema says, then the end, and exits as the run did."""
    run = Run(tmp_path / "run", readmes=3)
    with run.open() as ledger:
        ledger.commit([run.record(finished(index, "failed")) for index in range(3)], status(START + 1))
        action = Action(at=START, who="alice (web)", verb="set", args={"concurrency": "3"}, result="running")
        ledger.finish(1, "", status(START + 2), None, [action])
    ran = Home(tmp_path).run("watch", "run", "--events")
    lines = [json.loads(line) for line in ran.out.splitlines()]
    for line in lines:
        Draft202012Validator(json.loads(SCHEMA.read_text())).validate(line)
    assert [line["kind"] for line in lines] == ["action", "item", "item", "item", "end"]
    assert (lines[-1]["state"], lines[-1]["exit_code"], ran.exit_code) == ("complete", 1, 1)
    last = Home(tmp_path).run("watch", "run", "--events", "--after", lines[2]["position"])
    assert [json.loads(line) for line in last.out.splitlines()] == lines[3:]
