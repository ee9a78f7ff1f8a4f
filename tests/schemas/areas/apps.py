"""Apps, their installations and tokens, and the user whom a token acts for."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.schemas.areas.repositories import WholeRepository
from tests.schemas.words import Count, Id, Shape, Text, Timestamp, Url


class App(Shape, kw_only=True):
    """An App as it sees itself."""

    id: Id
    client_id: Text
    slug: Text
    node_id: Text
    owner: dict[str, Any]
    name: Text
    description: str | None
    external_url: Url
    html_url: Url
    created_at: Timestamp
    updated_at: Timestamp
    permissions: dict[str, str]
    events: list[str]
    installations_count: Count


class Installation(Shape, kw_only=True):
    """An installation as its App sees it."""

    id: Id
    client_id: Text
    account: dict[str, Any]
    repository_selection: Text
    access_tokens_url: Url
    repositories_url: Url
    html_url: Url
    app_id: Id
    app_slug: Text
    target_id: Id
    target_type: Text
    permissions: dict[str, str]
    events: list[str]
    created_at: Timestamp
    updated_at: Timestamp
    single_file_name: str | None
    has_multiple_single_files: bool
    single_file_paths: list[str]
    suspended_by: dict[str, Any] | None
    suspended_at: Timestamp | None


class AccessToken(Shape, kw_only=True):
    """A token of an installation; `repositories` where it was asked for some."""

    token: Text
    expires_at: Timestamp
    permissions: dict[str, str]
    repository_selection: Text
    repositories: list[WholeRepository] | msgspec.UnsetType = msgspec.UNSET


class User(Shape, kw_only=True):
    """The user whom a token acts for."""

    login: Text
    id: Id
    node_id: Text
    avatar_url: Url
    gravatar_id: str
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
    type: Text
    site_admin: bool
    name: Text
    company: str | None
    blog: str
    location: str | None
    email: Text
    hireable: bool | None
    bio: str | None
    twitter_username: str | None
    public_repos: Count
    public_gists: Count
    followers: Count
    following: Count
    created_at: Timestamp
    updated_at: Timestamp


class Authorization(Shape, kw_only=True):
    """What an App may know of a token of its own."""

    id: Id
    url: Url
    app: dict[str, str]
    token: Text
    hashed_token: Text
    token_last_eight: Text
    note: str | None
    note_url: str | None
    created_at: Timestamp
    updated_at: Timestamp
    scopes: list[str] | None
    fingerprint: str | None
    expires_at: Timestamp | None
    user: dict[str, Any]
