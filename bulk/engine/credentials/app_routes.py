"""Finds which installation of an App pays for which item, and opens an account for each, before anything is sent.

Every item of a job whose credential is an App is looked at once for its owner. Owners in whose account the App is not
installed get a queue of their own, whose items fail without being sent. Source: interface.md §2 (Apps).
"""

from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from bulk.bundle.checked import Checked
from bulk.clock import Clock
from bulk.errors import CredentialMissing
from bulk.execute.job_streams import JobStreams
from bulk.govern.governor import Governor
from bulk.manifest.manifest import Job
from bulk.model import Failure, Reply, Request
from bulk.operation import owner_of
from bulk.platform.auth.app import App
from bulk.platform.auth.credentials import Credential, interruptible
from bulk.platform.auth.installations import (
    Installation,
    Installations,
    InstallationSource,
    no_installation,
    path_of,
)
from bulk.platform.auth.manifest_credentials import AnyCredential, PoolCredential, apps_of
from bulk.platform.auth.secrets import Secret
from bulk.platform.wire import Wire
from bulk.schedule.job_progress import JobProgress
from bulk.schedule.queues import Stream, all_of
from bulk.schedule.routed_job import RoutedJob
from bulk.schedule.routed_scheduler import RoutedScheduler
from bulk.schedule.scheduler import Scheduler
from bulk.storage.disk_threads import Disk


async def open_plain(
    jobs: Sequence[Job],
    progress: Sequence[JobProgress],
    credentials: Mapping[str, AnyCredential],
    governor: Governor,
) -> None:
    """Open an account for every credential in use that is not an App, and read its token (raises CredentialMissing)."""
    needed: dict[str, set[str]] = {}
    for job in jobs:
        used = credentials[job.credential]
        for name in used.members if isinstance(used, PoolCredential) else (job.credential,):
            needed.setdefault(name, set()).add(job.operation.category)
        if isinstance(used, PoolCredential):
            governor.pools[job.credential] = used.members
    for name, categories in needed.items():
        credential = credentials[name]
        if isinstance(credential, Credential):
            await credential.opened()
            governor.open_account(credential, sorted(categories))
    for job, found in zip(jobs, progress, strict=True):
        if not found.is_known and isinstance(credentials[job.credential], Credential):
            governor.queue(job.credential, job.operation.category).awaits_items = True


class AppRoutes:
    """Opens the accounts of all Apps that a run uses.

    Args:
        credentials: the credentials of the manifest, by name. streams: the items of its jobs.
    """

    def __init__(
        self,
        checked: Checked,
        credentials: Mapping[str, AnyCredential],
        governor: Governor,
        scheduler: Scheduler,
        streams: JobStreams,
        disk: Disk,
    ) -> None:
        self._checked, self._streams, self._apps = checked, streams, apps_of(credentials)
        self._governor, self._scheduler, self._disk = governor, scheduler, disk

    async def open(self, transport: Wire, clock: Clock) -> None:
        """Ask each App where it is installed, and open an account for each installation that has items.

        Wait as long as the platform does not answer or lets the App wait; a stop of the run cancels the call.

        Raises:
            CredentialMissing: a key can't be read, or an App can't serve what the manifest asks of it.
            CredentialRefused: the platform does not accept an App.
        """
        governor = self._governor

        async def send(request: Request, token: Secret) -> Reply | Failure:
            sent = clock.monotonic()
            answer = await transport.send(request, token, None)
            if isinstance(answer, Failure):
                governor.unanswered(answer)
            else:
                governor.heard(answer, sent, clock.monotonic())
            return answer

        for name, (spec, signer) in self._apps.items():
            jobs = [job for job in self._checked.manifest.jobs if job.credential == name]
            if not jobs:
                continue
            await interruptible(signer.check)
            app = App(signer, send, clock, lambda: self._governor.time.middle(clock.monotonic()))
            where = Installations(app, clock)
            wanted = wanted_permissions(jobs) if spec.permissions == "least" else None
            if spec.installation is not None:
                await self._open_one(name, spec.installation, where, jobs, wanted)
            else:
                await self._open_each(name, where, jobs, wanted)

    async def _open_one(
        self, name: str, number: int, where: Installations, jobs: list[Job], wanted: Mapping[str, str] | None
    ) -> None:
        found = await where.by_id(number)
        if found is None:
            raise CredentialMissing(no_installation(name, number))
        categories = sorted({job.operation.category for job in jobs})
        account = self._governor.open_minted(InstallationSource(name, where, found, wanted), categories)
        account.identity = _identity(found, wanted)

    async def _open_each(
        self, name: str, where: Installations, jobs: list[Job], wanted: Mapping[str, str] | None
    ) -> None:
        names: dict[str, str] = {}
        for job in jobs:
            assert job.derivation is None, "the manifest refuses those: their owners are not known before"
            owners = Owners(job, partial(self._streams.stream, job.number))
            await self._disk(owners.look)
            for owner, path in owners.paths.items():
                if owner not in names:
                    names[owner] = f"{name}@{owner}"
                    self._open(names[owner], owner, await where.find(owner, path), where, jobs, wanted)
            accounts = [names[owner] for owner in owners.paths]
            if accounts and isinstance(self._scheduler, RoutedScheduler):
                self._scheduler.route(job.number, RoutedJob(accounts, owners.account_of, owners.open_stream))
        for owner, account in names.items():
            if self._governor.accounts[account].source.is_gone:
                for queue in self._scheduler.queues.values():
                    if queue.credential == account:
                        queue.refusal = f"the App of credential {name!r} is not installed in {owner}"

    def _open(
        self,
        account: str,
        owner: str,
        found: Installation | None,
        where: Installations,
        jobs: list[Job],
        wanted: Mapping[str, str] | None,
    ) -> None:
        nowhere = Installation(0, owner, {}, is_selected=False)
        source = InstallationSource(account, where, found or nowhere, wanted)
        source.is_gone = found is None
        opened = self._governor.open_minted(source, sorted({job.operation.category for job in jobs}))
        opened.identity = _identity(found or nowhere, wanted)


def _identity(installation: Installation, wanted: Mapping[str, str] | None) -> str:
    """Return the identity of an installation within its App, with its permissions, because these change answers."""
    permissions = installation.permissions if wanted is None else wanted
    return f"{installation.id} {sorted(permissions.items())}"


class Owners:
    """The owners of a job's items.

    Attributes:
        paths: for each owner the path of its installation on the platform, in the order in which owners were met.
        account_of: for each item, the number of its owner.
    """

    def __init__(self, job: Job, open_stream: Callable[[], Stream]) -> None:
        self._job, self.open_stream = job, open_stream
        self.paths: dict[str, str] = {}
        self.account_of = array("I")

    def look(self) -> None:
        """Look at every item; blocks as long as reading them takes."""
        numbers: dict[str, int] = {}
        for entry in all_of(self.open_stream()):
            owner, repo, enterprise = owner_of(entry.item)
            number = numbers.get(owner)
            if number is None:
                number = numbers[owner] = len(numbers)
                self.paths[owner] = path_of(owner, repo, enterprise)
            self.account_of.append(number)


def wanted_permissions(jobs: Sequence[Job]) -> Mapping[str, str] | None:
    """Return the permissions that the operations of these jobs need; None: an operation does not say what it needs."""
    levels = ("read", "write", "admin")
    found: dict[str, str] = {"metadata": "read"}
    for job in jobs:
        access = job.operation.access
        if access is None or access.permission is None:
            return None
        name, level = access.permission
        held = found.get(name)
        found[name] = level if held is None or levels.index(level) > levels.index(held) else held
    return found
