"""Platforms that are programs of their own: `with canned() as base_url`, and they end with the block."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from subprocess import PIPE, Popen


def canned(*options: str) -> AbstractContextManager[str]:
    """Canned answers, as `canned.py` says: their base URL."""
    return _served("canned.py", options)


def canned_files(*options: str) -> AbstractContextManager[str]:
    """Files of any size, as `canned_files.py` says: their base URL."""
    return _served("canned_files.py", options)


@contextmanager
def _served(program: str, options: tuple[str, ...]) -> Iterator[str]:
    command = [sys.executable, str(Path(__file__).with_name(program)), *options]
    with Popen(command, stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()
            process.wait(60)
