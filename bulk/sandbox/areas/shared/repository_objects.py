"""A repository as a JSON object: its names, its owner, and the URLs of everything about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from bulk.sandbox.areas.shared.organization_objects import node_id
from bulk.sandbox.clock import iso

if TYPE_CHECKING:
    from bulk.sandbox.http.call import Call
    from bulk.sandbox.store.records import Organization, Repository

_PLACES: Final[dict[str, str]] = {
    "archive_url": "/{archive_format}{/ref}",
    "assignees_url": "/assignees{/user}",
    "blobs_url": "/git/blobs{/sha}",
    "branches_url": "/branches{/branch}",
    "collaborators_url": "/collaborators{/collaborator}",
    "comments_url": "/comments{/number}",
    "commits_url": "/commits{/sha}",
    "compare_url": "/compare/{base}...{head}",
    "contents_url": "/contents/{+path}",
    "contributors_url": "/contributors",
    "deployments_url": "/deployments",
    "downloads_url": "/downloads",
    "events_url": "/events",
    "forks_url": "/forks",
    "git_commits_url": "/git/commits{/sha}",
    "git_refs_url": "/git/refs{/sha}",
    "git_tags_url": "/git/tags{/sha}",
    "hooks_url": "/hooks",
    "issue_comment_url": "/issues/comments{/number}",
    "issue_events_url": "/issues/events{/number}",
    "issues_url": "/issues{/number}",
    "keys_url": "/keys{/key_id}",
    "labels_url": "/labels{/name}",
    "languages_url": "/languages",
    "merges_url": "/merges",
    "milestones_url": "/milestones{/number}",
    "notifications_url": "/notifications{?since,all,participating}",
    "pulls_url": "/pulls{/number}",
    "releases_url": "/releases{/id}",
    "stargazers_url": "/stargazers",
    "statuses_url": "/statuses/{sha}",
    "subscribers_url": "/subscribers",
    "subscription_url": "/subscription",
    "tags_url": "/tags",
    "teams_url": "/teams",
    "trees_url": "/git/trees{/sha}",
}
_ACCOUNT_PLACES: Final[dict[str, str]] = {
    "followers_url": "/followers",
    "following_url": "/following{/other_user}",
    "gists_url": "/gists{/gist_id}",
    "starred_url": "/starred{/owner}{/repo}",
    "subscriptions_url": "/subscriptions",
    "organizations_url": "/orgs",
    "repos_url": "/repos",
    "events_url": "/events{/privacy}",
    "received_events_url": "/received_events",
}


def repository_object(call: Call, owner: Organization, repository: Repository) -> dict[str, object]:
    """Return a repository, with the fields that the specification lists for the one of a notification."""
    full_name = f"{owner.login}/{repository.name}"
    url = f"{call.base_url}/repos/{full_name}"
    return {
        "id": repository.id,
        "node_id": node_id("Repository", repository.id),
        "name": repository.name,
        "full_name": full_name,
        "owner": owner_object(call, owner),
        "private": repository.private,
        "html_url": f"{call.site_url}/{full_name}",
        "description": repository.description or None,
        "fork": False,
        "url": url,
        **{field: url + place for field, place in _PLACES.items()},
    }


def event_repository(call: Call, owner: Organization, repository: Repository) -> dict[str, object]:
    """Return a repository as it stands in the event of a push."""
    whole = whole_repository(call, owner, repository)
    return {**whole, "updated_at": iso(call.now), "pushed_at": iso(call.now), "organization": owner.login}


def whole_repository(call: Call, owner: Organization, repository: Repository) -> dict[str, object]:
    """Return a repository with the URLs to clone it, and with its features."""
    full_name = f"{owner.login}/{repository.name}"
    host = urlsplit(call.site_url)
    nothing = ("stargazers_count", "watchers_count", "watchers", "forks_count", "forks", "open_issues_count")
    return {
        **repository_object(call, owner, repository),
        "created_at": iso(repository.created_at),
        "updated_at": iso(repository.created_at),
        "pushed_at": iso(repository.created_at),
        "clone_url": f"{call.site_url}/{full_name}.git",
        "git_url": f"git://{host.netloc}/{full_name}.git",
        "ssh_url": f"git@{host.hostname}:{full_name}.git",
        "svn_url": f"{call.site_url}/{full_name}",
        "mirror_url": None,
        "homepage": None,
        "language": None,
        "license": None,
        "size": 0,
        **dict.fromkeys(nothing, 0),
        "open_issues": 0,
        "has_issues": True,
        "has_projects": False,
        "has_downloads": False,
        "has_wiki": False,
        "has_pages": False,
        "has_discussions": False,
        "archived": False,
        "disabled": False,
        "allow_forking": True,
        "is_template": False,
        "web_commit_signoff_required": False,
        "topics": [],
        "visibility": "private" if repository.private else "public",
        "default_branch": repository.default_branch,
    }


def owner_object(call: Call, owner: Organization) -> dict[str, object]:
    """Return an organization as the owner of a repository."""
    return {
        "login": owner.login,
        "id": owner.id,
        "node_id": node_id("Organization", owner.id),
        "avatar_url": f"{call.site_url}/avatars/organizations/{owner.id}",
        "gravatar_id": "",
        **account_places(call, owner.login),
        "type": "Organization",
        "site_admin": False,
    }


def account_places(call: Call, login: str) -> dict[str, str]:
    """Return the URLs of everything about a user or organization."""
    url = f"{call.base_url}/users/{login}"
    own = {"url": url, "html_url": f"{call.site_url}/{login}"}
    return own | {field: url + place for field, place in _ACCOUNT_PLACES.items()}
