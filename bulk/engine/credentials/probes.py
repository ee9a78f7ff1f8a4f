"""Probes with one read for each owner whether a credential reaches what is there, and what is in its way.

Scopes and permissions say what a token may do, not where: single sign-on, an approval that is missing, or repositories
that were not selected are seen only by asking. For each credential and owner one read is sent, of the first item whose
operation begins with a read. Nothing is changed. Source: interface.md §4 (`bulk credentials check --probe`).
"""

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bulk.bundle.checked import Checked
from bulk.bundle.secret_fields import SecretPlaces, load_secrets
from bulk.capabilities import FileError
from bulk.clock import Clock
from bulk.engine.credentials.app_routes import wanted_permissions
from bulk.engine.credentials.credential_check import UNKNOWN, YES, CredentialRow, asked, installations_of
from bulk.execute.job_streams import JobStreams
from bulk.manifest.manifest import Job
from bulk.model import Effect, Reply, Request
from bulk.operation import AnyOperation, Item, owner_of
from bulk.platform.auth.credentials import interruptible
from bulk.platform.auth.installations import InstallationSource, path_of
from bulk.platform.auth.manifest_credentials import AnyCredential, AppCredential, PoolCredential
from bulk.platform.auth.secrets import Secret
from bulk.platform.classification import VerdictKind, accepted_permissions, classify
from bulk.platform.transport import Transport
from bulk.redaction import remember
from bulk.schedule.queues import all_of

SSO = "x-github-sso"
YOUNG_S = (1.0, 2.0, 4.0)
"""Pauses before a token that was just made is tried again: not every server knows of it at once (seconds)."""
_PAGE = re.compile(r"url=(https?://[!-~]{1,2000})")
_PARTIAL = re.compile(r"partial-results;\s*organizations=([0-9, ]{1,2000})")
_SAID = frozenset((VerdictKind.REFUSED, VerdictKind.UNAUTHORIZED, VerdictKind.UNEXPLAINED, VerdictKind.ASTRAY))


class OwnerRow(msgspec.Struct, frozen=True):
    """One credential at one owner.

    Attributes:
        credential: name of the credential; `POOL/MEMBER` for a member of a pool.
        owner: the organization, user or enterprise that items name, in lower case; empty: they name none.
        operation: the operation whose first request was to be sent.
        asked: path of the request that was sent; empty: nothing was sent.
        may: `yes`, `no: …` with what is in the way, or `can't be known: …`.
        sso_url: a page on which single sign-on lets the token in; None: none was named.
    """

    credential: str
    owner: str
    operation: str
    asked: str
    may: str
    sso_url: str | None = None

    @property
    def is_refused(self) -> bool:
        """Whether the owner's things can't be reached."""
        return self.may.startswith("no")


class ProbedCredentials(msgspec.Struct, frozen=True):
    """What `bulk credentials check --probe --json` prints: what each credential may do, and what it reaches.

    Attributes:
        credentials: a row for each credential and operation.
        owners: a row for each credential and owner of items.
    """

    credentials: list[CredentialRow]
    owners: list[OwnerRow]


@dataclass(frozen=True, slots=True)
class _Read:
    """The read for an owner, if there is one. `installation`: path of the App's installation at that owner."""

    owner: str
    installation: str
    operation: str
    request: Request | None


async def probe_owners(
    checked: Checked,
    credentials: Mapping[str, AnyCredential],
    workspace: Path,
    clock: Clock,
    environ: Mapping[str, str],
) -> list[OwnerRow]:
    """Send one read for each credential and owner of the items that a manifest names, and return what came back.

    Items that are made from results do not exist yet, so that their owners are not probed. What the platform says may
    hold secrets of items, which are known from here on.

    Raises:
        BulkError: a source has no token, or the platform can't be asked.
    """
    manifest, rows = checked.manifest, list[OwnerRow]()
    async with Transport(manifest.platform, concurrency=1, request_timeout_s=30.0, clock=clock) as transport:
        for name in dict.fromkeys(job.credential for job in manifest.jobs):
            jobs = [job for job in manifest.jobs if job.credential == name and job.derivation is None]
            reads = _reads(checked, jobs, workspace, SecretPlaces(manifest.path.parent, environ))
            credential, prober = credentials[name], _Prober(transport, clock)
            if isinstance(credential, AppCredential):
                rows += [row async for row in prober.as_app(credential, jobs, reads)]
                continue
            for member in credential.members if isinstance(credential, PoolCredential) else (name,):
                single = credentials[member]
                assert not isinstance(single, AppCredential | PoolCredential), "the manifest refuses those in pools"
                label, token = member if member == name else f"{name}/{member}", await single.opened()
                rows += await prober.asked_with(label, reads, token)
    return rows


