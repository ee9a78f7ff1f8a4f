"""The payloads of events for webhooks, one for each kind of event.

The specification shows no payload: these have the fields of the public ones that say what happened, where, and who did
it. URLs begin with the address that the caller uses for the platform.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from bulk.sandbox.areas.shared.organization_objects import node_id, organization_object
from bulk.sandbox.areas.shared.repository_objects import account_places, event_repository
from bulk.sandbox.areas.webhooks.deliveries import Event
from bulk.sandbox.clock import iso

if TYPE_CHECKING:
    from bulk.sandbox.git.revision import CommitRecord
    from bulk.sandbox.http.call import Call
    from bulk.sandbox.store.records import Organization, Repository, User

NO_COMMIT: Final = "0" * 40
ZEN: Final = "Rehearse before you perform."


def ping(call: Call, organization: Organization, hook_id: int, hook: dict[str, object]) -> Event:
    """Return the first event of a webhook. `hook` is the webhook as answers show it."""
    payload = {"zen": ZEN, "hook_id": hook_id, "hook": hook, **_where(call, organization)}
    return Event("ping", payload)


def renamed(call: Call, organization: Organization, former: str) -> Event:
    """Return the event that an organization, as it is now, was called `former` before."""
    payload = {
        "action": "renamed",
        "changes": {"login": {"from": former}},
        **_where(call, organization),
    }
    return Event("organization", payload)


def push(call: Call, repository: Repository, branch: str, commit: CommitRecord, path: str, change: str) -> Event:
    """Return the event that one commit arrived on a branch.

    Args:
        call: the request that made the commit.
        repository: the repository of the branch.
        branch: the name of the branch.
        commit: the new commit.
        path: the one file that the commit changes.
        change: `added`, `modified` or `removed`.
    """
    state = call.context.state
    owner = state.organization_by_id(repository.organization_id)
    full_name = state.full_name(repository)
    site = f"{call.site_url}/{full_name}"
    before = commit.parents[0] if commit.parents else NO_COMMIT
    shown = _commit(site, commit, path, change)
    return Event(
        "push",
        {
            "ref": f"refs/heads/{branch}",
            "before": before,
            "after": commit.sha,
            "created": not commit.parents,
            "deleted": False,
            "forced": False,
            "base_ref": None,
            "compare": f"{site}/compare/{before[:12]}...{commit.sha[:12]}",
            "commits": [shown],
            "head_commit": shown,
            "repository": event_repository(call, owner, repository),
            "pusher": {"name": call.caller.login, "email": call.caller.email},
            **_where(call, owner),
        },
        repository.id,
    )


def user_object(call: Call, user: User) -> dict[str, object]:
    """Return a user with the fields that events show."""
    return {
        "login": user.login,
        "id": user.id,
        "node_id": node_id("User", user.id),
        "avatar_url": f"{call.site_url}/avatars/users/{user.id}",
        "gravatar_id": "",
        **account_places(call, user.login),
        "type": "User",
        "site_admin": user.site_admin,
    }


def _where(call: Call, organization: Organization) -> dict[str, Any]:
    return {"organization": organization_object(call, organization), "sender": user_object(call, call.caller)}


def _commit(site: str, commit: CommitRecord, path: str, change: str) -> dict[str, object]:
    files: dict[str, list[str]] = {"added": [], "removed": [], "modified": []}
    files[change].append(path)
    return {
        "id": commit.sha,
        "tree_id": commit.tree,
        "distinct": True,
        "message": commit.message,
        "timestamp": iso(commit.committer.at),
        "url": f"{site}/commit/{commit.sha}",
        "author": {"name": commit.author.name, "email": commit.author.email},
        "committer": {"name": commit.committer.name, "email": commit.committer.email},
        **files,
    }
