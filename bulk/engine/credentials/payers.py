"""Finds who pays for the requests of a manifest before it runs: members of its pools, installations of its Apps.

A plan asks each payer for its limits. The tokens of one user in a pool are one payer (`GET /user`). For an App, the
installations are found in whose accounts there are items, and each of them gives a token for the question.
"""

import math
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import msgspec

from bulk.bundle.checked import Checked, JobCheck
from bulk.check.plan import BucketPlan, PayerPlan
from bulk.check.plan_forecast import length_of
from bulk.clock import Clock
from bulk.engine.credentials.app_routes import Owners, wanted_permissions
from bulk.engine.credentials.credential_check import installations_of
from bulk.engine.credentials.kept_answers import payers_apart
from bulk.engine.credentials.token_users import asked_user
from bulk.errors import CredentialMissing, CredentialRefused
from bulk.execute.job_streams import JobStreams
from bulk.govern.permits.accounts import CredentialSource
from bulk.manifest.manifest import Job
from bulk.model import Reply
from bulk.platform.auth.credentials import Credential, interruptible
from bulk.platform.auth.installations import Installation, InstallationSource, no_installation
from bulk.platform.auth.manifest_credentials import AnyCredential, AppCredential, PoolCredential
from bulk.platform.auth.secrets import Secret
from bulk.platform.transport import Transport
from bulk.quantities import Share
from bulk.status import BucketStatus

HOUR_S = 3_600.0


@dataclass(slots=True)
class Payers:
    """The payers of pools and Apps.

    Attributes:
        sources: sources of the payers' tokens, by name; `CREDENTIAL@OWNER` is the name of an installation.
        requests: for each (credential, category) the requests that each payer pays for (counts), by its name; 0 for the
            payers of a pool, because any of them that has requests left pays.
        totals: for each (credential, category) the requests of its jobs (count), even those that no payer pays for.
        pooled: names of the credentials that are pools.
        notes: what a person should know.
    """

    sources: dict[str, CredentialSource] = field(default_factory=dict)
    requests: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)
    totals: Counter[tuple[str, str]] = field(default_factory=Counter)
    pooled: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    def of(self, credential: str, category: str) -> list[tuple[str, str]]:
        """Return who pays for requests of a category, each with the category."""
        return [(name, category) for name in self.requests.get((credential, category), (credential,))]


async def find_payers(
    checked: Checked, credentials: Mapping[str, AnyCredential], workspace: Path, clock: Clock
) -> Payers:
    """Return the payers of all pools and Apps that the jobs of a manifest use. Without any, nothing is sent.

    Raises:
        BulkError: a source has no token, a key can't be used, or the platform can't be asked.
    """
    found, manifest = Payers(), checked.manifest
    used = dict.fromkeys(job.credential for job in manifest.jobs)
    if all(isinstance(credentials[name], Credential) for name in used):
        return found
    async with Transport(manifest.platform, concurrency=1, request_timeout_s=30.0, clock=clock) as transport:
        for name in used:
            credential = credentials[name]
            pairs = [pair for pair in zip(manifest.jobs, checked.jobs, strict=True) if pair[0].credential == name]
            if isinstance(credential, PoolCredential):
                await _add_pool(found, credential, credentials, [job for job, _ in pairs], transport, clock)
            elif isinstance(credential, AppCredential):
                await interruptible(credential.signer.check)
                streams = JobStreams(checked, workspace)
                try:
                    await _App(found, credential, pairs, transport, clock).add(streams)
                finally:
                    streams.close()
    return found


async def _add_pool(
    found: Payers,
    pool: PoolCredential,
    credentials: Mapping[str, AnyCredential],
    jobs: Sequence[Job],
    transport: Transport,
    clock: Clock,
) -> None:
    payers: dict[str, str] = {}
    refused: list[str] = []
    unknown: dict[str, Secret] = {}
    for member in pool.members:
        single = credentials[member]
        assert isinstance(single, Credential), "the manifest refuses others in pools"
        token = await single.opened()
        answer = await asked_user(transport, token, clock)
        if isinstance(answer, Reply) and answer.status == 401:
            refused.append(member)
            continue
        body = answer.body if isinstance(answer, Reply) and answer.status == 200 else None
        number = body.get("id") if isinstance(body, dict) else None
        if number is None and not single.identity:
            unknown[member] = token
        payers.setdefault(single.identity or f"unknown {member}" if number is None else f"user:{number}", member)
        found.sources[member] = single
    for group in await payers_apart(unknown, transport, clock, is_quiet=True):
        for member in group[1:]:
            del payers[f"unknown {member}"]
    if not payers:
        raise CredentialRefused(pool.name, f"the platform refused every member of the pool {pool.name!r} (401)")
    found.pooled.add(pool.name)
    for member in refused:
        found.notes.append(f"pool {pool.name}: the platform refused its member {member!r} (401); the others go on")
    for job in jobs:
        found.requests[pool.name, job.operation.category] = Counter(dict.fromkeys(payers.values(), 0))
    usable = len(pool.members) - len(refused)
    if len(payers) < usable:
        tokens = f"{usable} tokens of {len(payers)}"
        found.notes.append(f"pool {pool.name}: {tokens} payer{'' if len(payers) == 1 else 's'}")


