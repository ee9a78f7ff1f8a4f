"""The jobs of a manifest: each is read on its own, then they are put in running order, needed jobs first.

Items are only located here; `checking.py` reads them. Source: interface.md §2.
"""

import heapq
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import msgspec

from bulk import quantities
from bulk.capabilities import (
    ProvesAbsence,
    SavesContent,
    SkipsUnchanged,
    allowing_absence,
    secret_fields,
    skipping_unchanged,
    varied,
)
from bulk.flaws import shown, unknown_name
from bulk.items import sources, type_errors
from bulk.items.decoding import literal_secrets
from bulk.items.sources import STDIN
from bulk.items.yaml_text import Node
from bulk.manifest import derived_jobs, platform_section
from bulk.manifest.credential_specs import AppSpec, PoolSpec, spec_of
from bulk.manifest.fields import NAME, Fields
from bulk.manifest.manifest import Job
from bulk.manifest.needs import keyed_needs
from bulk.manifest.save_template import SaveFlaw, Template
from bulk.operation import AnyOperation, UnknownOperation, find, names

NEEDS_POLICIES = ("all", "any-outcome")
SKIPS = ("exact", "content", "never")
_SHOWN_CIRCLE = 20
_NO_SECRET = "expected env:NAME or file:PATH, never the secret itself in a manifest"


def jobs_of(
    part: Fields,
    folder: Path,
    credentials: Mapping[str, str],
    chosen: Collection[str] | None = None,
    *,
    needs_items: bool = True,
) -> tuple[tuple[Job, ...], list[str]]:
    """Return the jobs in running order, and notes on them; flaws are noted in `part`, and a job that has one may be
    missing.

    Args:
        part: the manifest's `jobs`.
        folder: folder of the manifest, to which paths of items are relative.
        credentials: sources of the credentials that jobs may use, by name.
        chosen: names of the jobs that are read; None: all.
        needs_items: whether items files have to be there.
    """
    if part.is_object and not part.names():
        part.flaw("", "expected at least one job")
    left_out = frozenset[str]() if chosen is None else frozenset(part.names()).difference(chosen)
    for name in part.names():
        part.node(name)  # a job that is not chosen is not an unknown field
    read = [name for name in part.names() if name not in left_out]
    found = [_JobReader(part, name, folder, credentials, needs_items=needs_items).job() for name in read]
    part.finish()
    jobs = [job for job in found if job is not None]
    _refuse_second_stdin(part, jobs)
    notes: list[str] = []
    jobs = [_without_left_out(part, job, left_out, notes) for job in jobs]
    derived_jobs.refuse_unknown_paths(part, jobs)
    for job, why in keyed_needs.flaws_of(jobs, credentials):
        part.flaw(f"{job.name}.needs", why, _line(part, job))
    return _in_order(part, jobs), notes


def _without_left_out(part: Fields, job: Job, names: Collection[str], notes: list[str]) -> Job:
    """Return `job` without needs that `--job` leaves out (`names`); note a flaw if its items come from a job that is
    left out.
    """
    left_out = [need for need in job.needs if need in names]
    if not left_out:
        return job
    derivation = job.derivation
    for need in left_out:
        if derivation is not None and need in derivation.needs:
            where = f"{job.name}.items.{'from' if need == derivation.job else 'also'}"
            part.flaw(where, f"{shown(need)} is left out by --job; add --with-needs", _line(part, job))
        else:
            notes.append(f"job {job.name}: needs {need}, which --job leaves out; --with-needs takes it along")
    by_key = tuple(need for need in job.by_key if need.job not in left_out)
    return replace(job, needs=tuple(need for need in job.needs if need not in left_out), by_key=by_key)


