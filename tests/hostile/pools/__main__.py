"""Prints what comes of a pool in every way: `python -m tests.hostile.pools [reads|files|hooks] [MEMBERS] [PART]`."""

import sys

from tests.hostile.judging import printed
from tests.hostile.pools.running import Work, told, try_way
from tests.hostile.pools.ways import WAYS


def main(work: Work = "reads", size: str = "3", part: str = "") -> int:
    """1 where something does not hold."""
    chosen = (way for way in WAYS if part in way.name)
    tries = (try_way(way, work, 140 if work == "reads" else 70, int(size)) for way in chosen)
    return printed((told(tried), bool(tried.broken())) for tried in tries)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))  # type: ignore[arg-type]  # the work is what somebody typed
