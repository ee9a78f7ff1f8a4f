"""The keys of a seed file, and how it is read: as YAML, or as JSON where its name ends in `.json`.

Any of these keys, all optional; an unknown one is an error:

    standard: true            # false: begin without the standard data
    users:         [{login, name, email, password, site_admin, enterprise_owner, billing_manager}]
    organizations: [{login, name, description, owners: [login], security_managers: [login], members: [login]}]
    repositories:  [{organization, name, private, description, default_branch, advanced_security, files: {path: text}}]
                   # or a generated fleet, in the list or alone: {organization, count, readme_bytes, prefix}
    new_organizations: {repositories: [{name, private, description, default_branch, files: {path: text}}]}
                   # what every organization gets that is created from now on
    teams:         [{name, description, organizations: [login]}]
    license:       {seats, advanced_security_seats, kind, expire_at, standalone}
    committers:    [{repository: organization/name, users: [login], last_pushed_at}]
    notifications: [{user, repository: organization/name, count, reason, title, type, unread, updated_at}]
    tokens:        [{token, user, kind, scopes, permissions: {name: read | write}, organization, seconds, app,
                     needs_sso: [organization]}]
    apps:          [{slug, client_id, name, client_secret, public_keys: [PEM or file], permissions,
                     token_seconds, interval,
                     installations: [{organization, repositories: [name], permissions, suspended}]}]
                   # or many generated organizations: installations: [{prefix, count, each, readme_bytes}]

Pure but for the reading of the file; `seeds.py` applies the keys to the state.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import orjson

from bulk.sandbox.files import read_regular
from bulk.sandbox.seeding.app_seeds import AppSeed
from bulk.sandbox.seeding.notification_seeds import NotificationSeed
from bulk.sandbox.settings import SettingError
from bulk.sandbox.store.records import TokenKind

Login = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9](?:[A-Za-z0-9]|-(?=[A-Za-z0-9])){0,38}$")]
Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9._-]{1,100}$")]
FullName = Annotated[str, msgspec.Meta(pattern=r"^[^/]+/[^/]+$")]
Branch = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_]+(?:[./-][A-Za-z0-9_]+)*$")]
Files = dict[
    Annotated[
        str,
        msgspec.Meta(pattern=r"^(?:(?!\.{1,2}(?:/|$)|\.[Gg][Ii][Tt](?:/|$))[^/\x00]+(?:/(?!$)|$))+$"),
    ],
    str,
]
Seats = Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]


class UserSeed(msgspec.Struct, forbid_unknown_fields=True):
    """A user of a seed file."""

    login: Login
    name: str | None = None
    email: str | None = None
    password: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    site_admin: bool = False
    enterprise_owner: bool = False
    billing_manager: bool = False


class OrganizationSeed(msgspec.Struct, forbid_unknown_fields=True):
    """An organization of a seed file."""

    login: Login
    name: str | None = None
    description: str = ""
    owners: list[str] = []
    security_managers: list[str] = []
    members: list[str] = []


class RepositorySeed(msgspec.Struct, forbid_unknown_fields=True):
    """A repository of a seed file (`name`), or a fleet of generated ones (`count`)."""

    organization: Login
    name: Name | None = None
    private: bool = False
    description: str = ""
    default_branch: Branch = "main"
    advanced_security: bool = False
    files: Files = {}
    count: Annotated[int, msgspec.Meta(ge=1, le=100_000_000)] | None = None
    readme_bytes: Annotated[int, msgspec.Meta(ge=0, le=100_000_000)] = 3000
    prefix: Name = "repo-"


class NewRepositorySeed(msgspec.Struct, forbid_unknown_fields=True):
    """A repository that every new organization gets. Without files it is empty: no branch, no commit."""

    name: Name
    private: bool = False
    description: str = ""
    default_branch: Branch = "main"
    files: Files = {}


class NewOrganizationsSeed(msgspec.Struct, forbid_unknown_fields=True):
    """The contents of organizations that are created later."""

    repositories: list[NewRepositorySeed] = []


class TeamSeed(msgspec.Struct, forbid_unknown_fields=True):
    """An enterprise team of a seed file. Its slug is made from its name."""

    name: Annotated[str, msgspec.Meta(pattern=r"[A-Za-z0-9]", max_length=100)]
    description: str = ""
    organizations: list[str] = []


class LicenseSeed(msgspec.Struct, forbid_unknown_fields=True):
    """The license. Fields that are not given stay as they are."""

    seats: Seats | None = None
    advanced_security_seats: Seats | None = None
    kind: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    expire_at: datetime | None = None
    standalone: bool | None = None


class CommittersSeed(msgspec.Struct, forbid_unknown_fields=True):
    """The committers of a repository; they replace the earlier ones."""

    repository: FullName
    users: list[str]
    last_pushed_at: datetime | None = None


class TokenSeed(msgspec.Struct, forbid_unknown_fields=True):
    """A token of a seed file."""

    token: Annotated[str, msgspec.Meta(min_length=1)]
    user: str
    kind: TokenKind = TokenKind.CLASSIC
    scopes: list[str] | None = None
    permissions: dict[str, Literal["read", "write"]] = {}
    organization: str | None = None
    seconds: Annotated[float, msgspec.Meta(gt=0)] | None = None
    app: str | None = None
    needs_sso: list[str] = []


class SeedFile(msgspec.Struct, forbid_unknown_fields=True):
    """A whole seed file."""

    standard: bool = True
    users: list[UserSeed] = []
    organizations: list[OrganizationSeed] = []
    repositories: list[RepositorySeed] | RepositorySeed = []
    new_organizations: NewOrganizationsSeed | None = None
    teams: list[TeamSeed] = []
    license: LicenseSeed | None = None
    committers: list[CommittersSeed] = []
    notifications: list[NotificationSeed] = []
    tokens: list[TokenSeed] = []
    apps: list[AppSeed] = []


def read(path: Path) -> tuple[bytes, SeedFile]:
    """Return the bytes of a seed file, and its decoded contents.

    Raises:
        SettingError: the file can't be read, or has a wrong value; the message names the file and the place.
    """
    try:
        content = read_regular(path)
    except OSError as error:
        raise SettingError(f"--seed-data {path}: {error.strerror}: name a YAML or JSON file") from None
    try:
        data = orjson.loads(content.removeprefix(BOM_UTF8)) if path.suffix == ".json" else _from_yaml(content)
        seed = msgspec.convert({} if data is None else data, SeedFile)
    except UnicodeDecodeError as error:
        raise SettingError(
            f"--seed-data {path}: is not UTF-8, at byte {error.start + 1}: name a YAML or JSON file"
        ) from None
    except (ValueError, RecursionError) as error:  # errors of decoding, orjson and msgspec are ValueErrors
        reason = "nested too deep" if isinstance(error, RecursionError) else " ".join(str(error).split())
        raise SettingError(f"--seed-data {path}: {reason}") from None
    flaw = next(_flaws(seed), None)
    if flaw is not None:
        raise SettingError(f"--seed-data {path}: {flaw}")
    return content, seed


def _from_yaml(content: bytes) -> object:
    # imported late, because most sandboxes start without a seed in YAML
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        return YAML(typ="safe", pure=True).load(content.decode("utf-8-sig"))
    except YAMLError as error:
        raise ValueError(str(error)) from None


def _flaws(seed: SeedFile) -> Iterator[str]:
    repositories = seed.repositories if isinstance(seed.repositories, list) else [seed.repositories]
    for place, repository in enumerate(repositories):
        if (repository.name is None) == (repository.count is None):
            yield f"repositories[{place}]: give either name (one repository) or count (a generated fleet)"
        elif repository.count is not None and (repository.files or repository.advanced_security):
            yield f"repositories[{place}]: files and advanced_security go with name, not with count"
        yield from _flaws_of_files(f"repositories[{place}].files", repository.files)
    for place, app in enumerate(seed.apps):
        for number, installation in enumerate(app.installations):
            if (installation.organization is None) == (installation.prefix is None):
                yield f"apps[{place}].installations[{number}]: give either organization, or prefix and count"
    names: set[str] = set()
    for place, new in enumerate(seed.new_organizations.repositories if seed.new_organizations else ()):
        where = f"new_organizations.repositories[{place}]"
        if new.name.casefold() in names:
            yield f"{where}: the name {new.name!r} stands there twice"
        names.add(new.name.casefold())
        yield from _flaws_of_files(f"{where}.files", new.files)


def _flaws_of_files(where: str, files: Mapping[str, str]) -> Iterator[str]:
    for path in files:
        folders = path.split("/")[:-1]
        for depth in range(1, len(folders) + 1):
            folder = "/".join(folders[:depth])
            if folder in files:
                yield f"{where}: {folder!r} is a file, and {path!r} needs it as a folder"
