"""A search index: the text of every item that has ended, in lower case, in a file that is searched as a whole.

`text` has a line for each line of `results.jsonl`: label, index, id and request id of the item, and the code and the
message of its error. `rows` has three numbers of 64 bits for each line: where it begins in `text`, where it begins in
`results.jsonl`, and one with its job, outcome, code and index. Both are private files in the user's cache, which the
system maps into memory and which grow with the run, a part at a time. Within a part, items of one job that ended alike
stand together, so that a filter leaves a few stretches of text, and nothing else is read. The results were redacted
when they were written. A line may have been replaced since, so the caller looks each hit up in the ledger.
"""

import contextlib
import mmap
import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec

from bulk.errors import UNDECODABLE
from bulk.ledger.database import Index
from bulk.ledger.view import LedgerView
from bulk.model import SUCCESSFUL, ErrorCode
from bulk.report.record import OUTCOMES
from bulk.report.tally import label_of_redacted
from bulk.report.tally_rows import LineError
from bulk.storage.private_files import open_private, write_all, write_whole

STEP_BYTES = 512 * 1024
MOST_TEXT = 600
"""How many characters of one item can be searched (count)."""
BLOCK_ROWS = 65_536
"""To how many rows the filter is applied at once; their text is the most that is searched in one go (count)."""

_ROW_NUMBERS = 3
_INDEX_BITS, _CODE_BITS, _OUTCOME_BITS = 36, 8, 4
_OUTCOMES = {word: number for number, word in enumerate(OUTCOMES)}
_CODES = {str(code): number for number, code in enumerate(ErrorCode, 1)}
_OTHER_CODE = (1 << _CODE_BITS) - 1
_RESULT = b',"result":'


class _Searched(msgspec.Struct):
    """The fields of a line of `results.jsonl` that can be searched."""

    job: str
    index: Index
    outcome: str
    item: msgspec.Raw = msgspec.Raw(b"{}")
    id: str | None = None
    request_id: str | None = None
    error: LineError | None = None


Looked: TypeAlias = Generator[tuple[int, bool], None, None]
"""Yields the row that the search has reached, and whether that row is a hit; rows come in their order."""

_decode = msgspec.json.Decoder(_Searched).decode
_fields = msgspec.json.Decoder(dict[str, Any]).decode


class _Meta(msgspec.Struct, frozen=True):
    """How much is indexed: run directory and generation, bytes of `results.jsonl` and of `text`, and rows (count)."""

    run_dir: str
    generation: int = -1
    results_bytes: int = 0
    text_bytes: int = 0
    rows: int = 0


class Hit(NamedTuple):
    """An item whose text was found: the number of its job, its index, and where its line begins in the results."""

    job: int
    place: int
    position: int


class Found(NamedTuple):
    """The hits, where the search goes on (bytes of `text`), and whether all of the text was searched."""

    hits: list[Hit]
    next: int
    is_complete: bool


class Wanted(NamedTuple):
    """A filter of items: job number, outcome and code; None or empty: any."""

    job: int | None
    outcome: str
    code: str

    def mask(self) -> tuple[int, int]:
        """Return a mask of the bits of a row's third number that the filter compares, and the values of those bits."""
        parts = (
            (self.job, 48, 16),
            (_OUTCOMES.get(self.outcome) if self.outcome else None, _INDEX_BITS + _CODE_BITS, _OUTCOME_BITS),
            (_CODES.get(self.code, _OTHER_CODE) if self.code else None, _INDEX_BITS, _CODE_BITS),
        )
        mask = value = 0
        for number, shift, bits in parts:
            if number is not None:
                mask |= ((1 << bits) - 1) << shift
                value |= number << shift
        return mask, value


