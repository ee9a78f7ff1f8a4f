"""Makes the credentials that a manifest names under `credentials`."""

from collections.abc import Mapping
from pathlib import Path

from bulk.clock import Clock
from bulk.manifest.credential_specs import AppSpec, LoginSpec, PoolSpec, TokenSpec, spec_of
from bulk.platform.auth.app_credential import AnyCredential, AppCredential, PoolCredential
from bulk.platform.auth.credentials import Credential
from bulk.platform.auth.logins import LoginCredential


def made(
    name: str, source: str, base_url: str, environ: Mapping[str, str], folder: Path, clock: Clock
) -> AnyCredential:
    """Return the credential that `source` describes, for the platform at `base_url`; nothing is read yet."""
    app = spec_of(source, AppSpec)
    if app is not None:
        return AppCredential(name, app, environ, folder, clock=clock)
    token = spec_of(source, TokenSpec)
    if token is not None:
        return Credential(name, token.source, environ, folder, clock=clock, identity=f"named:{token.identity}")
    pool = spec_of(source, PoolSpec)
    if pool is not None:
        return PoolCredential(name, pool.members)
    login = spec_of(source, LoginSpec)
    if login is not None:
        return LoginCredential(name, login.name, base_url, environ, folder, clock=clock)
    return Credential(name, source, environ, folder, clock=clock)