def _reads(checked: Checked, jobs: Sequence[Job], workspace: Path, places: SecretPlaces) -> list[_Read]:
    """Return one read for each owner, in the order in which owners are met; jobs that read come first."""
    found: dict[str, _Read] = {}
    tried: set[tuple[str, int]] = set()
    with closing(JobStreams(checked, workspace)) as streams:
        for job in sorted(jobs, key=lambda job: not job.operation.is_read):
            for entry in all_of(streams.stream(job.number)):
                with suppress(FileError):  # a secret that can't be had can't be shown either
                    load_secrets(places, job.operation, entry.item, remember)
                owner, repo, enterprise = owner_of(entry.item)
                known = found.get(owner)
                if (known is None or known.request is None) and (owner, job.number) not in tried:
                    tried.add((owner, job.number))
                    request = _first_read(job.operation, entry.item)
                    found[owner] = _Read(owner, path_of(owner, repo, enterprise), job.operation.name, request)
    return list(found.values())


def _first_read(operation: AnyOperation, item: Item) -> Request | None:
    """Return the first request of an item if it is a read. It uses no stored answer, and its body is not spooled."""
    request = next(operation.steps(item), None)
    if request is None or request.effect is not Effect.READ:
        return None
    return Request(
        method=request.method,
        path=request.path,
        query=request.query,
        body=request.body,
        accept=request.accept,
        media=request.media,
        is_fresh=True,
        max_bytes=request.max_bytes,
    )


class _Prober:
    """Sends the reads."""

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self._transport, self._clock, self._is_refused = transport, clock, False

    async def as_app(
        self, credential: AppCredential, jobs: Sequence[Job], reads: Sequence[_Read]
    ) -> AsyncIterator[OwnerRow]:
        """Yield a row for each read, which is sent with a token of the installation that pays for its owner."""
        await interruptible(credential.signer.check)
        name, number = credential.name, credential.spec.installation
        where = installations_of(credential, self._transport, self._clock)
        wanted = wanted_permissions(jobs) if credential.spec.permissions == "least" else None
        sources: dict[int, InstallationSource] = {}
        for read in reads:
            found = await (where.find(read.owner, read.installation) if number is None else where.by_id(number))
            if found is None:
                missing = "the App is not installed there" if number is None else f"there is no installation {number}"
                yield OwnerRow(name, read.owner, read.operation, "", f"no: {missing}")
                continue
            source = sources.get(found.id)
            if source is None:
                source = sources[found.id] = InstallationSource(name, where, found, wanted)
                await source.renew()
            if source.renewal_problem:
                yield OwnerRow(name, read.owner, read.operation, "", f"no: {source.renewal_problem}")
            else:
                yield await self.asked(name, read, source.read(), is_new=True)

    async def asked_with(self, label: str, reads: Sequence[_Read], token: Secret) -> list[OwnerRow]:
        """Send these reads and return what each shows. A token that is refused is not sent again: a platform locks out
        clients that send bad tokens."""
        rows: list[OwnerRow] = []
        self._is_refused = False
        for read in reads:
            if self._is_refused:
                rows.append(OwnerRow(label, read.owner, read.operation, "", rows[-1].may))
            else:
                rows.append(await self.asked(label, read, token))
        return rows

    async def asked(self, label: str, read: _Read, token: Secret, *, is_new: bool = False) -> OwnerRow:
        """Send a read and return what it shows.

        Args:
            is_new: the token was just made.
        """
        if read.request is None:
            return OwnerRow(label, read.owner, read.operation, "", f"{UNKNOWN}: no item there begins with a read")
        pauses_s = iter(YOUNG_S if is_new else ())
        while True:
            answer = await asked(self._transport, read.request, token)
            pause_s = next(pauses_s, None) if answer.status in (401, 403) else None
            if pause_s is None:
                break
            await self._clock.sleep(pause_s)
        self._is_refused = answer.status == 401
        may, page = _judged(read.request, answer, self._transport.platform.vendor)
        return OwnerRow(label, read.owner, read.operation, read.request.path, may, page)


def _judged(request: Request, answer: Reply, vendor: str) -> tuple[str, str | None]:
    """Return (`OwnerRow.may`, `OwnerRow.sso_url`)."""
    said = answer.headers.get(SSO, "")
    page, partial = _PAGE.search(said), _PARTIAL.search(said)
    if answer.status < 400:
        lacking = f": without what is of organizations {partial[1].strip()} (single sign-on)" if partial else ""
        return YES + lacking, None
    if said.startswith("required"):
        return "no: needs authorization by single sign-on", page[1] if page else None
    if answer.status == 404:
        needed = accepted_permissions(answer.headers)
        why = "it is not there, or hidden from this credential (404)"
        return f"{UNKNOWN}: {why}" + (f"; it takes {needed}" if needed else ""), None
    verdict = classify(request, answer, vendor)
    return f"{'no' if verdict.kind in _SAID else UNKNOWN}: {verdict.message}", None
