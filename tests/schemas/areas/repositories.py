"""A repository as part of an answer: of a notification, of the list of a configuration."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from tests.schemas.words import Id, Shape, Text, Timestamp, Url


class Owner(Shape, kw_only=True):
    """Who owns it."""

    login: Text
    id: Id
    node_id: Text
    avatar_url: Url
    gravatar_id: str | None
    url: Url
    html_url: Url
    followers_url: Url
    following_url: Url
    gists_url: Url
    starred_url: Url
    subscriptions_url: Url
    organizations_url: Url
    repos_url: Url
    events_url: Url
    received_events_url: Url
    type: Literal["User", "Organization"]
    site_admin: bool


class Repository(Shape, kw_only=True):
    """What it is, and where everything about it would be."""

    id: Id
    node_id: Text
    name: Text
    full_name: Text
    owner: Owner
    private: bool
    html_url: Url
    description: str | None
    fork: bool
    url: Url
    archive_url: Url
    assignees_url: Url
    blobs_url: Url
    branches_url: Url
    collaborators_url: Url
    comments_url: Url
    commits_url: Url
    compare_url: Url
    contents_url: Url
    contributors_url: Url
    deployments_url: Url
    downloads_url: Url
    events_url: Url
    forks_url: Url
    git_commits_url: Url
    git_refs_url: Url
    git_tags_url: Url
    hooks_url: Url
    issue_comment_url: Url
    issue_events_url: Url
    issues_url: Url
    keys_url: Url
    labels_url: Url
    languages_url: Url
    merges_url: Url
    milestones_url: Url
    notifications_url: Url
    pulls_url: Url
    releases_url: Url
    stargazers_url: Url
    statuses_url: Url
    subscribers_url: Url
    subscription_url: Url
    tags_url: Url
    teams_url: Url
    trees_url: Url
    git_url: Text | UnsetType = UNSET
    ssh_url: Text | UnsetType = UNSET


class WholeRepository(Repository, kw_only=True):
    """The same with how it is fetched and what it has, as a token that was asked for with repositories names them."""

    created_at: Timestamp
    updated_at: Timestamp
    pushed_at: Timestamp
    clone_url: Url
    git_url: Text
    ssh_url: Text
    svn_url: Url
    mirror_url: Url | None
    homepage: Text | None
    language: Text | None
    license: None
    size: int
    stargazers_count: int
    watchers_count: int
    watchers: int
    forks_count: int
    forks: int
    open_issues_count: int
    open_issues: int
    has_issues: bool
    has_projects: bool
    has_downloads: bool
    has_wiki: bool
    has_pages: bool
    has_discussions: bool
    archived: bool
    disabled: bool
    allow_forking: bool
    is_template: bool
    web_commit_signoff_required: bool
    topics: list[Text]
    visibility: Literal["public", "private", "internal"]
    default_branch: Text
