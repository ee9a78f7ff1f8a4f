"""The records of the state that every request touches. Frozen: a change makes a new record in `State`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class TokenKind(StrEnum):
    """The kinds of tokens that the specification tells apart."""

    CLASSIC = "classic"
    FINE_GRAINED = "fine-grained"
    APP_USER = "app-user"
    INSTALLATION = "installation"
    OAUTH = "oauth"
    WORKFLOW = "workflow"


@dataclass(frozen=True, slots=True)
class User:
    """A person.

    Attributes:
        id, login, name, email: as in answers and commits.
        site_admin: administers the installation.
        enterprise_owner: owns the enterprise and all its organizations.
    """

    id: int
    login: str
    name: str
    email: str
    site_admin: bool
    enterprise_owner: bool


@dataclass(frozen=True, slots=True)
class Token:
    """A credential, without its text.

    Attributes:
        id: budgets are kept for each.
        kind: what sort of token it is.
        user: whose it is; for an installation token, who installed it.
        organization_id: the one organization that an installation token reaches; None: all that the user reaches.
        scopes: of a classic or OAuth token.
        permissions: name to `read` or `write`, of every other kind.
        ends_at: from when on it is refused (UTC epoch seconds); None: never.
    """

    id: int
    kind: TokenKind
    user: User
    organization_id: int | None
    scopes: frozenset[str]
    permissions: Mapping[str, str]
    ends_at: float | None


@dataclass(frozen=True, slots=True)
class Organization:
    """An organization. `login` is its name in URLs and may change, `id` never does."""

    id: int
    enterprise_id: int
    login: str
    name: str
    description: str
    created_at: float


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository. It names its organization by id, so that it follows when that is renamed."""

    id: int
    organization_id: int
    name: str
    private: bool
    description: str
    default_branch: str
    created_at: float
