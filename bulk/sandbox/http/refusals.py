"""Refusals. An area function raises `Refused`; the pipeline turns it into the platform's error body.

The shapes are those of open-points.md: `{message, documentation_url, status}`, and for 422 also `errors`, a list of
`{resource, field, code, message?}` with the codes missing, missing_field, invalid, already_exists, unprocessable,
custom.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

DOCUMENTATION = "https://docs.example.com/rest"


class Refused(Exception):
    """The platform refuses a request; nothing of it took effect.

    Attributes:
        status: the HTTP status (400 to 599).
        message: the message for the caller.
        errors: entries of a 422 body (objects, or plain strings); empty: no `errors` key.
        headers: further headers of the answer.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        errors: Sequence[Mapping[str, object] | str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.errors, self.headers = status, message, tuple(errors), dict(headers or {})

    def body(self) -> dict[str, object]:
        """Return the error as the platform's JSON object."""
        body: dict[str, object] = {"message": self.message}
        if self.errors:
            body["errors"] = [dict(entry) if isinstance(entry, Mapping) else entry for entry in self.errors]
        body["documentation_url"] = DOCUMENTATION
        body["status"] = str(self.status)
        return body


def not_found() -> Refused:
    """Return a 404: the resource does not exist, or the caller may not know of it."""
    return Refused(404, "Not Found")


def forbidden(message: str = "Resource not accessible by this token") -> Refused:
    """Return a 403: the caller sees the resource and may not do this with it."""
    return Refused(403, message)


def unauthenticated(message: str = "Requires authentication") -> Refused:
    """Return a 401: there is no credential, or one that is not (or no longer) good."""
    return Refused(401, message)


def bad_request(message: str) -> Refused:
    """Return a 400: the request can't be understood."""
    return Refused(400, message)


def conflict(message: str) -> Refused:
    """Return a 409: the request contradicts the present state, or another request that is in progress."""
    return Refused(409, message)


def invalid(*errors: Mapping[str, object] | str, message: str = "Validation Failed") -> Refused:
    """Return a 422: the body was understood and is wrong; each entry comes from `problem` or is a plain string."""
    return Refused(422, message, errors=errors)


def problem(resource: str, field: str, code: str, message: str | None = None) -> dict[str, object]:
    """Return one entry of a 422 answer's `errors`."""
    entry: dict[str, object] = {"resource": resource, "field": field, "code": code}
    if message is not None:
        entry["message"] = message
    return entry
