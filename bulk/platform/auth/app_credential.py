"""A credential that is an App: it has no token of its own, only what makes those of its installations."""

from collections.abc import Mapping
from pathlib import Path

from bulk.clock import Clock
from bulk.manifest.credential_specs import AppSpec
from bulk.platform.auth.app_keys import AppSigner
from bulk.platform.auth.credentials import Credential


class AppCredential:
    """An App of a manifest. `spec` is what that says, `signer` signs its JWTs."""

    def __init__(
        self, name: str, spec: AppSpec, environ: Mapping[str, str], base_dir: Path, *, clock: Clock | None = None
    ) -> None:
        self.name, self.spec = name, spec
        self.signer = AppSigner(name, spec, environ, base_dir, clock=clock)


def apps_of(credentials: Mapping[str, Credential | AppCredential]) -> dict[str, tuple[AppSpec, AppSigner]]:
    """Return those of a manifest's credentials that are Apps, by name."""
    return {name: (each.spec, each.signer) for name, each in credentials.items() if isinstance(each, AppCredential)}
