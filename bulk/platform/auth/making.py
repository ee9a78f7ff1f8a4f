"""Makes what a manifest's `credentials` name."""

from collections.abc import Mapping
from pathlib import Path

from bulk.clock import Clock
from bulk.errors import CredentialMissing
from bulk.manifest.credential_specs import AppSpec, PoolSpec, TokenSpec, kind_of, spec_of
from bulk.platform.auth.app_credential import AnyCredential, AppCredential, PoolCredential
from bulk.platform.auth.credentials import Credential


def made(name: str, source: str, environ: Mapping[str, str], folder: Path, clock: Clock) -> AnyCredential:
    """Return the credential that a source stands for; nothing is read yet.

    Raises:
        CredentialMissing: it can't be used yet.
    """
    app = spec_of(source, AppSpec)
    if app is not None:
        return AppCredential(name, app, environ, folder, clock=clock)
    token = spec_of(source, TokenSpec)
    if token is not None:
        return Credential(name, token.source, environ, folder, clock=clock, identity=f"named:{token.identity}")
    pool = spec_of(source, PoolSpec)
    if pool is not None:
        return PoolCredential(name, pool.members)
    if kind_of(source):
        raise CredentialMissing(f"credential {name!r}: a {kind_of(source)} can't be used by this version")
    return Credential(name, source, environ, folder, clock=clock)
