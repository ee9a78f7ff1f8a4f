"""Prints what comes of an App in every way: `python -m tests.hostile.apps [reads|files] [PART]`."""

import sys

from tests.hostile.apps.running import Work, told, try_way
from tests.hostile.apps.ways import WAYS
from tests.hostile.judging import printed


def main(work: Work = "files", part: str = "") -> int:
    """1 where something does not hold."""
    chosen = (way for way in WAYS if part in way.name and not (way.is_for_writes and work == "reads"))
    tries = (try_way(way, work) for way in chosen)
    return printed((told(tried), bool(tried.broken())) for tried in tries)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))  # type: ignore[arg-type]  # the work is what somebody typed
