"""An organization as a JSON object, and the opaque ids of things."""

from __future__ import annotations

import base64

from bulk.sandbox.http.call import Call
from bulk.sandbox.store.records import Organization


def node_id(kind: str, number: int) -> str:
    """Return the opaque id of a thing, the same for ever."""
    return base64.b64encode(f"{kind}:{number}".encode()).decode()


def organization_object(call: Call, organization: Organization) -> dict[str, object]:
    """Return an organization, with the specification's fields."""
    url = f"{call.base_url}/orgs/{organization.login}"
    return {
        "login": organization.login,
        "id": organization.id,
        "node_id": node_id("Organization", organization.id),
        "url": url,
        "repos_url": f"{url}/repos",
        "events_url": f"{url}/events",
        "hooks_url": f"{url}/hooks",
        "issues_url": f"{url}/issues",
        "members_url": f"{url}/members{{/member}}",
        "public_members_url": f"{url}/public_members{{/member}}",
        "avatar_url": f"{call.site_url}/avatars/organizations/{organization.id}",
        "description": organization.description,
    }
