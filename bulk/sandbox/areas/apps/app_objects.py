"""JSON objects of Apps, their users and their installations."""

from __future__ import annotations

from bulk.sandbox.areas.shared.organization_objects import node_id
from bulk.sandbox.areas.shared.repository_objects import account_places, owner_object
from bulk.sandbox.clock import iso
from bulk.sandbox.http.call import Call
from bulk.sandbox.store.records import App, Installation, User


def user_object(call: Call, user: User) -> dict[str, object]:
    """Return a user as others see him."""
    return {
        "login": user.login,
        "id": user.id,
        "node_id": node_id("User", user.id),
        "avatar_url": f"{call.site_url}/avatars/users/{user.id}",
        "gravatar_id": "",
        **account_places(call, user.login),
        "type": "Bot" if user.login.endswith("[bot]") else "User",
        "site_admin": user.site_admin,
    }


def app_object(call: Call, app: App) -> dict[str, object]:
    """Return an App as the platform shows it to itself and to others."""
    owner = next(iter(call.context.apps.installations_of(app)), None)
    organization = None if owner is None else call.context.state.organization_by_id(owner.organization_id)
    account = user_object(call, app.user) if organization is None else owner_object(call, organization)
    return {
        "id": app.id,
        "client_id": app.client_id,
        "slug": app.slug,
        "node_id": node_id("App", app.id),
        "owner": account,
        "name": app.name,
        "description": None,
        "external_url": f"{call.site_url}/apps/{app.slug}",
        "html_url": f"{call.site_url}/apps/{app.slug}",
        "created_at": iso(app.created_at),
        "updated_at": iso(app.created_at),
        "permissions": dict(app.permissions),
        "events": [],
    }


def installation_object(call: Call, app: App, installation: Installation) -> dict[str, object]:
    """Return an installation as its App sees it."""
    organization = call.context.state.organization_by_id(installation.organization_id)
    api, site = call.base_url, call.site_url
    return {
        "id": installation.id,
        "client_id": app.client_id,
        "account": owner_object(call, organization),
        "repository_selection": selection_of(installation.repository_ids),
        "access_tokens_url": f"{api}/app/installations/{installation.id}/access_tokens",
        "repositories_url": f"{api}/installation/repositories",
        "html_url": f"{site}/organizations/{organization.login}/settings/installations/{installation.id}",
        "app_id": app.id,
        "app_slug": app.slug,
        "target_id": organization.id,
        "target_type": "Organization",
        "permissions": dict(installation.permissions),
        "events": [],
        "created_at": iso(installation.created_at),
        "updated_at": iso(installation.suspended_at or installation.created_at),
        "single_file_name": None,
        "has_multiple_single_files": False,
        "single_file_paths": [],
        "suspended_by": None if installation.suspended_at is None else user_object(call, app.user),
        "suspended_at": None if installation.suspended_at is None else iso(installation.suspended_at),
    }


def selection_of(repository_ids: frozenset[int] | None) -> str:
    """Return `all` or `selected`."""
    return "all" if repository_ids is None else "selected"
