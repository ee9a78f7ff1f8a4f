"""Prints results on standard output, and everything else on standard error.

If a reader goes away (`bulk report … | head`), that is not an error: the command goes on quietly and keeps its exit
code.
"""

import contextlib
import io
import os
import select
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, TypedDict

from bulk.errors import RunDirectoryError

if TYPE_CHECKING:
    from bulk.report.record import Report


def prepare_streams() -> None:
    """Make sure that printing can't fail for a closed stream, nor for a character that its encoding lacks.

    The next file or connection would get the descriptor of a closed stream, and must not pass for that stream.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
    sys.stdout, sys.stderr = (stream or open(os.devnull, "w") for stream in (sys.stdout, sys.stderr))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def give_up_stdout() -> None:
    """Discard everything that is still printed, so that not even the interpreter's last flush complains."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError, AttributeError):
        pass


def is_unread() -> bool:
    """Return whether standard output is a pipe that nobody reads any more."""
    poll = select.poll()
    try:
        poll.register(sys.stdout.fileno(), 0)
    except (OSError, ValueError, AttributeError):
        return False
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def out(text: str) -> None:
    """Print a result that is safe as it is: JSON, or text made by a report."""
    with binary_out():
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()


@contextlib.contextmanager
def binary_out() -> Iterator[BinaryIO]:
    """Lend standard output for any number of bytes; the block ends quietly once the reader is gone.

    Raises:
        RunDirectoryError: standard output can't be written: its disk is full, or it is open for reading alone.
    """
    try:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        give_up_stdout()
    except OSError as error:
        if error.filename is not None:  # the block itself has read a file
            raise
        raise unwritable(error) from error


def unwritable(error: OSError) -> RunDirectoryError:
    """Return the error for standard output that can't be written; nothing more is written there."""
    give_up_stdout()  # told once, and not again by the interpreter's last flush
    return RunDirectoryError(f"standard output can't be written: {error.strerror}; send it to another place")


class Look(TypedDict):
    """How text is laid out for standard output: what the renderers of `bulk.report` take."""

    is_coloured: bool
    columns: int


def look() -> Look:
    """Return the layout: colour where it is seen and wanted, and `COLUMNS`, the terminal's width, or no limit."""
    from bulk.report.render.terminal import wants_colour

    return Look(is_coloured=wants_colour(sys.stdout, os.environ), columns=_columns())


def _columns() -> int:
    from bulk.report.render.terminal import UNLIMITED

    asked = os.environ.get("COLUMNS", "")
    if asked.isascii() and asked.isdigit() and len(asked) < 6 and int(asked):
        return int(asked)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or UNLIMITED
    except (OSError, ValueError, AttributeError):
        return UNLIMITED


def out_json(value: Any) -> None:
    """Print a value as indented JSON, without secrets; structs become objects, moments texts."""
    import msgspec

    from bulk.redaction import redact_json
    from bulk.report.render.json_data import as_data, encoded

    out(msgspec.json.format(redact_json(encoded(as_data(value))), indent=2).decode())


def out_report(report: "Report", *, as_json: bool) -> None:
    """Print the report of a run: as JSON, or as text for people."""
    from bulk.report import report_files
    from bulk.report.render import text

    out(report_files.as_json(report).decode() if as_json else text.render(report, **look()))


def out_table(head: Sequence[str], rows: Iterable[Sequence[str]], *, right: frozenset[int] = frozenset()) -> None:
    """Print aligned columns, which are never cut, so that a script can read them.

    Args:
        right: columns that stand to the right (counted from 0), such as numbers.
    """
    from bulk.report.render.terminal import aligned, line_of

    for cells in aligned([head, *([redacted(cell) for cell in row] for row in rows)], 0, names=0, right=right):
        out(line_of(cells))


def say(text: str, *, is_public: bool = False) -> None:
    """Say one line or a few to people, on standard error, without secrets and terminal sequences.

    Args:
        is_public: nothing in the text is a secret, although it may look so, such as the tokens of every sandbox.
    """
    from bulk.report.render.terminal import safe

    lines = (safe(line) for line in (text if is_public else redacted(text)).split("\n"))
    with contextlib.suppress(OSError, ValueError):  # nobody may be listening
        sys.stderr.write("\n".join(lines) + "\n")
        sys.stderr.flush()


def redacted(text: str) -> str:
    """Return `text` without any secret that this process has read."""
    from bulk.redaction import redact

    return redact(text)
