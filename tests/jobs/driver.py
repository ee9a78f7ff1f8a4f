"""Drives an operation's generator by hand: scripted answers in, its requests and how it ended out.

Each request counts in the table of endpoints (`tests/endpoints.py`).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from bulk.model import ItemError, Lost, NotApplied, Outcome, Reply, Request, Undecided
from bulk.operation import AnyOperation
from tests.schemas.asked import note_scripted

NOT_FOUND = {"message": "Not Found", "documentation_url": "https://docs.example.com/rest", "status": "404"}


@dataclass(frozen=True)
class Disbelieved:
    """The engine would not have let the answer through: it repeats a read, and settles a write by reading."""

    request: Request
    flaw: str


@dataclass(frozen=True)
class Driven:
    """What came of it: `requests` in the order they were asked for, and what the generator returned."""

    requests: list[Request]
    ended: Any

    @property
    def outcome(self) -> Outcome:
        assert isinstance(self.ended, Outcome), f"no outcome: {self.ended}"
        return self.ended

    @property
    def error(self) -> ItemError:
        assert self.outcome.error is not None, f"no error: {self.ended}"
        return self.outcome.error

    @property
    def is_undone(self) -> bool:
        return isinstance(self.ended, NotApplied)

    @property
    def is_disbelieved(self) -> bool:
        return isinstance(self.ended, Disbelieved)

    @property
    def is_undecided(self) -> bool:
        return isinstance(self.ended, Undecided)

    def shown(self) -> list[str]:
        """`METHOD path?query` of every request."""
        return [f"{each.method} {each.path}{'?' + each.query if each.query else ''}" for each in self.requests]


def reply(
    status: int = 200, body: Any = None, *, headers: Mapping[str, str] | None = None, is_unchanged: bool = False
) -> Reply:
    """An answer of the platform; 404 without a body gets the platform's own."""
    if status == 404 and body is None:
        body = NOT_FOUND
    return Reply(status=status, headers=headers or {}, body=body, is_unchanged=is_unchanged)


def drive(steps: Generator[Request, Reply, Any], *answers: Reply) -> Driven:
    """Give each answer to one request. Fails where the generator wants more or fewer, or does not accept a status.

    An answer of success that does not prove what its request asks for ends it, as `Disbelieved`.
    """
    requests = []
    script = list(answers)
    try:
        request = next(steps)
        while True:
            requests.append(request)
            assert script, f"nothing is scripted for {request.method} {request.path}"
            answer = script.pop(0)
            assert answer.status in request.accept, f"{request.method} {request.path} does not take {answer.status}"
            if request.proof is not None and 200 <= answer.status < 300 and not answer.is_unchanged:
                flaw = request.proof.flaw(answer)
                if flaw:
                    steps.close()
                    return Driven(requests, Disbelieved(request, flaw))
            note_scripted(request.method, request.path, answer.status)
            request = steps.send(answer)
    except StopIteration as end:
        assert not script, f"{len(script)} answers were not asked for"
        return Driven(requests, end.value)


def item_of(operation: AnyOperation, **fields: Any) -> Any:
    """A typed item, decoded as from an items file."""
    return msgspec.json.decode(msgspec.json.encode(fields), type=operation.Item)


def run(operation: AnyOperation, fields: Mapping[str, Any], *answers: Reply) -> Driven:
    """The operation's steps over an item."""
    return drive(operation.steps(item_of(operation, **fields)), *answers)


def settle(
    operation: AnyOperation,
    fields: Mapping[str, Any],
    before: Any,
    *answers: Reply,
    method: str = "PUT",
    status: int | None = None,
) -> Driven:
    """The operation's settling of a lost write; every request of it must be a fresh read."""
    lost = Lost(method=method, path="/x", before=before, sent_at=1_000.0, status=status)
    driven = drive(operation.settle(item_of(operation, **fields), lost), *answers)
    assert all(request.method == "GET" and request.is_fresh for request in driven.requests)
    return driven


def flaws(operation: AnyOperation, fields: Mapping[str, Any]) -> dict[str, str]:
    """Field -> message of everything that `check` finds."""
    return {flaw.field: flaw.message for flaw in operation.check(item_of(operation, **fields))}
