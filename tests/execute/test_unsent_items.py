"""Which jobs are offered in the order of their source, and which through the index of lanes."""

from dataclasses import replace
from pathlib import Path

import pytest

from bulk.bundle.streams import LaneIndex
from bulk.clock import Clock
from bulk.errors import BulkError
from bulk.execute.resume_state import begin
from bulk.execute.unsent_items import UnsentItems
from bulk.manifest.manifest import Derivation, Job
from bulk.schedule.scheduler import Scheduler
from bulk.storage.disk_threads import thread_disk
from tests.ledger.samples import NOW, identity, opened
from tests.manifest.making import ReadThing, WriteThing, a_job, check_in

APART, SHARED = [{"place": "a"}, {"place": "b"}], [{"place": "a"}, {"place": "A"}]
LINES = '{"place":"a"}\n{"place":"b"}\n'
MADE = a_job(
    WriteThing(), [], name="made", needs=("write",), derivation=Derivation("write", "item", {"place": "item.place"})
)


def never(error: BulkError) -> None:
    """Nothing stops here."""
    raise error


def file(folder: Path, name: str, text: str) -> Path:
    """An items file."""
    (folder / name).write_text(text)
    return folder / name


def offered(folder: Path, *jobs: Job) -> list[bool]:
    """Which of these jobs stream."""
    jobs = tuple(replace(job, number=number) for number, job in enumerate(jobs))
    checked, workspace = check_in(folder, *jobs)
    named = tuple((job.name, job.operation.name, one.items) for job, one in zip(jobs, checked.jobs, strict=True))
    with opened(folder / "ledger", identity=identity(jobs=named)) as ledger, LaneIndex(checked, workspace) as index:
        progress = begin(checked, ledger, 5.0, NOW).progress
        unsent_items = UnsentItems(checked, workspace, ledger, progress, index, Clock(), thread_disk, never)
        unsent_items.scheduler = Scheduler(jobs, progress, unsent_items.offered, index, 4, unsent_items.skip)
        streams = [unsent_items.offered(job.number) is not None for job in jobs]
        unsent_items.close()
    return streams


def write(items: Path | list[dict[str, str]]) -> Job:
    """A job that writes."""
    return a_job(WriteThing(), items, name="write")


@pytest.mark.parametrize(
    ("jobs", "streams"),
    [
        pytest.param(lambda _: [write(APART)], [True, True], id="inline"),
        pytest.param(lambda folder: [write(file(folder, "i.jsonl", LINES))], [True, True], id="a lane each"),
        pytest.param(lambda _: [write(SHARED)], [True, False], id="a shared lane"),
        pytest.param(lambda folder: [write(file(folder, "i.csv", "place\na\nb\n"))], [True, False], id="copied"),
        pytest.param(lambda _: [write(APART), MADE], [True, False, False], id="others are made"),
    ],
)
def test_who_is_offered_as_a_stream(tmp_path, jobs, streams) -> None:
    """Reads always; writes where nothing waits for another, lies in a copy, or may have to wait for what is made."""
    assert offered(tmp_path, a_job(ReadThing(), SHARED, name="read"), *jobs(tmp_path)) == streams