class SearchIndex:
    """The index of one run.

    Args:
        folder: the folder of its files; it is made where there is none.
        monotonic: returns seconds that never jump.
    """

    def __init__(self, view: LedgerView, folder: Path, monotonic: Callable[[], float]) -> None:
        self._view, self._folder, self._monotonic = view, folder, monotonic
        self._jobs = {job[0]: number for number, job in enumerate(view.identity().jobs)}
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._meta = self._kept_meta = self._kept()

    @property
    def text_bytes(self) -> int:
        """Size of the text (bytes)."""
        return self._meta.text_bytes

    def grow(self, seconds: float) -> float:
        """Index new results for about `seconds`; returns the share of the results that is indexed by now (0.0 to 1.0).

        Raises:
            RunDirectoryError: the results can't be read. OSError: the index can't be written.
        """
        until = self._monotonic() + seconds
        while True:
            new = self._view.appended(self._meta.generation, self._meta.results_bytes, STEP_BYTES)
            if new.generation != self._meta.generation:
                self._meta = _Meta(str(self._view.run_dir.resolve()), new.generation)
            if new.lines:
                self._add(new.start, new.lines)
            if not new.lines:
                if self._meta != self._kept_meta:
                    self._keep()
                return 1.0
            if self._monotonic() >= until:
                return min(0.999, self._meta.results_bytes / new.end)

    def find(self, needle: str, wanted: Wanted, after: int, most: int, seconds: float) -> Found:
        """Return items whose text holds `needle`, in whatever case, about in the order in which they ended.

        Args:
            after: where an earlier search has stopped (bytes of `text`).
            most: return at most this many hits (count). seconds: how long to search; a later call can go on.
        """
        sought = needle.lower().encode("utf-8", "replace")
        if not self._meta.rows:
            return Found([], 0, True)
        until, hits, at = self._monotonic() + seconds, list[Hit](), after
        with self._mapped() as (text, table, rows):
            starts = rows[::_ROW_NUMBERS]
            with contextlib.closing(_looked(text, table, starts, sought, wanted.mask(), after)) as looked:
                for row, is_hit in looked:
                    if is_hit:
                        key = rows[row * _ROW_NUMBERS + 2]
                        hits.append(Hit(key >> 48, key & ((1 << _INDEX_BITS) - 1), rows[row * _ROW_NUMBERS + 1]))
                    at = starts[row + 1] if row + 1 < len(starts) else self._meta.text_bytes
                    if len(hits) == most or self._monotonic() >= until:
                        break
                else:
                    at = self._meta.text_bytes
            starts.release()
        return Found(hits, at, at >= self._meta.text_bytes)

    @contextlib.contextmanager
    def _mapped(self) -> Iterator[tuple[mmap.mmap, mmap.mmap, memoryview]]:
        """Lend the text, the rows as bytes, and the rows as numbers."""
        with contextlib.ExitStack() as stack:
            files = []
            for name, size in (("text", self._meta.text_bytes), ("rows", self._meta.rows * 8 * _ROW_NUMBERS)):
                fd = open_private(self._folder / name, os.O_RDONLY)
                stack.callback(os.close, fd)
                files.append(stack.enter_context(mmap.mmap(fd, size, access=mmap.ACCESS_READ)))
            raw = stack.enter_context(memoryview(files[1]))
            yield files[0], files[1], stack.enter_context(raw.cast("Q"))

    def _add(self, start: int, lines: bytes) -> None:
        found, position = list[tuple[int, int, bytes]](), start
        for line in lines.splitlines(keepends=True):
            searched = _searched(line)
            if searched is not None and searched.job in self._jobs:
                found.append((self._key(searched), position, _text_of(searched) + b"\n"))
            position += len(line)
        found.sort(key=_ended_how)
        text, rows = bytearray(), bytearray()
        for key, place, words in found:
            for number in (self._meta.text_bytes + len(text), place, key):
                rows += number.to_bytes(8, "little")
            text += words
        self._append("text", self._meta.text_bytes, text)
        self._append("rows", self._meta.rows * 8 * _ROW_NUMBERS, rows)
        self._meta = _Meta(
            self._meta.run_dir,
            self._meta.generation,
            position,
            self._meta.text_bytes + len(text),
            self._meta.rows + len(rows) // 8 // _ROW_NUMBERS,
        )

    def _key(self, found: _Searched) -> int:
        """Return the job, outcome, code and index of an item as one number."""
        code = found.error.code if found.error is not None else ""
        key = self._jobs[found.job] << 48 | _OUTCOMES.get(found.outcome, 0) << (_INDEX_BITS + _CODE_BITS)
        return key | (_CODES.get(code, _OTHER_CODE) if code else 0) << _INDEX_BITS | found.index

    def _append(self, name: str, size: int, data: bytearray) -> None:
        """Write behind the first `size` bytes, over anything that a killed process has left there."""
        fd = open_private(self._folder / name, os.O_RDWR | os.O_CREAT)
        try:
            os.ftruncate(fd, size)
            os.lseek(fd, size, os.SEEK_SET)
            write_all(fd, data)
        finally:
            os.close(fd)

    def _kept(self) -> _Meta:
        place = str(self._view.run_dir.resolve())
        try:
            found = msgspec.json.decode((self._folder / "meta.json").read_bytes(), type=_Meta)
            sizes = [(self._folder / name).stat().st_size for name in ("text", "rows")]
        except (OSError, *UNDECODABLE):
            return _Meta(place)
        is_whole = sizes[0] >= found.text_bytes and sizes[1] >= found.rows * 8 * _ROW_NUMBERS
        return found if is_whole and found.run_dir == place else _Meta(place)

    def _keep(self) -> None:
        write_whole(self._folder / "meta.json", msgspec.json.encode(self._meta))
        self._kept_meta = self._meta


