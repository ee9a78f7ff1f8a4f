"""The log: on standard error, as text or as one JSON object for each line, never with a secret in it.

Every command has `--log-level` and `--log-format`; this file adds them and sets the log up before the command starts.
"""

import contextlib
import functools
import json
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

import click

from bulk.cli import options, output

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")


class Redaction(logging.Filter):
    """Takes every secret out of a record before a formatter sees it: message, arguments, traceback.

    A shortage of the machine (memory, files, a network) is not a bug, so it is logged in one line, without a traceback.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True always: a record is changed, never dropped."""
        message, error = record.getMessage(), record.exc_info[1] if record.exc_info else None
        if isinstance(error, (MemoryError, OSError)) and not logging.getLogger().isEnabledFor(logging.DEBUG):
            # asyncio's further lines name its own objects
            message = f"{message.partition(chr(10))[0]}: {str(error) or 'there is not enough memory'}"
            record.exc_info = None
        record.msg, record.args = output.redacted(message), ()
        if record.exc_info:
            record.exc_text = output.redacted(logging.Formatter().formatException(record.exc_info))
            record.exc_info = None
        return True


class TextFormat(logging.Formatter):
    """`2026-11-21T08:00:00.123Z WARNING bulk.govern: message`, a traceback below it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one record, without anything that a terminal obeys."""
        from bulk.clock import iso_utc
        from bulk.report.render.terminal import safe

        head = f"{iso_utc(record.created)} {record.levelname} {record.name}: {safe(record.getMessage())}"
        traceback = [safe(line) for line in (record.exc_text or "").splitlines()]
        return "\n".join([head, *traceback])


class JsonFormat(logging.Formatter):
    """`{"at","level","logger","message"}`, `run`, `job` and `item` where the record is about them, and a `traceback`.

    Attributes:
        run_dir: directory of the run that this process drives; None: it drives no run.
    """

    run_dir: Path | None = None

    def format(self, record: logging.LogRecord) -> str:
        """Return one record on one line."""
        from bulk.clock import iso_utc

        line: dict[str, str | int | None] = {
            "at": iso_utc(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if self.run_dir is not None:
            line["run"] = output.redacted(self.run_dir.name)
            number, item = getattr(record, "job_number", -1), getattr(record, "item", -1)
            if number >= 0:
                line["job"], line["item"] = _job_name(self.run_dir, number), item
        if record.exc_text:
            line["traceback"] = record.exc_text
        return json.dumps(line)


class Log(logging.StreamHandler[TextIO]):
    """Writes to standard error; while a live display owns the terminal, to the notes that scroll by above it."""

    note: Callable[[str], None] | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Show one record."""
        if self.note is None:
            super().emit(record)
            return
        for line in self.format(record).split("\n"):
            self.note(line)


@functools.lru_cache(maxsize=100)
def _job_name(run_dir: Path, number: int) -> str:
    """Return the name of a job by its number in the ledger; the number where the ledger can't be read."""
    from bulk.errors import BulkError
    from bulk.ledger.view import LedgerView

    try:
        return output.redacted(LedgerView(run_dir).identity().jobs[number][0])
    except (BulkError, IndexError):
        return str(number)


@contextlib.contextmanager
def about_run(run_dir: Path) -> Iterator[None]:
    """Mark the lines of the log within the block as being about the run in `run_dir`."""
    forms = [each.formatter for each in logging.getLogger().handlers if isinstance(each.formatter, JsonFormat)]
    for form in forms:
        form.run_dir = run_dir
    try:
        yield
    finally:
        for form in forms:
            form.run_dir = None


@contextlib.contextmanager
def noted_by(note: Callable[[str], None]) -> Iterator[None]:
    """Hand the log's lines to `note` within the block, so that they don't tear a live display apart."""
    logs = [handler for handler in logging.getLogger().handlers if isinstance(handler, Log)]
    for log in logs:
        log.note = note
    try:
        yield
    finally:
        for log in logs:
            log.note = None


def set_up(level: str, form: str) -> None:
    """Send every record from `level` on to standard error, in the format `form`; replaces an earlier set-up."""
    handler = Log(sys.stderr)
    handler.addFilter(Redaction())
    handler.setFormatter(JsonFormat() if form == "json" else TextFormat())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(True)
    logging.raiseExceptions = False  # a log that can't be written is no reason for a traceback


class Command(click.Command):
    """A command with the two options of the log, which is set up before anything else happens. No value is empty."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += [
            click.Option(
                ["--log-level"],
                type=click.Choice(LEVELS, case_sensitive=False),
                default="warning",
                show_default=True,
                help="Log this and what is more serious.",
            ),
            click.Option(
                ["--log-format"],
                type=click.Choice(FORMATS, case_sensitive=False),
                default="text",
                show_default=True,
                help="Format of the log.",
            ),
        ]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line, after it was looked at for values that are empty texts."""
        if not ctx.resilient_parsing:  # what a shell completes may be empty still
            options.refuse_empty(self, ctx, args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Set the log up, then run the command without these two options."""
        set_up(ctx.params.pop("log_level"), ctx.params.pop("log_format"))
        return super().invoke(ctx)
