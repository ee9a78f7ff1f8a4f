"""Asks what each credential of a manifest may do, until when, and whose budget pays, before anything else is sent.

What the operations need (`Operation.access`) is compared with what the platform tells of a token: its scopes, the
permissions of an installation, or whether a user administers the site. It tells nothing of fine-grained tokens.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import msgspec

from bulk.clock import Clock
from bulk.engine.credentials.kept_answers import scopes_told
from bulk.errors import CredentialRefused, RunStopped
from bulk.govern.first_contact import ASK_USER
from bulk.govern.rate_limit_poller import ASK_LIMITS
from bulk.manifest.manifest import Job, Manifest
from bulk.model import Failure, Reply, Request
from bulk.operation import Access
from bulk.platform.auth.app import App
from bulk.platform.auth.credentials import interruptible
from bulk.platform.auth.installations import Installation, Installations
from bulk.platform.auth.manifest_credentials import AnyCredential, AppCredential, PoolCredential
from bulk.platform.auth.secrets import Secret
from bulk.platform.classification import VerdictKind, classify, date_from_headers, limits_from_body
from bulk.platform.transport import Transport

YES, UNKNOWN = "yes", "can't be known"
REFUSED = "no: the platform refused it (401); it has ended, was revoked, or belongs to another platform"
PUBLIC_ONLY = f"{UNKNOWN}: without the scope repo, public repositories only"
EXPIRATION, APPLICATION = "github-authentication-token-expiration", "x-oauth-client-id"
"""The headers that tell when a token ends, and the OAuth application that it was made for."""
NOW_S = 300.0
"""An end this near the present is ignored (seconds): for a token without an end, the header shows the present time."""
WIDER: Mapping[str, tuple[str, ...]] = {
    "repo": ("public_repo",),
    "admin:org": ("write:org", "read:org"),
    "write:org": ("read:org",),
    "admin:enterprise": ("read:enterprise",),
    "notifications": (),
}
"""Scopes that include others."""
_LEVELS = ("read", "write", "admin")


class CredentialRow(msgspec.Struct, frozen=True):
    """One credential and one operation that uses it.

    Attributes:
        credential: name of the credential; `POOL/MEMBER` for a member of a pool.
        may: `yes`, `no: …` with what is lacking, or `can't be known`, which a reason may follow.
        payer: whose budget pays. ends_at: when the token ends (UTC epoch seconds); None: never, or not known.
        left: requests left by category (counts), if the platform tells.
    """

    credential: str
    operation: str
    may: str
    payer: str
    ends_at: float | None
    left: Mapping[str, int]

    @property
    def is_refused(self) -> bool:
        """Whether the credential can't do what the manifest needs."""
        return self.may.startswith("no")


@dataclass(frozen=True, slots=True)
class _Token:
    """What the platform tells of a token."""

    payer: str
    scopes: frozenset[str] | None
    is_site_admin: bool
    is_oauth: bool
    ends_at: float | None
    left: Mapping[str, int]


async def check_credentials(
    manifest: Manifest, credentials: Mapping[str, AnyCredential], clock: Clock
) -> list[CredentialRow]:
    """Return a row for each credential and operation that the manifest's jobs use together.

    Raises:
        BulkError: a source has no token, or the platform can't be asked.
    """
    rows: list[CredentialRow] = []
    async with Transport(manifest.platform, concurrency=1, request_timeout_s=30.0, clock=clock) as transport:
        for name in dict.fromkeys(job.credential for job in manifest.jobs):
            jobs = [job for job in manifest.jobs if job.credential == name]
            credential = credentials[name]
            if isinstance(credential, AppCredential):
                try:
                    rows += await _of_app(credential, jobs, transport, clock)
                except CredentialRefused as error:
                    rows += _without_token(name, f"no: {error}", jobs)
                continue
            members = credential.members if isinstance(credential, PoolCredential) else (name,)
            for member in members:
                single = credentials[member]
                assert not isinstance(single, AppCredential | PoolCredential), "the manifest refuses those in pools"
                label = member if member == name else f"{name}/{member}"
                try:
                    token = await _ask(await single.opened(), transport, single.ends_at)
                except CredentialRefused as error:  # its source says that it has ended
                    token = f"no: {error}"
                if isinstance(token, str):  # the other members get their rows all the same
                    rows += _without_token(label, token, jobs)
                    continue
                told = token.payer, token.ends_at, token.left
                rows += [
                    CredentialRow(label, job.operation.name, _judged(job, token), *told) for job in _distinct(jobs)
                ]
    return rows


def lacking_scopes(
    manifest: Manifest, credentials: Mapping[str, AnyCredential], scopes: Mapping[str, frozenset[str]]
) -> Iterator[str]:
    """Yield a note for each credential, or member of a pool, and operation that its scopes do not allow.

    Args:
        scopes: those of the tokens of credentials, as the platform tells them.
    """
    for name in dict.fromkeys(job.credential for job in manifest.jobs):
        credential = credentials[name]
        members = credential.members if isinstance(credential, PoolCredential) else (name,)
        tokens = {
            each: _Token("", scopes[each], is_site_admin=True, is_oauth=False, ends_at=None, left={})
            for each in members
            if each in scopes
        }
        for job in _distinct([job for job in manifest.jobs if job.credential == name]):
            may = {member: _judged(job, token) for member, token in tokens.items()}
            for member, said in may.items():
                label = f"credential {name}" if member == name else f"pool {name}: its member {member!r}"
                if said.startswith("no") or (said == PUBLIC_ONLY and YES in may.values()):
                    yield f"{label} may not do all of {job.operation.name}: {said.partition(': ')[2]}"