class _App:
    """Finds the installations of one App."""

    def __init__(
        self,
        found: Payers,
        credential: AppCredential,
        pairs: Sequence[tuple[Job, JobCheck]],
        transport: Transport,
        clock: Clock,
    ) -> None:
        self._found, self._name, self._pairs = found, credential.name, pairs
        self._number = credential.spec.installation
        jobs = [job for job, _ in pairs]
        self._permissions = wanted_permissions(jobs) if credential.spec.permissions == "least" else None
        self._where = installations_of(credential, transport, clock)
        self._asked: dict[str, bool] = {}

    async def add(self, streams: JobStreams) -> None:
        """Add the installations that there are items for."""
        for job, check in self._pairs:
            each = check.most_requests / max(1, check.items)
            self._found.totals[self._name, job.operation.category] += check.most_requests
            if self._number is not None:
                if await self._may(str(self._number), partial(self._where.by_id, self._number), check.items):
                    self._count(job, str(self._number), check.most_requests)
            elif job.derivation is None:
                owners = Owners(job, partial(streams.stream, job.number))
                owners.look()
                items = Counter(owners.account_of)
                for account, (owner, path) in enumerate(owners.paths.items()):
                    if await self._may(owner, partial(self._where.find, owner, path), items[account]):
                        self._count(job, owner, -int(-items[account] * each // 1))

    def _count(self, job: Job, owner: str, requests: int) -> None:
        counts = self._found.requests.setdefault((self._name, job.operation.category), Counter())
        counts[f"{self._name}@{owner}"] += requests

    async def _may(self, owner: str, find: Callable[[], Awaitable[Installation | None]], items: int) -> bool:
        """Return whether an installation gives a token for `owner`. If none does, add a note the first time."""
        if owner not in self._asked:
            installation = await find()
            self._asked[owner] = installation is not None
            if installation is not None:
                source = InstallationSource(f"{self._name}@{owner}", self._where, installation, self._permissions)
                self._asked[owner] = await source.renew()
                if self._asked[owner]:
                    self._found.sources[source.name] = source
                else:
                    self._found.notes.append(f"{source.renewal_problem}; its items can't be sent")
            elif self._number is not None:
                raise CredentialMissing(no_installation(self._name, self._number))
            else:
                why = f"the App is not installed in {owner}: {items:,} item{'' if items == 1 else 's'} would fail"
                self._found.notes.append(f"credential {self._name}: {why}")
        return self._asked[owner]


def budgets_of(
    payers: Payers, told: Sequence[BucketStatus], now: float
) -> tuple[list[BucketStatus], tuple[PayerPlan, ...]]:
    """Return one bucket for each credential and category of the payers, and the budget of each payer.

    The end of the run is forecast from these buckets. The bucket of a pool is the sum of its payers' buckets. For an
    App, the installation that is done last decides: its bucket is scaled up by the ratio of all requests to its own.

    Args:
        told: the buckets that `GET /rate_limit` told to each payer. now: UTC epoch seconds.
    """
    known = {(bucket.credential, bucket.category): bucket for bucket in told}
    buckets: list[BucketStatus] = []
    shown: list[PayerPlan] = []
    for (credential, category), requests in payers.requests.items():
        limited: list[tuple[BucketStatus, int]] = []
        for source, wanted in requests.items():
            bucket = known.get((source, category))
            if bucket is None or bucket.limit is None:
                continue
            limited.append((bucket, wanted))
            hourly = int(bucket.limit * HOUR_S / max(1.0, length_of(bucket, now)))
            shown.append(
                PayerPlan(
                    credential=credential,
                    payer=source.removeprefix(f"{credential}@"),
                    category=category,
                    requests=None if credential in payers.pooled else wanted,
                    limit=bucket.limit,
                    remaining=bucket.remaining,
                    reset_at=bucket.reset_at,
                    hourly=hourly,
                )
            )
        if limited and len(limited) == len(requests):
            is_pool = credential in payers.pooled
            joined = _together(limited) if is_pool else _last(limited, payers.totals[credential, category])
            buckets.append(msgspec.structs.replace(joined, credential=credential))
    return buckets, tuple(shown)


def together(planned: BucketPlan, payers: Sequence[PayerPlan], reserve: Share) -> BucketPlan:
    """Return a bucket of the plan with what its payers have together, in place of what its end was forecast with."""
    own = [payer for payer in payers if (payer.credential, payer.category) == (planned.credential, planned.category)]
    if not own or planned.limit is None:
        return planned
    return msgspec.structs.replace(
        planned,
        limit=sum(payer.limit for payer in own),
        remaining=sum(payer.remaining or 0 for payer in own),
        reserve=sum(reserve.of(payer.limit) for payer in own),
    )


def _together(limited: Sequence[tuple[BucketStatus, int]]) -> BucketStatus:
    buckets = [bucket for bucket, _ in limited]
    last = max(buckets, key=lambda bucket: bucket.reset_at or 0.0)
    return msgspec.structs.replace(
        last,
        limit=sum(bucket.limit or 0 for bucket in buckets),
        remaining=sum(bucket.remaining or 0 for bucket in buckets),
    )


def _last(limited: Sequence[tuple[BucketStatus, int]], total: int) -> BucketStatus:
    """Return the bucket that is done last, scaled up as if it had to pay for all `total` requests."""

    def end(pair: tuple[BucketStatus, int]) -> tuple[float, float]:
        bucket, wanted = pair
        return (wanted - (bucket.remaining or 0)) / max(1, bucket.limit or 0), bucket.reset_at or 0.0

    last, wanted = max(limited, key=end)
    limit, remaining = (math.ceil((each or 0) * total / max(1, wanted)) for each in (last.limit, last.remaining))
    return msgspec.structs.replace(last, limit=limit, remaining=remaining)
