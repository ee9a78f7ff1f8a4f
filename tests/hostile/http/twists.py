"""What may become of a right answer on its way: gateways, balancers and platforms of other makes put it otherwise.

A twist takes the request and the right answer, and gives another answer, or the bytes of one that has no good form.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.hostile.http.messages import JSON, Answer, Ask

Twist = Callable[[Ask, Answer], Answer | bytes]
Frame = Callable[[list[str], bytes], bytes]
"""Takes status line and header lines, and the body."""

BODILESS = (204, 304)


def _json_of(answer: Answer) -> Any:
    """The value of a success in JSON; None: it is none."""
    return json.loads(answer.body) if answer.status < 300 and answer.body and JSON in answer.headers else None


def each(change: Callable[[str, Any], Any]) -> Twist:
    """Every value of a success is changed, as its field's name and it say."""

    def changed(name: str, value: Any) -> Any:
        match value:
            case dict():
                value = {key: changed(key, inner) for key, inner in value.items()}
            case list():
                return [changed(name, inner) for inner in value]
        return change(name, value)

    def twist(ask: Ask, answer: Answer) -> Answer:
        value = _json_of(answer)
        return answer if value is None else replace(answer, body=json.dumps(changed("", value)).encode())

    return twist


def raw(change: Callable[[bytes], bytes]) -> Twist:
    """The bytes of a success in JSON are changed."""

    def twist(ask: Ask, answer: Answer) -> Answer:
        return answer if _json_of(answer) is None else replace(answer, body=change(answer.body))

    return twist


def doubled(ask: Ask, answer: Answer) -> Answer:
    """A list shows its first entry twice, be it the answer itself or a field of it."""
    value = _json_of(answer)
    if isinstance(value, dict):
        listed = {name: [*value[name][:1], *value[name]] for name in ("entries", "repositories") if name in value}
        value = {**value, **listed}
    elif isinstance(value, list):
        value = [*value[:1], *value]
    return answer if value is None else replace(answer, body=json.dumps(value).encode())


def headers(*more: tuple[str, str], without: tuple[str, ...] = ()) -> Twist:
    """Header lines come, and go."""

    def twist(ask: Ask, answer: Answer) -> Answer:
        kept = tuple(header for header in answer.headers if header[0] not in without)
        return replace(answer, headers=(*kept, *more))

    return twist


def instead(status: int, body: bytes = b"", *more: tuple[str, str]) -> Twist:
    """Something else altogether."""
    kind = ("content-type", "text/html") if body.startswith(b"<") else JSON

    def twist(ask: Ask, answer: Answer) -> Answer:
        kept = tuple(header for header in answer.headers if header[0] not in ("content-type", "link"))
        return Answer(status, body, (*kept, kind, *more))

    return twist


def coded(coding: str, change: Callable[[bytes], bytes]) -> Twist:
    """In a content coding."""

    def twist(ask: Ask, answer: Answer) -> Answer:
        if not answer.body:
            return answer
        return replace(answer, body=change(answer.body), headers=(*answer.headers, ("content-encoding", coding)))

    return twist


def framed(frame: Frame, version: str = "1.1") -> Twist:
    """In a framing of its own; nothing is changed where no body may be."""

    def twist(ask: Ask, answer: Answer) -> Answer | bytes:
        if answer.status in BODILESS:
            return answer
        lines = [f"HTTP/{version} {answer.status} Because", *(f"{name}: {value}" for name, value in answer.headers)]
        return frame(lines, answer.body)

    return twist


def sized(lines: list[str], body: bytes, more: int = 0) -> bytes:
    """With a length, which may say more or less than there is."""
    return _head(*lines, f"content-length: {max(0, len(body) + more)}") + body


def chunked(lines: list[str], body: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    """In one chunk."""
    return (
        _head(*lines, "transfer-encoding: chunked") + (b"%x;a=b\r\n%b\r\n" % (len(body), body) if body else b"") + end
    )


def _head(*lines: str) -> bytes:
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def in_lines(end: str) -> Twist:
    """Base64 in lines of 60 characters, the last one ended too."""

    def change(name: str, value: Any) -> Any:
        if name != "content" or not isinstance(value, str):
            return value
        text = "".join(value.split())
        return "".join(text[at : at + 60] + end for at in range(0, len(text), 60))

    return each(change)


def linked(target: Callable[[Ask], str]) -> Twist:
    """A link to a next page on every page of a list; none where `target` gives nothing."""

    def twist(ask: Ask, answer: Answer) -> Answer:
        if not ask.is_read or not isinstance(_json_of(answer), list):
            return answer
        kept = tuple(header for header in answer.headers if header[0] != "link")
        to = target(ask)
        return replace(answer, headers=(*kept, ("link", f'<{to}>; rel="next"')) if to else kept)

    return twist
