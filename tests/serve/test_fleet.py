"""The list of all runs is looked at again when that is due, however many runs there are."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bulk.clock import Clock
from bulk.ledger.directory import ORIGIN
from bulk.serve.fleet import FRESH_S, MOST_STALE_S, Fleet


class Slow(Clock):
    """A clock that a look at the nights of audits moves on."""

    def __init__(self, look_s: float) -> None:
        self.at, self.looks, self._look_s = 0.0, 0, look_s
        self.monotonic = lambda: self.at

    def pending(self) -> Iterator[tuple[str, str, Path]]:
        """No nights, after a while."""
        self.at += self._look_s
        self.looks += 1
        return iter(())

    def run_dir(self, _: str) -> Path | None:
        """No run."""
        return None


@pytest.mark.parametrize(("look_s", "used_s"), [(0.0, FRESH_S), (0.5, 2.0), (60.0, MOST_STALE_S)])
def test_a_look_that_takes_long_is_used_for_longer(look_s: float, used_s: float) -> None:
    """Polls take at most a fifth of a processor, and what is shown is seconds old at most."""
    clock = Slow(look_s)
    fleet = Fleet([], ORIGIN, clock, clock)
    fleet.runs()
    clock.at += used_s - 0.01
    fleet.runs()
    assert clock.looks == 1
    clock.at += 0.02
    fleet.runs()
    assert clock.looks == 2


def test_a_folder_that_can_not_be_listed_is_named(tmp_path: Path) -> None:
    """Where a volume is gone, or belongs to somebody else, an empty list must not look as if there were no runs; a
    folder whose first run has not come yet is no trouble."""
    runs, later = tmp_path / "runs", tmp_path / "later"
    runs.mkdir()
    clock = Slow(0.0)
    fleet = Fleet([runs, later], ORIGIN, clock, clock)
    fleet.runs()
    assert fleet.trouble == ""
    runs.rmdir()
    clock.at += FRESH_S
    fleet.runs()
    assert fleet.trouble == f"{runs} is gone"
    runs.symlink_to(runs)
    clock.at += FRESH_S
    fleet.runs()
    assert fleet.trouble.startswith(f"{runs} can't be read: Too many levels of symbolic links")
