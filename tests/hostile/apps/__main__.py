"""Prints what comes of an App in every way: `python -m tests.hostile.apps [reads|files] [PART]`."""

import sys

from tests.hostile.apps.running import Work, told, try_way
from tests.hostile.apps.ways import WAYS


def main(work: Work = "files", part: str = "") -> int:
    """1 where something does not hold."""
    wrong = 0
    for way in WAYS:
        if part in way.name and not (way.is_for_writes and work == "reads"):
            tried = try_way(way, work)
            wrong += bool(tried.broken())
            sys.stdout.write(f"{told(tried)}\n")
            sys.stdout.flush()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))  # type: ignore[arg-type]  # the work is what somebody typed