def _distinct(jobs: Sequence[Job]) -> Iterator[Job]:
    """Yield one job for each operation."""
    yield from {job.operation.name: job for job in jobs}.values()


def _without_token(name: str, may: str, jobs: Sequence[Job]) -> list[CredentialRow]:
    return [CredentialRow(name, job.operation.name, may, "-", None, {}) for job in _distinct(jobs)]


async def asked(transport: Transport, request: Request, token: Secret) -> Reply:
    """Return the answer to a request, which is sent once.

    Raises:
        RunStopped: the platform can't be reached.
    """
    answer = await transport.send(request, token, None)
    if isinstance(answer, Failure):
        raise RunStopped(f"{transport.platform.base_url} can't be reached: {answer.message}")
    return answer


async def _ask(secret: Secret, transport: Transport, ends_at: float | None) -> _Token | str:
    """Return what the platform tells of a token; a text with the reason if the platform does not accept it."""
    told: list[Reply] = []
    for request in (ASK_USER, ASK_LIMITS):
        answer = await asked(transport, request, secret)
        verdict = classify(ASK_USER, answer, transport.platform.vendor)
        if verdict.kind is VerdictKind.UNAUTHORIZED:  # one try is enough: bad tokens lock a client out
            return (
                REFUSED if answer.status == 401 else f"no: the platform refused it ({answer.status}): {verdict.message}"
            )
        told.append(answer)
    user, limits = told
    body = user.body if isinstance(user.body, dict) and user.status == 200 else {}
    login, number = body.get("login"), body.get("id")
    left = {category: each.remaining for category, each in limits_from_body(limits.body).items()}
    return _Token(
        f"user {login} ({number})" if login else "unknown",
        scopes_told(user),
        body.get("site_admin") is True,
        APPLICATION in user.headers,
        ends_at or _end(user),
        left,
    )


def _end(reply: Reply) -> float | None:
    """Return when the token ends, as a header tells (UTC epoch seconds)."""
    text, now = reply.headers.get(EXPIRATION), date_from_headers(reply.headers)
    if text is None:
        return None
    try:
        end = datetime.fromisoformat(text.replace(" UTC", "+00:00").replace(" ", "T", 1)).timestamp()
    except ValueError:
        return None
    return None if now is not None and abs(end - now) < NOW_S else end


def _judged(job: Job, token: _Token) -> str:
    access = job.operation.access
    if access is None or (token.scopes is None and access.permission is not None):
        return UNKNOWN
    if token.scopes is None or (access.is_for_classic and token.is_oauth):
        return "no: needs a classic token"
    if access.is_for_site_admins and not token.is_site_admin:
        return "no: needs a site administrator"
    held = token.scopes | {narrow for wide in token.scopes for narrow in WIDER.get(wide, ())}
    if access.scopes and not held & frozenset(access.scopes):
        if job.operation.is_read and access.scopes == ("repo",):
            return PUBLIC_ONLY
        return f"no: needs {' or '.join(access.scopes)}"
    return YES


def installations_of(credential: AppCredential, transport: Transport, clock: Clock) -> Installations:
    """Return the installations of an App, whose requests raise RunStopped if the platform can't be reached."""
    return Installations(App(credential.signer, partial(asked, transport), clock, clock.now), clock)


async def _of_app(
    credential: AppCredential, jobs: Sequence[Job], transport: Transport, clock: Clock
) -> list[CredentialRow]:
    await interruptible(credential.signer.check)
    where = installations_of(credential, transport, clock)
    number = credential.spec.installation
    found = await where.every() if number is None else [await where.by_id(number)]
    installed = [each for each in found if each is not None]
    if not installed:
        missing = "is not installed anywhere" if number is None else f"has no installation {number}"
        return _without_token(credential.name, f"no: the App {missing}", jobs)
    payer = (
        f"{len(installed):,} installation{'s' * (len(installed) > 1)}" if number is None else f"installation {number}"
    )
    return [
        CredentialRow(credential.name, job.operation.name, _granted(job.operation.access, installed), payer, None, {})
        for job in _distinct(jobs)
    ]


def _granted(access: Access | None, installed: Sequence[Installation]) -> str:
    if access is None:
        return UNKNOWN
    if access.permission is None or not access.apps:
        return "no: the platform takes no tokens of Apps for it"
    name, level = access.permission
    lacking = [each.login for each in installed if not _has(each.permissions.get(name, ""), level)]
    if name == "metadata" or not lacking:
        return YES
    shown = ", ".join(lacking[:3]) + (f" and {len(lacking) - 3:,} more" if len(lacking) > 3 else "")
    return f"no: needs {name}: {level} in {shown}"


def _has(held: str, wanted: str) -> bool:
    return held in _LEVELS and _LEVELS.index(held) >= _LEVELS.index(wanted)
