"""A manifest as data: what `reading.py` makes of the YAML file and every later stage reads. No I/O here.

Source: interface.md §2.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from bulk.manifest.audit_section import AuditSettings
from bulk.manifest.hours import Hours
from bulk.operation import AnyOperation, Item
from bulk.quantities import NOTHING, Share


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a run, which may differ from one resume to the next.

    Attributes:
        concurrency: greatest number of requests in flight (count).
        reserve: part of every bucket left for other users of the token; `hours` say when another part is left.
        failures: the run stops when more items fail than this; None: never.
        request_timeout_s: longest time for one request and its answer (seconds).
        unreachable_s: how long an unreachable platform is tried before the run stops (seconds).
        max_duration_s: the run stops after this (seconds); None: never.
        settle_s: how long the engine waits before it believes that a thing that was sent is not there (seconds).
        pace: `even` or `burst`.
        waves: sizes of the waves in which the items of each job that writes are done; the other items are one more.
        gate: `auto`: the next wave begins `gate_after_s` after the last is judged (seconds); `manual`: once it is
            opened.
        errors: by error code: the run stops when more items of a wave than this end with it.
        confirm: `auto` (a terminal is asked before what can't be undone) or `always` (`--yes` is needed).
    """

    concurrency: int = 64
    reserve: Share = NOTHING
    failures: Share | None = None
    request_timeout_s: float = 60.0
    unreachable_s: float = 300.0
    max_duration_s: float | None = None
    settle_s: float = 15.0
    pace: str = "even"
    confirm: str = "auto"
    waves: tuple[Share, ...] = ()
    gate: str = "auto"
    gate_after_s: float = 0.0
    errors: Mapping[str, Share] = field(default_factory=dict)
    hours: tuple[Hours, ...] = ()

    def reserve_at(self, at: float) -> Share:
        """Return the reserve at a time (UTC epoch seconds): of the first of `hours` that holds, or else `reserve`."""
        return next((each.reserve for each in self.hours if each.holds(at)), self.reserve)


@dataclass(frozen=True, slots=True)
class Platform:
    """The platform to which a run sends its requests.

    Attributes:
        base_url: normalized, without a slash at its end: `https://HOST/api/v3`, `https://api.example.com`.
        credentials: name -> source (`env:NAME`, `file:PATH`, `command:PROGRAM ARG…`), never the token itself;
            `file:` paths are absolute.
        ca_bundle: absolute path, or None.
        trust_env: use the proxy variables of the environment (failures.md row 72).
        is_exact: an answer counts as unchanged only if its bytes are proven, never by the time of the last change.
        replaced: what the credential `default` was before BULK_TOKEN replaced it, such as `pool`; empty: it was not, or
            it was one token.
    """

    base_url: str
    vendor: str = "service"
    api_version: str | None = None
    ca_bundle: Path | None = None
    credentials: Mapping[str, str] = field(default_factory=lambda: {"default": "env:BULK_TOKEN"})
    trust_env: bool = False
    is_exact: bool = False
    replaced: str = ""


@dataclass(frozen=True, slots=True)
class Derivation:
    """How the items of a job are made from another job's results.

    Attributes:
        job: name of the job whose results they are made from.
        each: `result`: an item for each entry of a result that is a list, or for the one result; `item`: an item for
            each item of that job.
        fields: `map`: what each field becomes; `item.…` and `result.…` are paths, everything else is literal.
        also: names of jobs of one item each; `NAME.item.…` and `NAME.result.…` are paths into these items.
    """

    job: str
    each: str
    fields: Mapping[str, Any]
    also: tuple[str, ...] = ()

    @property
    def needs(self) -> tuple[str, ...]:
        """The jobs that must be complete before the items can be made."""
        return (self.job, *self.also)


