"""What the answer to a write must show before it is believed: all operations that write."""

import pytest

from bulk.model import SUCCESSFUL, Effect
from bulk.operation import find, names
from tests.jobs import answers
from tests.jobs.answers_to_writes import WRITES
from tests.jobs.driver import drive, item_of, reply

CASES = [pytest.param(write, id=f"{write.operation}-{number}") for number, write in enumerate(WRITES)]
WITH_BODY = [case for case, write in zip(CASES, WRITES, strict=True) if write.right is not None]
WITHOUT_BODY = [case for case, write in zip(CASES, WRITES, strict=True) if write.right is None]
GATEWAY_STATUSES = (200, 201, 202, 203, 204, 205, 206)


def written(write, *more):
    """The operation's steps, up to its write and the answers to that."""
    operation = find(write.operation)
    return drive(operation.steps(item_of(operation, **write.item)), *write.before, *more)


def sent(write):
    """The request that writes."""
    operation = find(write.operation)
    steps = operation.steps(item_of(operation, **write.item))
    request = next(steps)
    for answer in write.before:
        request = steps.send(answer)
    assert request.effect is not Effect.READ
    return request


@pytest.mark.parametrize("write", CASES)
def test_the_right_answer_is_believed(write):
    """What the specification shows for it ends the item well."""
    for status in write.statuses:
        assert written(write, reply(status, write.right)).outcome.kind in SUCCESSFUL


@pytest.mark.parametrize("write", WITH_BODY)
def test_an_answer_that_proves_nothing_is_settled(write):
    """An answer that is empty, of another shape or about something else is settled (failures.md row 27)."""
    never = [body for body in answers.NEVER if body != {"message": "x"} or write.operation != "notification.mark-read"]
    for status in write.statuses:
        for body in (*never, *write.wrong):
            assert written(write, reply(status, body)).is_disbelieved, body


@pytest.mark.parametrize("write", CASES)
def test_only_statuses_of_the_specification_are_taken(write):
    """A 2xx that the specification does not show for a write is a gateway's: it is settled (failures.md row 15)."""
    shown = {status for each in WRITES if each.operation == write.operation for status in each.statuses}
    accepted = sent(write).accept
    assert {status for status in GATEWAY_STATUSES if status in accepted} == shown


@pytest.mark.parametrize("write", WITHOUT_BODY)
def test_a_status_proves_what_has_no_body(write):
    """Where the specification shows no body, nothing is asked of it, whatever a gateway has put there."""
    proof = sent(write).proof
    for status in write.statuses:
        assert proof is None or not proof.flaw(reply(status))


def test_every_write_is_in_the_table():
    """No operation writes whose answers are taken as they come."""
    assert {write.operation for write in WRITES} == {name for name in names() if not find(name).is_read}
