"""Requests of an App with its JSON web token: about itself, about its installations, and for installations' tokens."""

from __future__ import annotations

from bulk.sandbox.areas.apps.app_objects import app_object, installation_object, selection_of
from bulk.sandbox.areas.shared.organization_repositories import by_ids
from bulk.sandbox.areas.shared.repository_objects import whole_repository
from bulk.sandbox.clock import iso
from bulk.sandbox.http import paging
from bulk.sandbox.http.access import Access
from bulk.sandbox.http.answers import Answer
from bulk.sandbox.http.auth import rights
from bulk.sandbox.http.call import Call
from bulk.sandbox.http.refusals import forbidden, invalid, not_found
from bulk.sandbox.http.routes import Area, Route
from bulk.sandbox.store.records import App, Installation, Organization, Repository, TokenKind

REPOSITORIES_MOST = 500
"""The most repositories that a token may be limited to (count). Source: the public platform's documentation."""
LEVELS = {"read": 1, "write": 2, "admin": 3}
DELETED_ACCEPTED_FROM = "2026-03-10"
"""From this version on, the removal of an installation is accepted (202) instead of done (204). Source: Versioning."""


def _app(call: Call) -> App:
    app = call.context.apps.app_of(call.token) if call.token else None
    if app is None:
        raise not_found()
    return app


def _installation(call: Call) -> tuple[App, Installation]:
    app, number = _app(call), call.params["installation_id"]
    found = call.context.apps.installation(int(number)) if number.isascii() and number.isdigit() else None
    if found is None or found.app_id != app.id:
        raise not_found()
    return app, found


async def get_app(call: Call) -> Answer:
    """Return the App itself."""
    app = _app(call)
    count = len(call.context.apps.installations_of(app))
    return Answer(body={**app_object(call, app), "installations_count": count})


async def list_installations(call: Call) -> Answer:
    """Return a page of the App's installations."""
    app = _app(call)
    page, headers = paging.cut(call, call.context.apps.installations_of(app))
    return Answer(body=[installation_object(call, app, each) for each in page], headers=headers)


async def get_installation(call: Call) -> Answer:
    """Return one installation of the App."""
    return Answer(body=installation_object(call, *_installation(call)))


async def delete_installation(call: Call) -> Answer:
    """Uninstall the App: tokens of the installation are refused from now on."""
    _, installation = _installation(call)
    call.context.apps.uninstall(installation)
    status = 202 if call.version >= DELETED_ACCEPTED_FROM else 204
    return Answer(status, body={} if status == 202 else None, effect=f"uninstalled {installation.id}")


async def suspend_installation(call: Call) -> Answer:
    """Suspend an installation: it gets no token, and those that it has are refused."""
    _, installation = _installation(call)
    call.context.apps.suspend(installation, call.now)
    return Answer(204, effect=f"suspended {installation.id}")


async def unsuspend_installation(call: Call) -> Answer:
    """Let a suspended installation go on."""
    _, installation = _installation(call)
    call.context.apps.suspend(installation, None)
    return Answer(204, effect=f"unsuspended {installation.id}")


async def find_in_organization(call: Call) -> Answer:
    """Return the App's installation in an organization."""
    app, organization = _app(call), rights.organization(call)
    return _found(call, app, call.context.apps.installation_in(app, organization))


async def find_for_repository(call: Call) -> Answer:
    """Return the App's installation that reaches a repository."""
    app, state = _app(call), call.context.state
    organization = state.organization(call.params["owner"])
    repository = organization and state.repository(organization, call.params["repo"])
    if organization is None or not repository:
        raise not_found()
    found = call.context.apps.installation_in(app, organization)
    is_reached = found is not None and (found.repository_ids is None or repository.id in found.repository_ids)
    return _found(call, app, found if is_reached else None)


async def find_in_enterprise(call: Call) -> Answer:
    """Return the App's installation in an enterprise: there are none here."""
    return _found(call, _app(call), None)


