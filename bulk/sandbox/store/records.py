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
    APP = "app"  # a JSON web token that an App has signed
    CLIENT = "client"  # an App's client id and secret, as Basic


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
        id: its number; 0 for a credential that is not a token of the state (a JWT, a password).
        kind: the kind of the token.
        user: the user it belongs to; for an installation token, the user who installed the App.
        organization_id: the one organization that an installation token reaches; None: all that the user reaches.
        scopes: the scopes of a classic or OAuth token.
        permissions: name to `read` or `write`, for every other kind.
        ends_at: from when on it is refused (UTC epoch seconds); None: never.
        app_id: the App that it belongs to; None: it belongs to no App.
        installation_id: the installation that it belongs to; None: it is not an installation token.
        repository_ids: the repositories that it is limited to; None: it is not limited.
        is_scoped: whether it was asked for with fewer repositories or permissions than the installation has.
        usable_at: until when it is refused, because not every server knows of it yet (UTC epoch seconds).
        sso_ids: organizations that ask for single sign-on, which this token was not authorized for.
    """

    id: int
    kind: TokenKind
    user: User
    organization_id: int | None
    scopes: frozenset[str]
    permissions: Mapping[str, str]
    ends_at: float | None
    app_id: int | None = None
    installation_id: int | None = None
    repository_ids: frozenset[int] | None = None
    is_scoped: bool = False
    usable_at: float = 0.0
    sso_ids: frozenset[int] = frozenset()

    @property
    def payer(self) -> str:
        """The payer of its requests: all tokens that act for a user share his budgets."""
        match self.kind:
            case TokenKind.INSTALLATION:
                return f"installation:{self.installation_id or f'of organization {self.organization_id}'}"
            case TokenKind.APP | TokenKind.CLIENT:
                return f"app:{self.app_id}"
            case TokenKind.WORKFLOW:
                return f"workflow:{self.id}"
        return f"user:{self.user.id}"


@dataclass(frozen=True, slots=True)
class App:
    """An App.

    Attributes:
        id, client_id: either names it as the issuer of a JWT.
        user: as whom it acts in its installations (`SLUG[bot]`).
        secret_digest: SHA-256 of its client secret; None: it has none.
        permissions: the permissions that it asks for when it is installed.
        keys: public keys as PEM, or files that hold them.
        token_s, interval_s: how long a user's token lasts, and how often it may be asked for in the device flow
            (seconds).
    """

    id: int
    client_id: str
    slug: str
    name: str
    user: User
    secret_digest: bytes | None
    permissions: Mapping[str, str]
    keys: tuple[str, ...]
    token_s: float
    interval_s: float
    created_at: float


@dataclass(frozen=True, slots=True)
class Installation:
    """An App in an organization.

    Attributes:
        repository_ids: the selected repositories; None: all of them.
        suspended_at: since when it is suspended (UTC epoch seconds); None: it is not suspended.
    """

    id: int
    app_id: int
    organization_id: int
    permissions: Mapping[str, str]
    repository_ids: frozenset[int] | None
    suspended_at: float | None
    created_at: float


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
    """A repository. It names its organization by id, so that a rename of the organization does not change it."""

    id: int
    organization_id: int
    name: str
    private: bool
    description: str
    default_branch: str
    created_at: float
