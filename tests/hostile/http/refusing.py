"""Definite refusals of a write that was done: what a proxy passes on that sent it twice, or a gateway makes up."""

from collections.abc import Iterator

from tests.hostile.http import twists
from tests.hostile.wrong import Way

SAID = {
    "400": (400, b'{"message":"Problems parsing JSON"}'),
    "403 with a reason": (403, b'{"message":"Resource protected by organization SAML enforcement."}'),
    "404": (404, b'{"message":"Not Found"}'),
    "404 page": (404, b"<html><body>Not here</body></html>"),
    "405": (405, b""),
    "409": (409, b'{"message":"Conflict"}'),
    "410": (410, b'{"message":"Gone"}'),
    "412": (412, b'{"message":"Precondition Failed"}'),
    "413": (413, b"<html><body>Too large</body></html>"),
    "422": (422, b'{"message":"Validation Failed"}'),
    "422 exists already": (422, b'{"message":"Validation Failed","errors":[{"code":"already_exists"}]}'),
    "422 invalid": (422, b'{"message":"Validation Failed","errors":[{"code":"invalid","field":"name"}]}'),
    "423": (423, b'{"message":"Locked"}'),
    "451": (451, b'{"message":"Unavailable"}'),
    "406 page": (406, b"<html><body>Blocked by policy</body></html>"),
    "407 page": (407, b"<html><body>Proxy authentication</body></html>"),
    "431 page": (431, b"<html><body>Cookies too large</body></html>"),
}


def ways() -> Iterator[Way]:
    for name, (status, body) in SAID.items():
        twist = twists.instead(status, body)
        yield Way(f"lied: {name}, after", "twisted", twist=twist, is_denied=True)
        yield Way(f"lied: {name}, before", "twisted", twist=twist, has_effect=False)
    silent = twists.instead(403, b'{"message":"Forbidden"}')
    yield Way("lied: 403 without a reason, four times, after", "twisted", 4, twist=silent, is_denied=True)
    yield Way("lied: 403 without a reason, always, after", "twisted", None, twist=silent, is_denied=True)
