"""Checks answers of the sandbox against the schemas, and notes what is wrong for the test that caused it.

A sandbox is told of this module by `BULK_SANDBOX_OBSERVER` (`bulk/sandbox/http/observing.py`), also in a process of its
own; `VIOLATIONS` names the file that violations are noted in, one line each, before the answer leaves. What faults do
is not seen here, and endpoints that a test made up are none of the platform's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from tests.schemas import asked
from tests.schemas.areas.files import STANDING
from tests.schemas.asked import key
from tests.schemas.table import (
    ANYWHERE,
    BESIDE,
    ENDPOINTS,
    NOTHING,
    UNKNOWN_PATH,
    Answer,
    Bytes,
    Json,
    Nothing,
    Standing,
)

if TYPE_CHECKING:
    from bulk.sandbox.http.observing import Observed

VIOLATIONS: Final = "BULK_SCHEMA_VIOLATIONS"
_OURS: Final = "bulk.sandbox."
_ANY = msgspec.json.Decoder()


class Checker:
    """Knows what each endpoint may answer."""

    def __init__(self, endpoints: Mapping[str, Mapping[int, Answer]]) -> None:
        self._endpoints = {key(*name.split(" ", 1)): answers for name, answers in endpoints.items()}

    def fault(self, seen: Observed) -> str | None:
        """What is wrong with an answer, as a sentence; None: nothing, or it is not the platform's."""
        if seen.route is not None and not seen.route.function.__module__.startswith(_OURS):
            return None
        where = f"{seen.method} {seen.route.path if seen.route else seen.path}"
        reason = self._fault(seen)
        return None if reason is None else f"{where} ({seen.version}, {seen.media}) answered {seen.status}: {reason}"

    def _fault(self, seen: Observed) -> str | None:
        if seen.route is None:
            answers: Mapping[int, Answer] | None = UNKNOWN_PATH
        else:
            answers = self._endpoints.get(key(seen.method, seen.route.path))
        if answers is None:
            return "the endpoint has no schema"
        answer = answers.get(seen.status) or ANYWHERE.get(seen.status)
        if seen.status == 304 and seen.method in ("GET", "HEAD") and seen.route is not None:
            answer = NOTHING
        if answer is None:
            return "the endpoint does not have this status"
        return _fault_of_body(seen, answer)


def _fault_of_body(seen: Observed, answer: Answer) -> str | None:
    is_json = seen.headers.get("Content-Type", "").startswith("application/json")
    match answer:
        case Nothing():
            return "it must have no body" if seen.body else None
        case Bytes():
            return "it must not be JSON" if is_json else None
        case Standing():
            if seen.media in ("raw", "html") and not is_json:
                return None
            decoder = STANDING[seen.version, "object" if seen.media == "object" else "json"]
        case Json(choose):
            decoder = choose(seen)
    if not is_json:
        return "it must be JSON"
    try:
        decoder.decode(seen.body)
    except msgspec.DecodeError as error:
        return str(error)
    if seen.status >= 400 and _ANY.decode(seen.body).get("status", str(seen.status)) != str(seen.status):
        return "the body's status is another one"
    return None


_CHECKER: Final = Checker({**ENDPOINTS, **BESIDE})


def observe(seen: Observed) -> None:
    """Note which endpoint answered, and what is wrong with its answer."""
    note(_CHECKER, seen)
    asked.note(seen)


def note(checker: Checker, seen: Observed) -> None:
    """Append the fault of an answer, if it has one, to the file that `BULK_SCHEMA_VIOLATIONS` names."""
    fault = checker.fault(seen)
    path = os.environ.get(VIOLATIONS)
    if fault is not None and path:
        with Path(path).open("a") as file:
            file.write(fault.replace("\n", " ") + "\n")
