"""One step of a generator: requests, ends and bugs are told apart."""

from typing import Any

import pytest

from bulk.execute.generator_steps import OperationFlaw, advance
from bulk.model import NotApplied, Outcome, OutcomeKind, Reply, Request, Undecided, succeeded

GET = Request(method="GET", path="/x")
REPLY = Reply(status=200, headers={})


def steps(end: Any) -> Any:
    """One request, then that end."""
    yield GET
    if isinstance(end, BaseException):
        raise end
    return end


def test_a_request_then_its_end() -> None:
    """First the request, then what the generator returns."""
    made = steps(succeeded(None))
    assert advance(made, None, Outcome) is GET
    ended = advance(made, REPLY, Outcome)
    assert isinstance(ended, Outcome)
    assert ended.kind is OutcomeKind.SUCCEEDED


@pytest.mark.parametrize("end", [None, {"status": 200}, NotApplied("x"), RuntimeError("x"), StopIteration("x")])
def test_everything_else_is_a_flaw_of_the_operation(end: Any) -> None:
    """An exception of any kind, and an end that is not an outcome, is an OperationFlaw, never something else."""
    made = steps(end)
    advance(made, None, Outcome)
    with pytest.raises(OperationFlaw):
        advance(made, REPLY, Outcome)


def test_memory_that_runs_out_is_no_flaw_of_the_operation() -> None:
    """It is the machine's: it ends the run, which can go on, and not the item."""
    made = steps(MemoryError())
    advance(made, None, Outcome)
    with pytest.raises(MemoryError):
        advance(made, REPLY, Outcome)


def test_the_steps_get_the_reply() -> None:
    """What came of a request is what `yield` gives."""

    def late_write() -> Any:
        return succeeded((yield GET))

    made = late_write()
    advance(made, None, Outcome)
    ended = advance(made, REPLY, Outcome)
    assert isinstance(ended, Outcome)
    assert ended.result is REPLY


def test_settling_has_more_ends() -> None:
    """What may come at the end is the caller's choice."""
    made = steps(NotApplied("x"))
    ends = (Outcome, NotApplied, Undecided)
    advance(made, None, ends)
    assert isinstance(advance(made, REPLY, ends), NotApplied)