def _found(call: Call, app: App, installation: Installation | None) -> Answer:
    if installation is None:
        raise not_found()
    return Answer(body=installation_object(call, app, installation))


async def create_access_token(call: Call) -> Answer:
    """Mint a token of an installation, with all of its rights or with fewer."""
    app, installation = _installation(call)
    if installation.suspended_at is not None:
        raise forbidden("This installation has been suspended")
    body = call.json_object()
    permissions = _permissions(installation, body.get("permissions"))
    repositories = _repositories(call, installation, body)
    ids = installation.repository_ids if repositories is None else frozenset(each.id for each in repositories)
    is_scoped = permissions != dict(installation.permissions) or repositories is not None
    text, ends_at = call.context.apps.mint(installation, app, permissions, ids, is_scoped=is_scoped)
    answer: dict[str, object] = {
        "token": text,
        "expires_at": iso(ends_at),
        "permissions": permissions,
        "repository_selection": selection_of(ids),
    }
    if repositories is not None:
        owner = call.context.state.organization_by_id(installation.organization_id)
        answer["repositories"] = [whole_repository(call, owner, each) for each in repositories]
    return Answer(201, body=answer, effect=f"token of installation {installation.id}")


def _permissions(installation: Installation, asked: object) -> dict[str, str]:
    if asked is None:
        return dict(installation.permissions)
    if not isinstance(asked, dict):
        raise invalid("permissions must be an object")
    for name, level in asked.items():
        held = LEVELS.get(installation.permissions.get(name, ""), 0)
        if not 0 < LEVELS.get(level if isinstance(level, str) else "", 0) <= held:
            raise invalid(message="The permissions requested are not granted to this installation.")
    return {"metadata": "read", **asked} if "metadata" in installation.permissions else dict(asked)


def _repositories(call: Call, installation: Installation, body: dict[str, object]) -> list[Repository] | None:
    """Return the repositories that the token is limited to; None: it is not limited."""
    names, ids = body.get("repositories"), body.get("repository_ids")
    if names is None and ids is None:
        return None
    names, ids = names or [], ids or []
    if not isinstance(names, list) or not isinstance(ids, list) or len(names) + len(ids) > REPOSITORIES_MOST:
        raise invalid("repositories must be an array of at most 500 names")
    state = call.context.state
    owner: Organization = state.organization_by_id(installation.organization_id)
    found = [state.repository(owner, name) if isinstance(name, str) else None for name in names]
    numbers = [number for number in ids if isinstance(number, int)]
    listed = by_ids(state, owner.id, numbers)
    found += [*listed, *([None] if len(listed) < len(ids) else [])]
    allowed = installation.repository_ids
    if any(each is None or (allowed is not None and each.id not in allowed) for each in found):
        raise invalid(
            message="There is at least one repository that does not exist or is not accessible to the parent "
            "installation."
        )
    return [each for each in found if each is not None]


_OWN = Access(by=TokenKind.APP)
_ONE = "/app/installations/{installation_id}"

AREA = Area(
    "Apps",
    (
        Route("GET", "/app", get_app, access=_OWN),
        Route("GET", "/app/installations", list_installations, access=_OWN),
        Route("GET", _ONE, get_installation, access=_OWN),
        Route("DELETE", _ONE, delete_installation, access=_OWN),
        Route("POST", f"{_ONE}/access_tokens", create_access_token, access=_OWN),
        Route("PUT", f"{_ONE}/suspended", suspend_installation, access=_OWN),
        Route("DELETE", f"{_ONE}/suspended", unsuspend_installation, access=_OWN),
        Route("GET", "/orgs/{org}/installation", find_in_organization, access=_OWN),
        Route("GET", "/repos/{owner}/{repo}/installation", find_for_repository, access=_OWN),
        Route("GET", "/enterprises/{enterprise}/installation", find_in_enterprise, access=_OWN),
    ),
)
