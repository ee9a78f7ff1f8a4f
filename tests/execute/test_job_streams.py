"""Which jobs are offered in the order of their source, and which through the index of lanes."""

from dataclasses import replace
from pathlib import Path

import pytest

from bulk.execute.job_streams import JobStreams
from bulk.manifest.manifest import Derivation, Job
from tests.manifest.making import ReadThing, WriteThing, a_job, check_in

APART, SHARED = [{"place": "a"}, {"place": "b"}], [{"place": "a"}, {"place": "A"}]
LINES = '{"place":"a"}\n{"place":"b"}\n'
MADE = a_job(
    WriteThing(), [], name="made", needs=("write",), derivation=Derivation("write", "item", {"place": "item.place"})
)


def file(folder: Path, name: str, text: str) -> Path:
    """An items file."""
    (folder / name).write_text(text)
    return folder / name


def offered(folder: Path, *jobs: Job) -> list[bool]:
    """Which of these jobs stream."""
    jobs = tuple(replace(job, number=number) for number, job in enumerate(jobs))
    checked, workspace = check_in(folder, *jobs)
    job_streams = JobStreams(checked, workspace)
    streams = [job_streams.offered(job.number) is not None for job in jobs]
    job_streams.close()
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