class _JobReader:
    """Reads one job."""

    def __init__(
        self, part: Fields, name: str, folder: Path, credentials: Mapping[str, str], *, needs_items: bool
    ) -> None:
        self._part, self._name, self._folder, self._credentials = part, name, folder, credentials
        self._fields, self._needs_items = part.inner(name), needs_items

    def _credential(self, operation: AnyOperation | None) -> str:
        """Return the name of the job's credential; note a flaw if there is none of that name, or it is of a kind that
        does not go with the operation."""
        name = self._fields.text("credential", "default")
        if name not in self._credentials:
            self._fields.flaw("credential", unknown_name(name, self._credentials, "credential"))
        elif operation is not None:
            self._check_kind(name, operation)
        return name

    def _check_kind(self, credential: str, operation: AnyOperation) -> None:
        """Note a flaw if the platform takes no tokens of Apps for an operation, or if a pool may not be used for it."""
        fields, source, access = self._fields, self._credentials[credential], operation.access
        pool = spec_of(source, PoolSpec)
        if pool is not None and not operation.is_read and not pool.writes:
            why = f"{operation.name} writes, and the pool {credential!r} is for reads; insist with writes: true"
            fields.flaw("credential", why)
        if spec_of(source, AppSpec) and access is not None and (access.permission is None or not access.apps):
            fields.flaw(
                "credential" if "credential" in fields else "operation",
                f"the platform takes no tokens of Apps for {operation.name}; name a credential with a classic token",
            )

    def job(self) -> Job | None:
        """Return the job, or None if it can't be made."""
        fields = self._fields
        if not NAME.fullmatch(self._name):
            message = "expected a job name of letters, digits, hyphens, underscores and dots, at most 100 characters"
            self._part.flaw(self._name, message)
        operation = self._operation()
        credential = self._credential(operation)
        nothing: keyed_needs.Needs = ((), ())
        found = needs, by_key = fields.scalar("needs", nothing, keyed_needs.needs_of)
        unmatched = fields.choice("unmatched", keyed_needs.UNMATCHED[0], keyed_needs.UNMATCHED)
        if unmatched == "free" and not by_key and (found is not nothing or "needs" not in fields):
            fields.flaw("unmatched", "goes with a need by key, such as needs: [{create-orgs: {org: login}}]")
        policy = fields.choice("needs_policy", NEEDS_POLICIES[0], NEEDS_POLICIES)
        priority = fields.scalar("priority", 0, quantities.priority)
        allow_overwrites = fields.flag("allow_overwrites")
        allow_empty = fields.flag("allow_empty")
        operation = self._allowing_absence(operation, fields.choice("missing", "fail", ("fail", "ok")))
        operation = self._skipping_unchanged(operation)
        defaults, items, save = fields.node("with"), fields.node("items"), fields.text("save", None)
        self._refuse_fields_of_items(operation)
        fields.finish()
        if not fields.is_object:
            return None
        can_be_items = self._can_be_items(items)
        if operation is None or items is None or not can_be_items:
            return None
        job = Job(
            number=0,
            name=self._name,
            operation=varied(operation, is_saving=True) if isinstance(operation, SavesContent) and save else operation,
            credential=credential,
            needs=needs,
            needs_policy=policy,
            by_key=by_key,
            is_free_unmatched=unmatched == "free",
            priority=priority,
            defaults=self._defaults(defaults, operation),
            allow_overwrites=allow_overwrites,
            allow_empty=allow_empty,
            save=save,
            line=fields.line,
            items_line=items.line,
        )
        self._check_save(save, operation)
        return self._with_items(job, items)

    def _check_save(self, save: str | None, operation: AnyOperation) -> None:
        """Note a flaw if `save` is not a template of paths for the items of an operation."""
        if save is not None:
            try:
                Template(save, operation)
            except SaveFlaw as flaw:
                self._fields.flaw("save", str(flaw))

    def _refuse_fields_of_items(self, operation: AnyOperation | None) -> None:
        known = {field.encode_name for field in msgspec.structs.fields(operation.Item)} if operation else set()
        for name in self._fields.unasked():
            if name in known:
                self._fields.node(name)
                self._fields.flaw(
                    name, f"is a field of the items: write it into `items`, or into `with: {{{name}: …}}`"
                )

    def _operation(self) -> AnyOperation | None:
        name = self._fields.text("operation", None)
        if name is None:
            if self._fields.is_object and "operation" not in self._fields:
                self._fields.flaw("operation", "is missing; `bulk operations` lists them")
            return None
        try:
            return find(name)
        except UnknownOperation as unknown:
            self._fields.flaw("operation", str(unknown))
            return None

    def _allowing_absence(self, operation: AnyOperation | None, missing: str) -> AnyOperation | None:
        if operation is None or missing == "fail":
            return operation
        if isinstance(operation, ProvesAbsence):
            return allowing_absence(operation)
        able = ", ".join(name for name in names() if isinstance(find(name), ProvesAbsence))
        self._fields.flaw("missing", f"{operation.name} can't prove that something is not there; these can: {able}")
        return None

    def _skipping_unchanged(self, operation: AnyOperation | None) -> AnyOperation | None:
        fields = self._fields
        if "skip_unchanged" not in fields and "resend_after" not in fields:
            return operation
        how = fields.choice("skip_unchanged", "", SKIPS)
        usual = SkipsUnchanged.resend_after_s
        after_s = fields.scalar("resend_after", usual, quantities.duration_s)
        if operation is None or isinstance(operation, SkipsUnchanged):
            return None if operation is None else skipping_unchanged(operation, how, after_s)
        field = "skip_unchanged" if "skip_unchanged" in fields else "resend_after"
        fields.flaw(field, f"{operation.name} does not remember what it sent; snapshot.create does")
        return operation

    def _defaults(self, node: Node | None, operation: AnyOperation) -> Mapping[str, Any]:
        if node is None:
            return {}
        if not isinstance(node.value, dict):
            self._fields.flaw("with", f"expected an object of fields, got {quantities.kind_of(node.value)}")
            return {}
        value: dict[str, Any] = node.plain()
        lines = node.places()
        for flaw in type_errors.flaws_of_part(value, operation.Item):
            self._fields.flaw(f"with.{flaw.field}", flaw.message, lines.get(flaw.field, node.line))
        self._refuse_secrets("with.", value, lines, operation)
        return value

    def _can_be_items(self, node: Node | None) -> bool:
        """Return whether `items` leads to items; note a flaw if it does not."""
        expected = "expected a list of items, the path of an items file, or -"
        match node.value if node else None:
            case list() | "-" | {"from": _}:
                return True
            case str(text) if text:
                try:
                    path = platform_section.absolute(text, self._folder)
                    sources.refuse_folder(path)
                    sources.format_of(path)
                    if self._needs_items:
                        sources.open_source(path).close()
                except ValueError as error:
                    self._fields.flaw("items", f"{shown(text)}: {error}")
                    return False
                return True
            case _ if node is None:
                self._fields.flaw("items", f"is missing; {expected}")
            case value:
                hint = " (one item is a list too: [{…}])" if isinstance(value, dict) else ""
                self._fields.flaw("items", f"{expected}; got {quantities.kind_of(value)}{hint}")
        return False

    def _with_items(self, job: Job, node: Node) -> Job:
        if isinstance(node.value, list):
            return self._with_inline(job, node.value)
        if isinstance(node.value, dict):
            part = self._fields.inner("items")
            derivation = derived_jobs.read(part, job.operation, job.defaults)
            app = spec_of(self._credentials.get(job.credential, ""), AppSpec)
            if app is not None and app.installation is None:
                self._fields.flaw(
                    "items",
                    f"are made from results, so that their owners are not known before; give the App of credential "
                    f"{job.credential!r} an installation: NUMBER",
                )
            self._refuse_secrets("items.map.", derivation.fields, (part.node("map") or node).places(), job.operation)
            needs = tuple(dict.fromkeys((*job.needs, *derivation.needs)))
            return replace(job, derivation=derivation, needs=needs)
        if node.value != "-":
            return replace(job, items_path=platform_section.absolute(str(node.value), self._folder))
        if secret_fields(job.operation):
            message = f"{job.operation.name} takes secrets, so its items can't come from standard input, which is kept"
            self._fields.flaw("items", message)
        return replace(job, items_path=STDIN)

    def _with_inline(self, job: Job, nodes: Sequence[Node]) -> Job:
        items: list[Mapping[str, Any]] = []
        lines: list[Mapping[str, int]] = []
        for number, node in enumerate(nodes):
            value, places = node.plain(), node.places()
            if not isinstance(value, dict):
                got = quantities.kind_of(value)
                self._fields.flaw(f"items[{number}]", f"expected an object of fields, got {got}", node.line)
                continue
            self._refuse_secrets(f"items[{number}].", value, places, job.operation)
            items.append(value)
            lines.append(places)
        return replace(job, items=tuple(items), item_lines=tuple(lines))

    def _refuse_secrets(
        self, prefix: str, value: Mapping[str, Any], lines: Mapping[str, int], operation: AnyOperation
    ) -> None:
        for name in literal_secrets(value, secret_fields(operation)):
            self._fields.flaw(f"{prefix}{name}", _NO_SECRET, lines.get(name, self._fields.line))