def place_of(folder: Path) -> Path | None:
    """Return the run directory of the index in `folder`; None where the folder has no index."""
    try:
        return Path(msgspec.json.decode((folder / "meta.json").read_bytes(), type=_Meta).run_dir)
    except (OSError, *UNDECODABLE):
        return None


def searched_text(line: bytes) -> bytes:
    """Return the text of a result line that is searched, in lower case; empty where the line can't be read."""
    found = _searched(line)
    return b"" if found is None else _text_of(found)


def _searched(line: bytes) -> _Searched | None:
    """Return the fields of a line that can be searched; None where the line can't be read.

    Of an item that went well only the head of the line is decoded, because its result may have megabytes.
    """
    end = line.find(_RESULT)
    for head in (line[:end] + b"}", line) if end > 0 else (line,):
        try:
            found = _decode(head)
        except UNDECODABLE:
            continue
        if found.outcome in SUCCESSFUL or head is line:
            return found
    return None


def _text_of(found: _Searched) -> bytes:
    words = [label_of_redacted(_fields(found.item)), f"#{found.index}"]
    words += filter(None, (found.id, found.request_id))
    if found.error is not None:
        words += (found.error.code, found.error.message)
    text = "\t".join(words).lower()[:MOST_TEXT]
    return text.replace("\n", " ").encode("utf-8", "replace")


def _ended_how(row: tuple[int, int, bytes]) -> int:
    """Return a number made of job, outcome and code, by which the items of a part are sorted."""
    return row[0] >> _INDEX_BITS


def _looked(
    text: mmap.mmap, table: mmap.mmap, starts: memoryview, sought: bytes, filtered: tuple[int, int], after: int
) -> Looked:
    """Yield each row that passes the filter and holds the text, as a hit.

    The last row of each searched stretch is yielded too, not as a hit, so that the caller can check the time.

    Args:
        filtered: mask and value, see `Wanted.mask`.
        after: where the search begins (bytes of `text`).
    """
    size = len(starts)
    for first in range(bisect_left(starts, after), size, BLOCK_ROWS):
        behind = min(size, first + BLOCK_ROWS)
        marks = _marks(table, first, behind, *filtered)
        begin = marks.find(1)
        while begin >= 0:  # a stretch of rows that pass the filter
            end = marks.find(0, begin)
            end = len(marks) if end < 0 else end
            row, last = first + begin, first + end
            stop = starts[last] if last < size else len(text)
            at = text.find(sought, starts[row], stop)
            while at >= 0:
                row = bisect_right(starts, at, row, last)
                yield row - 1, True
                at = text.find(sought, starts[row], stop) if row < last else -1
            yield last - 1, False
            begin = marks.find(1, end)
        yield behind - 1, False


def _marks(table: mmap.mmap, first: int, behind: int, mask: int, value: int) -> bytes:
    """Return a byte for each of these rows: 1 where the bits of `mask` in its third number are those of `value`.

    There is no loop over rows, for speed: a column of bytes is one slice, and two columns are combined as two large
    numbers.
    """
    width, marks = 8 * _ROW_NUMBERS, b"\1" * (behind - first)
    for place in range(8):
        bits, wished = mask >> 8 * place & 0xFF, value >> 8 * place & 0xFF
        if bits:
            column = table[first * width + width - 8 + place : behind * width : width]
            found = column.translate(bytes(byte & bits == wished for byte in range(256)))
            both = int.from_bytes(marks, "little") & int.from_bytes(found, "little")
            marks = both.to_bytes(len(marks), "little")
    return marks
