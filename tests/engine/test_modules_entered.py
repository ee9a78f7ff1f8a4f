"""How many modules one item enters from being taken to being durable: what a reader has to open.

The engine and the operations count, in the task that works on the item, and what writes its outcome to disk. The
sandbox runs elsewhere; what other tasks do meanwhile, like a status or a question about limits, does not count.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from types import FrameType
from typing import Any

import anyio
import pytest

import bulk
from bulk import redaction
from bulk.execute.hand_over import HandOver
from bulk.ledger.ledger import Ledger
from bulk.ledger.records import Intent, Record
from bulk.schedule.queues import Queue, Work
from bulk.schedule.scheduler import Scheduler
from tests.e2e.support.platform import ADMIN, Served, served

TRACED = 1
"""The item in the middle: the first one also opens files, the last one also ends its job."""
MOST_FOR_A_READ, MOST_FOR_A_WRITE = 43, 50
TRIES = 10
"""The fewest of this many runs count: a request that has to wait, as on a machine that is busy, enters more."""
ORGANIZATION = "acme"


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A platform with a few repositories."""
    fleet = {"organization": ORGANIZATION, "count": 4, "readme_bytes": 200}
    with served(tmp_path_factory.mktemp("sandbox"), seed={"repositories": fleet}) as sandbox:
        yield sandbox


class Trace:
    """The modules that one task enters while it is on, in the order in which they are entered first."""

    def __init__(self) -> None:
        self.modules: dict[str, None] = {}
        self._is_on: ContextVar[bool] = ContextVar("is_on", default=False)

    def begin(self) -> None:
        """From here on in this task and thread."""
        self._is_on.set(True)
        sys.setprofile(self._called)

    def end(self) -> None:
        """Until here."""
        self._is_on.set(False)

    def _called(self, frame: FrameType, event: str, _: Any) -> None:
        name = str(frame.f_globals.get("__name__", ""))
        if event == "call" and self._is_on.get() and name.split(".", maxsplit=1)[0] in ("bulk", "bulk_jobs"):
            self.modules[name] = None


def fewest(
    sandbox: Served, operation: str, most: int, items_of: Callable[[int], Sequence[Mapping[str, Any]]]
) -> list[str]:
    """What the item in the middle enters in the shortest of several runs; of the first one that enters few enough."""
    shortest: list[str] = []
    for number in range(TRIES):
        modules = entered(sandbox, operation, items_of(number))
        shortest = min(filter(None, (shortest, modules)), key=len)
        if len(shortest) <= most:
            break
    return shortest


def entered(sandbox: Served, operation: str, items: Sequence[Mapping[str, Any]]) -> list[str]:
    """The modules that the item in the middle enters from being taken to being on disk."""
    trace, take, end, commit = Trace(), Scheduler.take, HandOver.end, Ledger.commit

    def taken(self: Scheduler, queue: Queue) -> Work | None:
        work = take(self, queue)
        if work is not None and work.entry.index == TRACED:
            trace.begin()
        return work

    def ended(self: HandOver, *arguments: Any) -> None:
        end(self, *arguments)
        trace.end()

    def committed(self: Ledger, entries: Sequence[Intent | Record], *more: Any) -> None:
        if TRACED in (entry.finished.index if isinstance(entry, Record) else entry.index for entry in entries):
            trace.begin()
        commit(self, entries, *more)
        trace.end()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Scheduler, "take", taken)
        patch.setattr(HandOver, "end", ended)
        patch.setattr(Ledger, "commit", committed)
        # other tests of this process may have remembered secrets that are searched for in further spellings
        patch.setattr(redaction._REGISTRY, "_has_escapes", False)
        try:
            anyio.run(_run, sandbox, operation, items)
        finally:
            sys.setprofile(None)
    return list(trace.modules)


async def _run(sandbox: Served, operation: str, items: Sequence[Mapping[str, Any]]) -> None:
    async with bulk.Engine(base_url=sandbox.base_url, environ={"BULK_TOKEN": ADMIN}, concurrency=1) as engine:
        outcomes = [each.outcome async for each in engine.map(operation, items)]
    assert outcomes == ["succeeded"] * len(items)


@pytest.mark.interpreted  # what is compiled can't be traced
def test_a_read_enters_few_modules(sandbox: Served, figure: Callable[[str], None]) -> None:
    """A README that is fetched."""
    items = [{"owner": ORGANIZATION, "repo": f"repo-{number:05d}"} for number in range(3)]
    modules = fewest(sandbox, "readme.get", MOST_FOR_A_READ, lambda _: items)
    figure(f"{len(modules)} modules: {', '.join(modules)}")
    assert len(modules) <= MOST_FOR_A_READ


@pytest.mark.interpreted  # what is compiled can't be traced
def test_a_write_enters_few_modules(sandbox: Served, figure: Callable[[str], None]) -> None:
    """A file that is written, between two others of its repository."""
    one = {"owner": ORGANIZATION, "repo": "repo-00000", "message": "m", "content": "YQ=="}

    def items_of(run: int) -> list[dict[str, str]]:
        return [{**one, "path": f"{run}/{number}.txt"} for number in range(3)]

    modules = fewest(sandbox, "contents.put", MOST_FOR_A_WRITE, items_of)
    figure(f"{len(modules)} modules: {', '.join(modules)}")
    assert len(modules) <= MOST_FOR_A_WRITE
