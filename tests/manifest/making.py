"""What these tests make manifests from: operations that need no platform, and short ways to a checked manifest."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from bulk.bundle.checked import Checked
from bulk.bundle.streams import EntryStream, LaneIndex
from bulk.capabilities import FileError, HoldsSecrets, TakesFiles
from bulk.check.checking import check
from bulk.manifest.manifest import Entry, Job, Limits, Manifest, Platform
from bulk.manifest.reading import Overrides, read_manifest
from bulk.operation import Item, ItemFlaw, Operation

HEAD = "version: 1\nplatform: {base_url: 'http://127.0.0.1:9/api/v3'}\n"


class Person(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    name: str
    email: str


class ThingItem(Item, frozen=True, kw_only=True):
    place: str
    number: int | None = None
    share: float | None = None
    is_new: bool | None = None
    kind: Literal["small", "large"] | None = None
    tags: list[str] | None = None
    person: Person | None = None
    people: list[Person] | None = None
    extra: dict[str, str | int | float | bool | None] | None = None
    anything: Any = None
    path: str | None = None
    short: Annotated[str, msgspec.Meta(max_length=5)] | None = None
    also: str | None = None
    secret: str | None = None
    text: str | None = None
    text_file: str | None = None


class ReadThing(Operation[ThingItem]):
    """A read that takes everything."""

    name = "thing.read"
    Item = ThingItem


class WriteThing(TakesFiles[ThingItem]):
    """A write with lanes, files and a check."""

    name = "thing.write"
    Item = ThingItem
    category = "things"
    is_read = False
    most_requests = 3
    file_fields: ClassVar = {"text_file": "text"}

    def check(self, item: ThingItem) -> Iterator[ItemFlaw]:
        if item.number is not None and item.number < 0:
            yield ItemFlaw("number", "expected 0 or more")

    def lanes(self, item: ThingItem) -> tuple[str, ...]:
        if not item.place:
            return ()
        return (item.place,) if item.also is None else (item.place, item.also)

    def with_file(self, item: ThingItem, field: str, data: bytes) -> ThingItem:
        if data.startswith(b"bad"):
            raise FileError("begins with bad")
        return msgspec.structs.replace(item, text=data.decode(), text_file=None)


class SecretThing(WriteThing, HoldsSecrets[ThingItem]):
    """A write with a secret; can't be undone."""

    name = "thing.keep"
    is_irreversible = True
    secret_fields = frozenset({"secret"})


def a_job(
    operation: Operation[Any],
    items: Sequence[Mapping[str, Any]] | Path,
    *,
    number: int = 0,
    name: str = "x",
    **more: Any,
) -> Job:
    """A job made by hand, of an operation that is not installed."""
    if isinstance(items, Path):
        return Job(number=number, name=name, operation=operation, items_path=items, **more)
    return Job(number=number, name=name, operation=operation, items=tuple(items), **{"allow_empty": True, **more})


def a_manifest(folder: Path, *jobs: Job, limit: int | None = None, digest: str = "d", **limits: Any) -> Manifest:
    """A manifest of jobs made by hand."""
    platform = Platform(base_url="http://127.0.0.1:9/api/v3")
    return Manifest(folder / "m.yaml", "m", "", digest, platform, Limits(**limits), jobs, limit)


def workspace_in(folder: Path, name: str = "run") -> Path:
    """A workspace below `folder`."""
    path = folder / name
    path.mkdir(exist_ok=True)
    return path


def check_in(folder: Path, *jobs: Job, **more: Any) -> tuple[Checked, Path]:
    """The check of jobs made by hand, and its workspace."""
    workspace = workspace_in(folder)
    return check(a_manifest(folder, *jobs, **more), workspace), workspace


def check_text(folder: Path, text: str, **files: "bytes | str") -> tuple[Checked, Path]:
    """The check of a manifest's text; `a_jsonl=…` is the file `a.jsonl`."""
    (folder / "m.yaml").write_text(HEAD + text)
    for name, data in files.items():
        (folder / name.replace("_", ".")).write_bytes(data.encode() if isinstance(data, str) else data)
    workspace = workspace_in(folder)
    return check(read_manifest(folder / "m.yaml", Overrides(), {}), workspace), workspace


def stream(checked: Checked, workspace: Path, number: int = 0, count: int = 3) -> list[Entry]:
    """All entries of a job, in small steps."""
    source, found = EntryStream(checked, number, workspace), []
    while taken := source.take(count, lambda index: index):
        found += taken
    return found


def thing(entry: Entry | Item) -> ThingItem:
    """The item of an entry, of an operation of this file."""
    item = entry.item if isinstance(entry, Entry) else entry
    assert isinstance(item, ThingItem)
    return item


def lanes_of(checked: Checked, workspace: Path) -> list[tuple[int, str, list[tuple[int, int]]]]:
    """(job that it belongs to, label, [(job, index) of each item]) of every lane."""
    found = []
    with LaneIndex(checked, workspace) as index:
        for job in checked.manifest.jobs:
            after = 0
            while lanes := index.lanes(job.number, after=after, count=2):
                after += len(lanes)
                for lane in lanes:
                    entries: list[tuple[int, int]] = []
                    last = -1
                    while some := index.entries(lane.key, after=last, count=2):
                        last = some[-1][0]
                        entries += [(entry.job, entry.index) for _, entry in some]
                    assert len(entries) == lane.items
                    found.append((job.number, lane.label, entries))
    return found