def _refuse_second_stdin(part: Fields, jobs: Sequence[Job]) -> None:
    for job in [job for job in jobs if job.items_path == STDIN][1:]:
        part.flaw(f"{job.name}.items", "standard input can feed one job only", part.line_at(job.name, "items"))


def _in_order(part: Fields, jobs: Sequence[Job]) -> tuple[Job, ...]:
    """Return the jobs with their numbers: needed jobs come first, otherwise the order of the file."""
    names = dict.fromkeys(part.names())
    places = {job.name: place for place, job in enumerate(jobs)}
    sorter: TopologicalSorter[int] = TopologicalSorter()
    for place, job in enumerate(jobs):
        for need in job.needs:
            if need not in names:
                _note_unknown(part, job, need, names)
        sorter.add(place, *(places[need] for need in job.needs if need in places))
    try:
        sorter.prepare()
    except CycleError as error:
        _note_circle(part, jobs, error.args[1][:0:-1])
        return ()
    order: list[int] = []
    ready: list[int] = []
    while sorter.is_active():
        for place in sorter.get_ready():
            heapq.heappush(ready, place)
        order.append(heapq.heappop(ready))
        sorter.done(order[-1])
    return tuple(replace(jobs[place], number=number) for number, place in enumerate(order))


def _note_circle(part: Fields, jobs: Sequence[Job], circle: Sequence[int]) -> None:
    """Note a flaw for a circle of jobs, each of which needs the next; it is told from the first job in the file."""
    start = circle.index(min(circle))
    names = [jobs[place].name for place in (*circle[start:], *circle[:start])]
    if len(names) > _SHOWN_CIRCLE:
        names[_SHOWN_CIRCLE - 1 : -1] = ["…"]
    way = " needs ".join([*names, names[0]])
    part.flaw(f"{names[0]}.needs", f"goes in a circle: {way}", _line(part, jobs[min(circle)]))


def _note_unknown(part: Fields, job: Job, need: str, names: Collection[str]) -> None:
    if part.flaws.is_full:
        part.flaws.count_only()  # an explanation takes time, and nobody would read it
        return
    derivation = job.derivation
    where = f"{job.name}.needs"
    if derivation is not None and need in derivation.needs:
        where = f"{job.name}.items.{'from' if need == derivation.job else 'also'}"
    part.flaw(where, f"{shown(need)}: {unknown_name(need, names, 'job')}", _line(part, job))


def _line(part: Fields, job: Job) -> int:
    node = part.node(job.name)
    values = node.value if node is not None and isinstance(node.value, dict) else {}
    inner = values.get("items" if job.derivation is not None and "needs" not in values else "needs")
    return inner.line if inner is not None else job.line
