"""Apps of a seed file, and the organizations that they are installed in."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from bulk.sandbox.settings import SettingError
from bulk.sandbox.store.apps import Apps, installed
from bulk.sandbox.store.records import App, Installation, Organization, User
from bulk.sandbox.store.state import State, digest_of

Permissions = dict[str, Literal["read", "write", "admin"]]
KEY_BITS = 2048
NEEDS_EXTRA = "apps: their keys need cryptography: pip install 'bulkops[app]'"
FIRST_APP, FIRST_INSTALLATION = 5001, 70001
_DEFAULT: Permissions = {
    "metadata": "read",
    "contents": "write",
    "organization_administration": "write",
    "organization_hooks": "write",
}


class InstallationSeed(msgspec.Struct, forbid_unknown_fields=True):
    """Where an App is installed: in one organization, or (`prefix`, `count`) in many that are generated."""

    organization: str | None = None
    repositories: list[str] | None = None
    permissions: Permissions | None = None
    suspended: bool = False
    prefix: str | None = None
    count: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1
    each: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 10
    readme_bytes: Annotated[int, msgspec.Meta(ge=0, le=100_000_000)] = 3000


class AppSeed(msgspec.Struct, forbid_unknown_fields=True):
    """An App of a seed file."""

    slug: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9](?:[a-z0-9-]{0,37}[a-z0-9])?$")]
    client_id: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9._-]{1,100}$")]
    name: str | None = None
    client_secret: str | None = None
    public_keys: list[str] = []
    permissions: Permissions = msgspec.field(default_factory=_DEFAULT.copy)
    token_seconds: Annotated[float, msgspec.Meta(gt=0)] = 28_800.0
    interval: Annotated[float, msgspec.Meta(gt=0)] = 5.0
    installations: list[InstallationSeed] = []


class AppPlanter:
    """Puts Apps into a state.

    Args:
        folder: the folder to which names of key files are relative.
        directory: the directory of the state, where the private key of an App without public keys is made.
    """

    def __init__(self, state: State, apps: Apps, folder: Path, directory: Path, now: float) -> None:
        self._state, self._apps, self._folder, self._directory, self._now = state, apps, folder, directory, now

    def plant(self, seed: AppSeed) -> App:
        """Add an App, without its installations (see `install`).

        Raises:
            SettingError: the library that checks the tokens of Apps is not installed.
        """
        if find_spec("cryptography") is None:
            raise SettingError(NEEDS_EXTRA)
        former = self._apps.app(seed.client_id)
        number = former.id if former else self._number("app", FIRST_APP)
        keys = tuple(key if key.startswith("-----BEGIN") else str(self._folder / key) for key in seed.public_keys)
        app = App(
            number,
            seed.client_id,
            seed.slug,
            seed.name or seed.slug,
            former.user if former else self._bot(seed.slug),
            None if seed.client_secret is None else digest_of(seed.client_secret),
            dict(seed.permissions),
            keys or (_make_key(private_key_of(self._directory, seed.slug)),),
            seed.token_seconds,
            seed.interval,
            self._now,
        )
        self._apps.add_app(app)
        return app

    def install(self, app: App, seed: InstallationSeed, organization: Organization) -> Installation:
        """Install an App in an organization.

        Raises:
            SettingError: one of the selected repositories does not exist.
        """
        ids = None
        if seed.repositories is not None:
            found = [self._state.repository(organization, name) for name in seed.repositories]
            for name, repository in zip(seed.repositories, found, strict=True):
                if repository is None:
                    raise SettingError(f"apps: there is no repository {organization.login}/{name}")
            ids = [repository.id for repository in found if repository is not None]
        former = self._apps.installation_in(app, organization)
        number = former.id if former else self._number("installation", FIRST_INSTALLATION)
        made = installed(number, app, organization, seed.permissions, ids, self._now)
        self._apps.install(made)
        if seed.suspended:
            self._apps.suspend(made, self._now)
        return made

    def _number(self, kind: str, first: int) -> int:
        return first - 1 + self._state.allocate(kind)

    def _bot(self, slug: str) -> User:
        number = self._state.allocate("user")
        login = f"{slug}[bot]"
        user = User(number, login, slug, f"{number}+{login}@acme.example", site_admin=False, enterprise_owner=False)
        self._state.add_user(user)
        return user


def private_key_of(directory: Path, slug: str) -> Path:
    """Return the path of the private key that a sandbox has made for an App."""
    return directory / f"{slug}.private-key.pem"


def _make_key(path: Path) -> str:
    """Return the public key (PEM) that belongs to a private key, which is made at `path` (0600)."""
    # imported late, because most sandboxes have no App
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    key = rsa.generate_private_key(public_exponent=65537, key_size=KEY_BITS)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(pem)
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
