"""Judges the first answer, which may come from no platform at all: another server, path or scheme, or a page to log in.

A front end may keep `/rate_limit` alone to itself, so that `GET /user` is a second witness. Pure. Every answer of the
platform that is not a success is a JSON object with a message.
Source: specification.md, Errors.
"""

from urllib.parse import urlsplit

from bulk.model import Reply, Request

ASK_USER = Request(method="GET", path="/user", accept=frozenset((200, 401, 403, 404)), is_fresh=True)
"""Asks whose the token is. The specification has no such request; where a platform answers it, that is a witness."""
ASKED_IN = "core"
"""The category of `ASK_USER`."""
_REDIRECTS = frozenset((301, 302, 307, 308))
_NOT_THERE = frozenset((400, 404, 405, 410, 501))
PAGES, PAGES_S = 8, 2.0
"""This many web pages (count) over this long (seconds) are not an accident, if items got no other answers."""
NOTHING_BUT_PAGES = (
    "items were answered with web pages alone: no API is there, or a page or a proxy to log in stands before it. Does "
    "platform.base_url have the right host, port and path (mostly /api/v3)?"
)


def fault_of(reply: Reply) -> str:
    """Return why the sender of this first answer can't be the platform, and the way out; empty if it may be."""
    status = reply.status
    if reply.is_truncated:
        return ""  # its message may stand in the part that was lost
    if status in _REDIRECTS:
        return _led_to(reply.headers.get("location", ""))
    body = reply.body
    if status not in _NOT_THERE or (isinstance(body, dict) and (not body or "message" in body)):
        return ""
    return (
        f"GET /rate_limit was answered with {status} and without a message of the platform: no API is there. "
        "Does platform.base_url have the right scheme, port and path (mostly /api/v3)?"
    )


def is_platform(reply: Reply) -> bool:
    """Return whether an answer to `GET /user` is the platform's: JSON with a login, or with a message if refused."""
    body = reply.body
    return isinstance(body, dict) and isinstance(body.get("login" if reply.status == 200 else "message"), str)


def _led_to(location: str) -> str:
    try:
        target = urlsplit(location)
    except ValueError:
        return ""
    if target.scheme != "https" or not target.hostname:
        return ""
    return (
        f"GET /rate_limit was answered with a redirect to https://{target.hostname}: if that is the platform, "
        "write https:// in platform.base_url, because the token is not sent after a redirect; "
        "if it is a page to log in, requests with a token have to get past it"
    )