@dataclass(frozen=True, slots=True)
class KeyedNeed:
    """A need by key: an item needs only those items of another job that have the same key.

    Attributes:
        job: name of the needed job.
        fields: pairs of a field of the own items and a field of that job's items: items with equal values, upper and
            lower case being the same, have the same key.
    """

    job: str
    fields: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Job:
    """One operation over many items.

    Attributes:
        number: place of the job in running order, from 0: needed jobs come first, otherwise the order of the file.
        needs: names of the jobs that must be complete first, and of the jobs in `by_key`.
        by_key: needs of single items. is_free_unmatched: an item may have a key that no item of a needed job has.
        needs_policy: `all` (complete without failures) or `any-outcome`.
        defaults: `with`, merged one level deep under every item.
        items: inline items, or None where `items_path` names a file (`-` for standard input).
        item_lines: line of every field of each inline item, by dotted name; `""` is the item itself.
        items_path: absolute path of the items file, or None.
        derivation: how the items are made from another job's results; None: the job has `items` or `items_path`.
        allow_overwrites: its items may undo what items before them do, in the order of the manifest.
        allow_empty: its items file may hold no items.
        save: template of a file name below `saved/`, such as `{owner}/{repo}.md`; None: nothing is saved.
        line: line of the job in the manifest, for messages. items_line: likewise, of its items.
    """

    number: int
    name: str
    operation: AnyOperation
    credential: str = "default"
    needs: tuple[str, ...] = ()
    needs_policy: str = "all"
    by_key: tuple[KeyedNeed, ...] = ()
    is_free_unmatched: bool = False
    priority: int = 0
    defaults: Mapping[str, Any] = field(default_factory=dict)
    items: tuple[Mapping[str, Any], ...] | None = None
    item_lines: tuple[Mapping[str, int], ...] = ()
    items_path: Path | None = None
    derivation: Derivation | None = None
    allow_overwrites: bool = False
    allow_empty: bool = False
    save: str | None = None
    line: int = 0
    items_line: int = 0

    @property
    def barriers(self) -> tuple[str, ...]:
        """Names of the jobs that must be complete before any item of this job begins."""
        by_key = [need.job for need in self.by_key]
        return tuple(name for name in self.needs if name not in by_key)


@dataclass(frozen=True, slots=True)
class Manifest:
    """A whole manifest, jobs in running order.

    Attributes:
        path: as the user named it; item paths are relative to its folder.
        text: the file's text, as it goes into the run directory.
        digest: SHA-256 (hex) of its meaning without `limits`: with the digests of its items files, the run's identity.
        limit: only this many first items of each job (`--limit`; count); None: all.
        variables: values given with `--var`, by name.
        chosen: names of the jobs chosen with `--job`, and of their needs if these were taken along; None: all.
        notes: sentences about the manifest itself that the user should read.
        audit: settings of `bulk audit`; None: the manifest has none.
    """

    path: Path
    name: str
    text: str
    digest: str
    platform: Platform
    limits: Limits
    jobs: tuple[Job, ...]
    limit: int | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    chosen: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()
    audit: AuditSettings | None = None


class CheckedFile(NamedTuple):
    """A file that an item names, as it was when it was checked.

    Attributes:
        digest: SHA-256 of the file.
        counted: digest of the part that counts of the content to send (`ConvertsFiles.counted`); empty: not known.
    """

    digest: bytes
    counted: bytes = b""


@dataclass(init=False, slots=True, unsafe_hash=True)
class Entry:
    """One item on its way to a worker.

    Attributes:
        job: number of the job.
        index: place of the item among the job's items, from 0.
        item: the item, typed and checked; the content of files is not inline yet.
        files: file field -> the file as it was when it was checked (failures.md row 59).
    """

    job: Final[int]
    index: Final[int]
    item: Final[Item]
    files: Final[Mapping[str, CheckedFile]]

    def __init__(
        self,
        job: int,
        index: int,
        item: Item,
        files: Mapping[str, CheckedFile] = {},
    ) -> None:
        self.job, self.index, self.item, self.files = job, index, item, files
