"""Organizations, their rename, and what depends on both."""

from __future__ import annotations

from tests.schemas.words import Id, MemberUrl, Shape, Text, Url


class Organization(Shape, kw_only=True):
    """As team assignments and the administration answer."""

    login: Text
    id: Id
    node_id: Text
    url: Url
    repos_url: Url
    events_url: Url
    hooks_url: Url
    issues_url: Url
    members_url: MemberUrl
    public_members_url: MemberUrl
    avatar_url: Url
    description: str


class Renaming(Shape, kw_only=True):
    """A rename that was accepted."""

    message: Text
    url: Url
