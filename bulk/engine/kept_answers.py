"""The stores of kept answers of a run: whose answers each holds.

Answers that outlive tokens are kept by identity, and are never shared across identities: permissions change bodies. An
App's is the App, with the installation and its permissions in the key of each answer. A token's is what the manifest
says (`identity`), or with the vendor `github` the user, the kind of token and its scopes, as `GET /user` tells once a
run; of a token that tells no scopes nothing is known, and its answers are its own. Source: open-points.md (304).
"""

from collections.abc import Mapping
from pathlib import Path

from bulk.govern.accounts import Account
from bulk.govern.governor import NO_TOKEN, Governor
from bulk.manifest.manifest import Platform
from bulk.model import Failure, Request
from bulk.platform.auth.app_credential import AppCredential
from bulk.platform.auth.credentials import Credential
from bulk.platform.cache.validators import ValidatorStore
from bulk.platform.transport import Transport

ASK_USER = Request(method="GET", path="/user", accept=frozenset((200, 401, 403, 404)), is_fresh=True)
SCOPES = "x-oauth-scopes"


async def open_stores(
    directory: Path,
    platform: Platform,
    credentials: Mapping[str, Credential | AppCredential],
    governor: Governor,
    transport: Transport,
) -> dict[str, ValidatorStore]:
    """Return the store of each account by its name; accounts of one App share theirs."""
    stores: dict[str, ValidatorStore] = {}
    found: dict[str, ValidatorStore] = {}
    for name, account in governor.accounts.items():
        owner = name if name in credentials else name.partition("@")[0]
        if owner not in stores:
            credential = credentials[owner]
            if isinstance(credential, AppCredential):
                identity = f"app:{credential.spec.client_id}"
            else:
                identity = account.identity = credential.identity or await _told(platform, account, transport)
            token = NO_TOKEN if account.is_minted else account.token
            stores[owner] = ValidatorStore(directory, platform, token, identity=identity)
        found[name] = stores[owner]
    return found


async def _told(platform: Platform, account: Account, transport: Transport) -> str:
    """Return whose token it is, as the platform tells; empty where it does not."""
    if platform.vendor != "github":
        return ""
    answer = await transport.send(ASK_USER, account.token, None)
    if isinstance(answer, Failure) or answer.status != 200 or SCOPES not in answer.headers:
        return ""
    number = answer.body.get("id") if isinstance(answer.body, dict) else None
    if not isinstance(number, int):
        return ""
    kind = account.token.reveal()[:4] if account.token.reveal()[3:4] == "_" else ""
    scopes = sorted(scope.strip() for scope in answer.headers[SCOPES].split(","))
    return f"user:{number} {kind} {' '.join(scopes)}"
