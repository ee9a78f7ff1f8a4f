"""The rights of callers: those of a token, and those of its user on other users' things.

A request needs both. Classic and OAuth tokens have scopes, where a wide scope includes narrow ones; the other kinds
have permissions. A thing that a caller must not know about is 404; an action that he may not do to a thing that he sees
is 403.

Members of an organization read and write all its repositories; everybody reads the public ones. Owners of the
enterprise and site administrators own every organization. Security managers of an organization are members who also
manage its code security configurations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bulk.sandbox.http.refusals import Refused, forbidden, not_found, unauthenticated
from bulk.sandbox.store.records import Organization, Repository, Token, TokenKind

if TYPE_CHECKING:
    from bulk.sandbox.http.call import Call

INCLUDED: Final[dict[str, tuple[str, ...]]] = {
    "repo": ("public_repo", "repo:status", "repo_deployment", "repo:invite", "security_events"),
    "admin:org": ("write:org", "read:org"),
    "write:org": ("read:org",),
    "admin:enterprise": ("manage_runners:enterprise", "manage_billing:enterprise", "read:enterprise"),
}
ALL_SCOPES: Final = (
    "repo",
    "workflow",
    "admin:org",
    "admin:org_hook",
    "admin:enterprise",
    "notifications",
    "site_admin",
    "user",
)
OWN_KINDS: Final = frozenset({TokenKind.APP, TokenKind.CLIENT})
"""The kinds of an App's own credentials, for the few routes about the App itself."""
APP_KINDS: Final = frozenset({TokenKind.APP_USER, TokenKind.INSTALLATION, TokenKind.WORKFLOW})
SCOPED_KINDS: Final = frozenset({TokenKind.CLASSIC, TokenKind.OAUTH})


def has_scope(token: Token, *wanted: str) -> bool:
    """Return whether a classic or OAuth token has one of these scopes, or a wider one; True if none is wanted."""
    return not wanted or any(
        scope in token.scopes or any(scope in INCLUDED.get(wide, ()) for wide in token.scopes) for scope in wanted
    )


def has_permission(token: Token, name: str, level: str) -> bool:
    """Return whether a fine-grained or application token has a permission at `read` or `write`."""
    held = token.permissions.get(name)
    return held == "write" or (held is not None and held == level)


def admit(call: Call) -> None:
    """Check that the token may use the route.

    Raises:
        Refused: 401 without a token where one is needed; 403 or 404 where the token lacks what the route asks for; 403
            where the organization of the path asks for single sign-on, which the token was not authorized for.
    """
    token, access = call.token, call.access
    if token is None:
        if call.anonymous:
            return
        raise unauthenticated()
    if token.sso_ids:
        _require_single_sign_on(call, token)
    wanted = access.by if access is not None else None
    if (wanted is not None or token.kind in OWN_KINDS) and not call.anonymous:
        if token.kind is wanted:
            return
        if wanted is TokenKind.APP:
            raise unauthenticated("A JSON web token could not be decoded")
        raise not_found() if wanted is TokenKind.CLIENT else forbidden("Resource not accessible by integration")
    if access is None:
        return
    if token.kind in SCOPED_KINDS:
        is_enough = has_scope(token, *access.scopes) and (access.oauth_tokens or token.kind is TokenKind.CLASSIC)
    elif access.permission is None or (token.kind in APP_KINDS and not access.app_tokens):
        is_enough = False
    else:
        is_enough = has_permission(token, *access.permission)
    if not is_enough:
        raise not_found() if access.hidden else forbidden()


def _require_single_sign_on(call: Call, token: Token) -> None:
    login = call.params.get("org") or call.params.get("owner")
    found = None if login is None else call.context.state.organization(login)
    if found is not None and found.id in token.sso_ids:
        page = f"{call.site_url}/orgs/{found.login}/sso?authorization_request={token.id}"
        raise Refused(
            403,
            "Resource protected by organization SAML enforcement. You must grant your Personal Access token access to "
            "this organization.",
            headers={"X-GitHub-SSO": f"required; url={page}"},
        )


def organization(call: Call, parameter: str = "org") -> Organization:
    """Return the organization that the path names and that the caller may know of (everybody may).

    Raises:
        Refused: 404.
    """
    found = call.context.state.organization(call.params[parameter])
    if found is None:
        raise not_found()
    return found


def is_owner(call: Call, target: Organization) -> bool:
    """Return whether the caller acts as an owner of the organization: as such a user, or as an installation in it."""
    token = call.token
    if token is None or (token.organization_id is not None and token.organization_id != target.id):
        return False
    return token.kind is TokenKind.INSTALLATION or call.context.state.role(target, token.user) == "owner"


def owned_organization(call: Call, parameter: str = "org") -> Organization:
    """Return the organization that the path names, for its owners only.

    Raises:
        Refused: 404, the organization does not exist, or the caller does not own it.
    """
    found = organization(call, parameter)
    if not is_owner(call, found):
        raise not_found()
    return found


def secured_organization(call: Call, parameter: str = "org") -> Organization:
    """Return the organization that the path names, for its owners and its security managers.

    Raises:
        Refused: 404, the organization does not exist, or the caller is neither.
    """
    found = organization(call, parameter)
    if not is_owner(call, found):
        is_elsewhere = call.token is not None and call.token.organization_id not in (None, found.id)
        if is_elsewhere or call.context.state.role(found, call.caller) != "security_manager":
            raise not_found()
    return found


def repository(call: Call, *, write: bool = False) -> Repository:
    """Return the repository `{owner}/{repo}` of the path, if the caller may read it, or write it.

    Raises:
        Refused: 404, the repository does not exist, or the caller may not know of it; 403, he may read it but not
            write it.
    """
    state = call.context.state
    owner = state.organization(call.params["owner"])
    found = None if owner is None else state.repository(owner, call.params["repo"])
    if owner is None or found is None:
        raise not_found()
    if found.private and not (_reaches(call, owner, "read") and _is_selected(call, found)):
        raise not_found()
    if write and not (_reaches(call, owner, "write", is_public=not found.private) and _is_selected(call, found)):
        raise forbidden()
    return found


def _is_selected(call: Call, found: Repository) -> bool:
    """Return whether the caller's token reaches the repository: it is not limited to other ones."""
    token = call.token
    if token is None or token.installation_id is None:
        return True
    installation = call.context.apps.installation(token.installation_id)
    selections = (token.repository_ids, installation.repository_ids if installation else None)
    return all(selected is None or found.id in selected for selected in selections)


def _reaches(call: Call, owner: Organization, level: str, *, is_public: bool = False) -> bool:
    token = call.token
    if token is None or (token.organization_id is not None and token.organization_id != owner.id):
        return False
    if token.kind is not TokenKind.INSTALLATION and call.context.state.role(owner, token.user) is None:
        return False
    if token.kind in SCOPED_KINDS:
        return has_scope(token, "public_repo") if is_public else has_scope(token, "repo")
    return has_permission(token, "contents", level)
