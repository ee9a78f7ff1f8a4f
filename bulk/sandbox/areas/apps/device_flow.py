"""The device flow: a program without a browser gets a token with which its App acts for a user.

The program asks for a code (`POST /login/device/code`), its user confirms it (`POST /login/device` with `user_code`, as
himself), and the program, which asks every few seconds, gets a token and a refresh token (`POST
/login/oauth/access_token`). A refresh token works once and ends the pair that it came with. These paths stand beside
the base URL's, and their errors come with status 200, as on the public platform.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from bulk.sandbox.http.access import Access
from bulk.sandbox.http.answers import Answer
from bulk.sandbox.http.call import Call
from bulk.sandbox.http.context import Context
from bulk.sandbox.http.refusals import bad_request, not_found
from bulk.sandbox.http.routes import Area, Route
from bulk.sandbox.store.records import App, User

CODE_S = 900.0
"""How long a code may be confirmed (seconds)."""
CODES_IN_MEMORY = 1_000
GRANT_DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"


@dataclass(slots=True)
class Code:
    """A code that waits for a user. `asked_at` and `ends_at` are UTC epoch seconds."""

    app: App
    user_code: str
    ends_at: float
    interval_s: float
    asked_at: float = 0.0
    user: User | None = None
    is_denied: bool = False


class Codes:
    """All codes, by device code."""

    def __init__(self) -> None:
        self.waiting: dict[str, Code] = {}


def _fields(call: Call) -> dict[str, str]:
    """Return the fields of a request, from its form, its JSON or its query."""
    if call.headers.get("Content-Type", "").startswith("application/json"):
        return {name: str(value) for name, value in call.json_object().items()}
    fields = dict(parse_qsl(call.raw.decode("utf-8", "replace")))
    return {name: call.query.get(name) or "" for name in ("client_id", "scope")} | fields if call.raw else fields


def _said(call: Call, fields: dict[str, object]) -> Answer:
    """Return an answer with these fields, as JSON if the caller accepts that, else as a form."""
    if "json" in call.headers.get("Accept", ""):
        return Answer(body=fields)
    form = urlencode({name: str(value) for name, value in fields.items()})
    return Answer(raw=form.encode(), content_type="application/x-www-form-urlencoded; charset=utf-8")


def _error(call: Call, code: str, description: str, **more: object) -> Answer:
    return _said(call, {"error": code, "error_description": description, **more})


async def ask_for_code(call: Call) -> Answer:
    """Begin: a code for the program, and one for its user."""
    app = call.context.apps.app(_fields(call).get("client_id", ""))
    if app is None:
        raise not_found()
    codes = call.context.get(Codes).waiting
    for ended in [code for code, each in codes.items() if each.ends_at <= call.now]:
        del codes[ended]
    if len(codes) >= CODES_IN_MEMORY:
        return _error(call, "slow_down", "Too many codes wait to be confirmed.")
    device_code = secrets.token_hex(20)
    letters = "".join(secrets.choice(_LETTERS) for _ in range(8))
    code = codes[device_code] = Code(app, f"{letters[:4]}-{letters[4:]}", call.now + CODE_S, app.interval_s)
    return _said(
        call,
        {
            "device_code": device_code,
            "user_code": code.user_code,
            "verification_uri": f"{call.site_url}/login/device",
            "expires_in": int(CODE_S),
            "interval": code.interval_s if code.interval_s % 1 else int(code.interval_s),
        },
    )


async def confirm(call: Call) -> Answer:
    """Confirm a code, or with `deny` refuse it, as the user of the request's own token or password."""
    fields = _fields(call)
    wanted = fields.get("user_code", "").strip().upper()
    code = next((each for each in call.context.get(Codes).waiting.values() if each.user_code == wanted), None)
    if code is None or code.ends_at <= call.now:
        raise bad_request("There is no such code, or it has ended")
    code.user, code.is_denied = call.caller, "deny" in fields
    return Answer(204, effect=f"{call.caller.login} {'denied' if code.is_denied else 'confirmed'} {wanted}")


async def give_token(call: Call) -> Answer:
    """Give the tokens for a code that was confirmed, or new ones for a refresh token."""
    fields = _fields(call)
    app = call.context.apps.app(fields.get("client_id", ""))
    if app is None:
        return _error(call, "incorrect_client_credentials", "The client_id and/or client_secret passed are incorrect.")
    match fields.get("grant_type"):
        case "refresh_token":
            granted = call.context.apps.refresh(app, fields.get("refresh_token", ""))
            if granted is None:
                return _error(call, "bad_refresh_token", "The refresh token passed is incorrect or expired.")
            return _said(call, granted)
        case grant if grant == GRANT_DEVICE:
            return _for_code(call, app, fields.get("device_code", ""))
    return _error(call, "unsupported_grant_type", "The grant type is not supported.")


def _for_code(call: Call, app: App, device_code: str) -> Answer:
    codes = call.context.get(Codes).waiting
    code = codes.get(device_code)
    if code is None or code.app.id != app.id:
        return _error(call, "incorrect_device_code", "The device_code provided is not valid.")
    if code.ends_at <= call.now:
        return _error(call, "expired_token", "The device_code has expired.")
    asked_at, code.asked_at = code.asked_at, call.now
    if call.now - asked_at < code.interval_s * 0.9:
        code.interval_s += app.interval_s
        return _error(call, "slow_down", "Too many requests have been made.", interval=code.interval_s)
    if code.user is None:
        return _error(call, "authorization_pending", "The authorization request is still pending.")
    del codes[device_code]
    if code.is_denied:
        return _error(call, "access_denied", "The authorization request was denied.")
    return _said(call, call.context.apps.grant(app, code.user))


async def _start(context: Context) -> None:
    context.put(Codes())


AREA = Area(
    "Device flow",
    (
        Route("POST", "/login/device/code", ask_for_code, category=None, anonymous=True),
        Route("POST", "/login/device", confirm, category=None, access=Access()),
        Route("POST", "/login/oauth/access_token", give_token, category=None, anonymous=True),
    ),
    _start,
)
