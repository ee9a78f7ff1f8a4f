"""The credentials of a manifest. Two kinds have no token of their own: an App, which mints tokens of its installations,
and a pool of others."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from bulk.clock import Clock
from bulk.manifest.credential_specs import AppSpec, LoginSpec, PoolSpec, TokenSpec, spec_of
from bulk.manifest.manifest import Manifest
from bulk.platform.auth.app_keys import AppSigner
from bulk.platform.auth.credentials import Credential
from bulk.platform.auth.logins import LoginCredential


class AppCredential:
    """An App of a manifest. `spec` is its description in the manifest, `signer` signs its JWTs."""

    def __init__(
        self, name: str, spec: AppSpec, environ: Mapping[str, str], base_dir: Path, *, clock: Clock | None = None
    ) -> None:
        self.name, self.spec = name, spec
        self.signer = AppSigner(name, spec, environ, base_dir, clock=clock)


class PoolCredential:
    """A pool of a manifest: `members` are names of other credentials, in the order in which they are used."""

    def __init__(self, name: str, members: tuple[str, ...]) -> None:
        self.name, self.members = name, members


AnyCredential: TypeAlias = Credential | AppCredential | PoolCredential


def apps_of(credentials: Mapping[str, AnyCredential]) -> dict[str, tuple[AppSpec, AppSigner]]:
    """Return the description and the signer of each App among a manifest's credentials, by name."""
    return {name: (each.spec, each.signer) for name, each in credentials.items() if isinstance(each, AppCredential)}


def credentials_of(manifest: Manifest, environ: Mapping[str, str], clock: Clock) -> dict[str, AnyCredential]:
    """Return the credentials of a manifest by their names; no token is read yet."""
    folder = manifest.path.resolve().parent

    def made(name: str, source: str) -> AnyCredential:
        if (app := spec_of(source, AppSpec)) is not None:
            return AppCredential(name, app, environ, folder, clock=clock)
        if (token := spec_of(source, TokenSpec)) is not None:
            return Credential(name, token.source, environ, folder, clock=clock, identity=f"named:{token.identity}")
        if (pool := spec_of(source, PoolSpec)) is not None:
            return PoolCredential(name, pool.members)
        if (login := spec_of(source, LoginSpec)) is not None:
            return LoginCredential(name, login.name, manifest.platform.base_url, environ, folder, clock=clock)
        return Credential(name, source, environ, folder, clock=clock)

    return {name: made(name, source) for name, source in manifest.platform.credentials.items()}
