"""Lends the lines of a run as one file, so that DuckDB can read them."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from bulk.audit.tables.asking import refuse_pattern
from bulk.errors import UsageError
from bulk.ledger.view import LedgerView
from bulk.storage.scratch import scratch_folder

WHOLE_BYTES = 64 * 1024 * 1024
"""Size of the first part of the lines, all of which is in a sample (bytes)."""
BLOCK_BYTES, EVERY, MOST_BLOCKS = 1024 * 1024, 8, 64
"""Of the lines behind that part, a sample has one block of `BLOCK_BYTES` in `EVERY`, and at most `MOST_BLOCKS`."""


@contextlib.contextmanager
def lines_of(view: LedgerView) -> Iterator[Path]:
    """Lend the file of the current lines: `results.jsonl` where it holds no others, else a temporary copy."""
    whole = view.whole_results()
    if whole is not None:
        yield refuse_pattern(whole.absolute())
        return
    with scratch_folder("tables") as folder:
        path = folder / "results.jsonl"
        with path.open("wb") as file:
            file.writelines(view.lines())
        yield refuse_pattern(path)


@contextlib.contextmanager
def sample_of(lines: Path) -> Iterator[Path]:
    """Lend a file that holds the first of these lines and blocks of the others; `lines` itself where they are few, or
    where there is no room for another file."""
    if lines.stat().st_size <= WHOLE_BYTES:
        yield lines
        return
    with contextlib.ExitStack() as stack:
        sample = lines
        with contextlib.suppress(OSError, UsageError), contextlib.ExitStack() as made:  # without room, nothing stays
            folder = made.enter_context(scratch_folder("tables"))
            path = folder / "sample.jsonl"
            _copy_sample(lines, path)
            sample = refuse_pattern(path)
            stack.enter_context(made.pop_all())
        yield sample


def _copy_sample(lines: Path, to: Path) -> None:
    size = lines.stat().st_size
    step = BLOCK_BYTES * max(EVERY, -(-(size - WHOLE_BYTES) // (MOST_BLOCKS * BLOCK_BYTES)))
    with lines.open("rb") as source, to.open("wb") as file:
        _copy_lines(source, file, WHOLE_BYTES)
        for at in range(source.tell() + step - BLOCK_BYTES, size, step):
            if source.tell() > at:  # a line is longer than what lies between blocks
                continue
            source.seek(at)
            source.readline()  # this line began before the block
            _copy_lines(source, file, BLOCK_BYTES)


def _copy_lines(source: BinaryIO, file: BinaryIO, most: int) -> None:
    """Copy `most` bytes, and the rest of the line in which they end."""
    while most > 0 and (block := source.read(min(most, BLOCK_BYTES))):
        most -= len(block)
        file.write(block)
    file.write(source.readline())
