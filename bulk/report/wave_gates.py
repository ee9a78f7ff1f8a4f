"""The decisions of people about the waves of a run, and the closed gate that has ended it."""

import re
from pathlib import Path
from typing import Final

import msgspec

from bulk.errors import UNDECODABLE, RunDirectoryError
from bulk.ledger.records import Action
from bulk.storage.private_files import read_regular

NAME: Final = "gates.json"
"""The file in a run directory with the waves that people have opened and accepted."""


class Gates(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided about the waves of a run.

    Attributes:
        opened: the last wave that may begin where the gate is manual (number).
        accepted: waves that go on although they were over a budget (numbers).
        opens_at: when the wave after those that were judged may begin (UTC epoch seconds).
        opened_by: who opened waves, for the process that goes on with the run, which writes the ledger.
    """

    opened: int = 1
    accepted: frozenset[int] = frozenset()
    opens_at: float = 0.0
    opened_by: tuple[Action, ...] = ()


def read_gates(run_dir: Path) -> Gates:
    """Return the decisions so far.

    Raises:
        RunDirectoryError: the file is damaged.
    """
    path = run_dir / NAME
    try:
        return msgspec.json.decode(read_regular(path), type=Gates)
    except FileNotFoundError:
        return Gates()
    except (OSError, *UNDECODABLE) as error:
        raise RunDirectoryError(f"{path} can't be read: {error}; delete it: only the first wave is open then") from None


class ClosedGate(msgspec.Struct, frozen=True, kw_only=True):
    """Why a run has ended before a wave, or within it.

    Attributes:
        wave, of: the number of the wave, and how many waves its job has. job: the name of the job.
        is_over: the wave is over a budget of `limits.errors`; otherwise it waits to be opened.
    """

    wave: int
    of: int
    job: str
    is_over: bool


_CLOSED = re.compile(r"wave (\d{1,3}) of (\d{1,3}) of (\S+) (waits to be opened|stopped): ")


def closed_gate(why: str) -> ClosedGate | None:
    """Return the gate that ended a run, from the reason that `WaveBudgets` gave for it; None: it was not a gate."""
    found = _CLOSED.match(why)
    if found is None:
        return None
    wave, of, job, what = found.groups()
    return ClosedGate(wave=int(wave), of=int(of), job=job, is_over=what == "stopped")


def waits_to_be_opened(job: str, number: int, of: int, how: str) -> str:
    """Return the reason why a run ends before wave `number` of `of`; `how`: how that wave is opened."""
    return f"wave {number} of {of} of {job} waits to be opened: {how}"
