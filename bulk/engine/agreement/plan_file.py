"""The file of a live plan: what was looked at, and who agreed to it. It holds no content and no secret.

A plan is pinned to its manifest, its items and the platform, and for each item to what was seen: a verdict and 16 bytes
of a digest. An approval is for the digest of the plan. A file in which a byte was changed is not a plan any more.
"""

import base64
import hashlib
import re
import shlex
from pathlib import Path
from typing import Final

import msgspec

from bulk.bundle.checked import Checked
from bulk.engine.identity import files_digest, identity_of
from bulk.engine.origin import Origin
from bulk.errors import UNDECODABLE, GateClosed, RunDirectoryError, UsageError
from bulk.execute.preview import RECORD_BYTES, VERDICTS, Planned
from bulk.storage.private_files import read_regular, replacing, write_whole

VALID_S: Final = 24 * 3600.0
"""How long after it was made a plan may be begun (seconds)."""

_MARK = re.compile(rb'(\xef\xbb\xbf)?\s*\{\s*"bulk_plan"\s*:')
_MARK_BYTES = 64


class JobSeen(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen of a job's items.

    Attributes:
        records: for each item a byte with its verdict and 16 bytes of a digest, in Base64; None if the items were not
            looked at, because they are made from results or the job only reads.
        counts: number of items by verdict (counts).
    """

    name: str
    operation: str
    items: int
    records: str | None
    counts: dict[str, int]


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """Who approved a plan, by user name, which proves nothing, and when (UTC epoch seconds); `seal` binds both."""

    who: str
    at: float
    seal: str


class PlanFile(msgspec.Struct, frozen=True, kw_only=True):
    """A live plan.

    Attributes:
        bulk_plan: version of this file.
        origin: where the manifest is, and what the command line gave beside it.
        files_digest: SHA-256 (hex) over the files that items name. made_at: UTC epoch seconds.
        digest: SHA-256 (hex) over everything before it.
    """

    bulk_plan: int = 1
    origin: Origin
    name: str
    base_url: str
    vendor: str
    manifest_digest: str
    items_digest: str
    files_digest: str
    made_at: float
    jobs: tuple[JobSeen, ...]
    digest: str = ""
    approval: Approval | None = None

    @property
    def counts(self) -> dict[str, int]:
        """Number of items by verdict (counts)."""
        return {verdict: sum(job.counts.get(verdict, 0) for job in self.jobs) for verdict in VERDICTS}


def sealed(plan: PlanFile) -> PlanFile:
    """Return the plan with its digest."""
    return msgspec.structs.replace(plan, digest=_digest(plan))


def write_plan(plan: PlanFile, path: Path) -> None:
    """Write a plan to a file that its owner alone can read.

    Raises:
        UsageError: the file can't be written.
    """
    try:
        write_whole(path, _text(plan))
    except OSError as error:
        raise UsageError(f"{path} can't be written: {error.strerror}") from None


def is_plan(path: Path) -> bool:
    """Return whether a file begins as a live plan does, even if an editor has changed the layout."""
    try:
        return _MARK.match(read_regular(path, _MARK_BYTES)) is not None
    except (OSError, ValueError):  # it can't be opened, and whoever reads it as a manifest says so
        return False


def read_plan(path: Path) -> PlanFile:
    """Return the plan in a file.

    Raises:
        UsageError: the file can't be read. RunDirectoryError: the file is not a plan, or it was changed.
    """
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} is not a regular file; name the file that `bulk plan MANIFEST --live -o` has written")
    try:
        data = path.read_bytes()
        plan = msgspec.json.decode(data, type=PlanFile)
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}") from None
    except UNDECODABLE as error:
        raise RunDirectoryError(f"{path} is not a plan of `bulk plan --live -o`, or it is damaged ({error})") from None
    approval = plan.approval
    is_sealed = approval is None or approval.seal == _seal(plan.digest, approval.who, approval.at)
    if plan.digest != _digest(plan) or not is_sealed or data != _text(plan):
        raise RunDirectoryError(f"{path} is not as it was written; make it again with `bulk plan MANIFEST --live -o`")
    return plan


def approve(path: Path, who: str, now: float) -> PlanFile:
    """Write the approval of `who` into the plan in a file, and return that plan.

    Raises:
        BulkError: the file can't be read or written, or does not hold a plan as it was written.
    """
    read_plan(path)  # before anything is made beside it
    try:
        with replacing(path) as file:  # nobody puts another plan there between the two
            plan = read_plan(path)
            approval = Approval(who=who, at=now, seal=_seal(plan.digest, who, now))
            plan = msgspec.structs.replace(plan, approval=approval)
            file.write(_text(plan))
    except OSError as error:
        raise UsageError(f"{path} can't be written: {error.strerror}") from None
    return plan


def require_current(plan: PlanFile, path: Path, checked: Checked, run_dir: Path, now: float) -> None:
    """Refuse a plan that is not approved, is too old, or does not match the manifest or its items any more.

    Args:
        run_dir: directory with the files of the check.

    Raises:
        GateClosed: the message says why, and the way out.
    """
    again = f"look again: bulk plan {shlex.quote(plan.origin.manifest)} --live -o {shlex.quote(str(path))}"
    if plan.approval is None:
        raise GateClosed(
            f"{path} is not approved; nothing was sent. Read it, then: bulk approve {shlex.quote(str(path))}"
        )
    if now - plan.made_at > VALID_S:
        raise GateClosed(f"{path} is older than 24 hours; nothing was sent; {again}")
    identity = identity_of(checked)
    if identity.base_url != plan.base_url:
        raise GateClosed(
            f"{path} was made for {plan.base_url}, and --base-url or BULK_BASE_URL names {identity.base_url}; nothing "
            f"was sent; {again}"
        )
    for name, what, other in (
        ("vendor", "the vendor", ""),
        ("manifest_digest", "the manifest", ", or other --var or --job are given"),
        ("items_digest", "the content of the items", ""),
    ):
        if getattr(identity, name) != getattr(plan, name):
            raise GateClosed(f"{what} changed since {path} was made{other}; nothing was sent; {again}")
    if files_digest(run_dir) != plan.files_digest:
        raise GateClosed(f"a file that an item names changed since {path} was made; nothing was sent; {again}")


def planned_of(plan: PlanFile) -> Planned:
    """Return what the plan has seen of each item, by job number, for the engine to compare with."""
    records = {number: base64.b64decode(job.records) for number, job in enumerate(plan.jobs) if job.records is not None}
    return Planned(records)


def packed(verdict: str, digest: str) -> bytes:
    """Return the record of an item."""
    record = bytes([VERDICTS.index(verdict)]) + bytes.fromhex(digest)
    assert len(record) == RECORD_BYTES, "a digest has 16 bytes"
    return record


def _digest(plan: PlanFile) -> str:
    bare = msgspec.structs.replace(plan, digest="", approval=None)
    return hashlib.sha256(msgspec.json.encode(bare)).hexdigest()


def _seal(digest: str, who: str, at: float) -> str:
    return hashlib.sha256(msgspec.json.encode([digest, who, at])).hexdigest()


def _text(plan: PlanFile) -> bytes:
    return msgspec.json.format(msgspec.json.encode(plan), indent=1) + b"\n"
