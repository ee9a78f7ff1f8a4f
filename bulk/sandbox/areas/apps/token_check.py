"""Questions about tokens: `GET /user` for any caller, and an App's question about a token that was made for it."""

from __future__ import annotations

import hashlib

from bulk.sandbox.areas.apps.app_objects import app_object, user_object
from bulk.sandbox.clock import iso
from bulk.sandbox.http.access import Access
from bulk.sandbox.http.answers import Answer
from bulk.sandbox.http.call import Call
from bulk.sandbox.http.refusals import forbidden, invalid, not_found, problem
from bulk.sandbox.http.routes import Area, Route
from bulk.sandbox.store.records import Token, TokenKind

NO_USERS = frozenset({TokenKind.INSTALLATION, TokenKind.WORKFLOW})


async def get_user(call: Call) -> Answer:
    """Return the user whom the token acts for; an installation acts for none."""
    token = call.token
    if token is None or token.kind in NO_USERS:
        raise forbidden("Resource not accessible by integration")
    user = token.user
    return Answer(
        body={
            **user_object(call, user),
            "name": user.name,
            "company": None,
            "blog": "",
            "location": None,
            "email": user.email,
            "hireable": None,
            "bio": None,
            "twitter_username": None,
            "public_repos": 0,
            "public_gists": 0,
            "followers": 0,
            "following": 0,
            "created_at": iso(0.0),
            "updated_at": iso(0.0),
        }
    )


async def check_token(call: Call) -> Answer:
    """Return the facts that an App may know about a token made for it. Source: specification, Authentication (3)."""
    caller, apps = call.token, call.context.apps
    app = apps.app_of(caller) if caller else None
    if app is None or app.client_id != call.params["client_id"]:
        raise not_found()
    text = call.json_object().get("access_token")
    if not isinstance(text, str) or not text:
        raise invalid(problem("OauthAccess", "access_token", "missing_field"))
    token = call.context.state.token(text)
    has_ended = token is not None and token.ends_at is not None and token.ends_at <= call.now
    if token is None or has_ended or token.app_id != app.id or token.kind is TokenKind.INSTALLATION:
        raise not_found()
    return Answer(body=_authorization(call, app_object(call, app), token, text))


def _authorization(call: Call, app: dict[str, object], token: Token, text: str) -> dict[str, object]:
    return {
        "id": token.id,
        "url": f"{call.base_url}/authorizations/{token.id}",
        "app": {"client_id": app["client_id"], "name": app["name"], "url": app["html_url"]},
        "token": text,
        "hashed_token": hashlib.sha256(text.encode()).hexdigest(),
        "token_last_eight": text[-8:],
        "note": None,
        "note_url": None,
        "created_at": iso(0.0),
        "updated_at": iso(0.0),
        "scopes": sorted(token.scopes) or None,
        "fingerprint": None,
        "expires_at": None if token.ends_at is None else iso(token.ends_at),
        "user": user_object(call, token.user),
    }


AREA = Area(
    "Token check",
    (
        Route("GET", "/user", get_user),
        Route("POST", "/applications/{client_id}/token", check_token, access=Access(by=TokenKind.CLIENT)),
    ),
)
