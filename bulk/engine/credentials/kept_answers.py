"""The stores of kept answers of a run, and the identity whose answers each store holds.

Answers that outlive tokens are kept by identity, and are never shared across identities: permissions change bodies. The
identity of an App is the App, with the installation and its permissions in the key of each answer. The identity of a
token is what the manifest says (`identity`), or with the vendor `github` the user, the kind of token and its scopes, as
`GET /user` tells once a run. If its scopes are not told, nothing is known: its answers are for this token alone.
Source: open-points.md (304).
"""

import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from bulk.clock import Clock
from bulk.engine.credentials.token_users import users_of
from bulk.govern.governor import Governor
from bulk.govern.permits.accounts import NO_TOKEN, Account
from bulk.govern.rate_limit_poller import ASK_LIMITS, take_told, told_in
from bulk.govern.unknown_payers import Told, UnknownPayer, asked_in_turn, join, parted
from bulk.manifest.manifest import Platform
from bulk.model import Failure, Reply
from bulk.platform.auth.credentials import Credential
from bulk.platform.auth.manifest_credentials import AnyCredential, AppCredential
from bulk.platform.auth.secrets import Secret
from bulk.platform.cache.validators import ValidatorStore
from bulk.platform.wire import Wire

log = logging.getLogger("bulk.engine.run")

UNKNOWN = "unknown"
"""The payer of members of a pool of whom the platform does not say who pays for them."""
SCOPES, PRIVATE = "x-oauth-scopes", "repo"
"""The header that names scopes, and the scope with which private repositories are seen."""

_OF_SCOPES, _FINE_GRAINED = ("ghp_", "gho_"), "github_pat_"
"""Prefixes of tokens that have scopes, and of fine-grained ones without; tokens of older platforms have no prefix."""


async def recognise(
    platform: Platform,
    credentials: Mapping[str, AnyCredential],
    governor: Governor,
    transport: Wire,
    *,
    is_keeping: bool,
) -> None:
    """Find out for the token of each account who pays for it and whose answers it sees.

    The platform is asked only where that matters: in a pool, where several tokens are used, or where answers are kept.
    Members of a pool of which nothing is known count as one payer until what they are told contradicts that: in doubt,
    too little is sent.
    """
    pooled = {name for members in governor.pools.values() for name in members}
    plain = [account for account in governor.accounts.values() if not account.is_minted]
    is_all = platform.vendor == "github" and (is_keeping or len(plain) > 1)
    asked = [account for account in plain if is_all or account.name in pooled]
    users = await users_of(asked, transport, governor.clock)
    payers: dict[str, list[Account]] = {}
    scopes: dict[str, frozenset[str] | None] = {}
    for account in plain:
        credential = credentials[account.name]
        assert isinstance(credential, Credential), "only those have tokens of their own"
        payer, identity, scopes[account.name] = _told(account, users.get(account.name))
        account.identity = credential.identity or (identity if platform.vendor == "github" else "")
        payer = payer or credential.identity or (UNKNOWN if account.name in pooled else "")
        if payer:
            payers.setdefault(payer, []).append(account)
    for name, members in governor.pools.items():
        _warn_of_lesser(name, {member: told for member in members if (told := scopes.get(member)) is not None})
    if governor.peers is not None:  # peers share budgets by payer
        governor.peers.know(governor.accounts.values(), payers)
        return
    unknown = payers.pop(UNKNOWN, [])
    for accounts in payers.values():
        join(accounts)
    tokens = {account.name: account.token for account in unknown}
    for names in await payers_apart(tokens, transport, governor.clock, is_quiet=False):
        group = [governor.accounts[name] for name in names]
        UnknownPayer(group, governor.unknown_payers, partial(take_told, governor))


async def payers_apart(
    tokens: Mapping[str, Secret], transport: Wire, clock: Clock, *, is_quiet: bool
) -> list[list[str]]:
    """Return the members of a pool of whom nobody says who pays for them, in groups that may have one payer each."""

    async def ask(token: Secret) -> Told:
        return told_in(await transport.send(ASK_LIMITS, token, None), clock.now())

    return parted(
        await asked_in_turn(tokens, ask) if len(tokens) > 1 else {name: [] for name in tokens}, is_quiet=is_quiet
    )


def _warn_of_lesser(pool: str, scopes: Mapping[str, frozenset[str]]) -> None:
    """Warn of members that see less than others of their pool: an answer would depend on the member that asks."""
    lesser = [member for member, held in scopes.items() if PRIVATE not in held]
    if lesser and len(lesser) < len(scopes):
        log.warning(
            "members of the pool %r do not see the same: without the scope %s, which others have, a private "
            "repository is not_found to %s",
            pool,
            PRIVATE,
            " and ".join(map(repr, lesser)),
        )


def open_stores(
    directory: Path, platform: Platform, credentials: Mapping[str, AnyCredential], governor: Governor
) -> dict[str, ValidatorStore]:
    """Return the store of each account by the account's name; accounts of one App share a store."""
    stores: dict[str, ValidatorStore] = {}
    found: dict[str, ValidatorStore] = {}
    for name, account in governor.accounts.items():
        owner = name if name in credentials else name.partition("@")[0]
        if owner not in stores:
            credential = credentials[owner]
            spec = credential.spec if isinstance(credential, AppCredential) else None
            identity = account.identity if spec is None else f"app:{spec.client_id}"
            token = NO_TOKEN if account.is_minted else account.token
            stores[owner] = ValidatorStore(directory, platform, token, identity=identity)
        found[name] = stores[owner]
    return found


def _told(account: Account, answer: Reply | Failure | None) -> tuple[str, str, frozenset[str] | None]:
    """Return (payer, identity, scopes) of a token as the platform tells; empty texts and None if it does not tell."""
    if not isinstance(answer, Reply) or answer.status != 200:
        return "", "", None
    number = answer.body.get("id") if isinstance(answer.body, dict) else None
    if not isinstance(number, int):
        return "", "", None
    told = answer.headers.get(SCOPES)
    return f"user:{number}", identity_of(account.token.reveal(), number, told), scopes_told(answer)


def scopes_told(answer: Reply) -> frozenset[str] | None:
    """Return the scopes of the token that was sent; None: the platform does not tell, or the token has none to tell."""
    told = answer.headers.get(SCOPES)
    return None if told is None else _named(told)


def _named(told: str) -> frozenset[str]:
    return frozenset(filter(None, map(str.strip, told.split(","))))


def identity_of(token: str, number: int, told: str | None) -> str:
    """Return the identity of a user's token; empty if tokens of this user that look the same may see other answers.

    Only classic and OAuth tokens name scopes, and two of them with the same scopes see the same. What fine-grained
    tokens and tokens of an App may do is not told.

    Args:
        number: number of the user. told: what the platform says of the token's scopes; None: nothing.
    """
    if told is None:
        return ""
    kind = token[:4] if token[3:4] == "_" else ""
    scopes = sorted(_named(told))
    is_known = kind in _OF_SCOPES or (scopes and not kind and not token.startswith(_FINE_GRAINED))
    return f"user:{number} {kind} {' '.join(scopes)}" if is_known else ""
