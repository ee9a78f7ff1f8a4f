"""The pure core: modules that decide and touch nothing. All of their branches are tested, and their mutants are hunted.

`make coverage` wants every branch of them covered, `make mutation` breaks each in every small way and wants at least
90% of that noticed by the module's own tests, which stand beside it, the quickest first.
"""

import sys
from typing import Final

_GOVERN = "tests/govern/test_decisions.py"
_KNEE = ("tests/govern/test_concurrency.py", "tests/govern/test_knee.py")
_WIRE = ("tests/platform/test_wire_headers.py", "tests/platform/test_wire_verdicts.py")
_LEDGER = ("tests/ledger/test_opening.py", "tests/ledger/test_ledger.py")

CORE: Final[dict[str, tuple[str, ...]]] = {
    "bulk/govern/buckets.py": ("tests/govern/test_bucket_words.py", "tests/govern/test_buckets.py"),
    "bulk/govern/concurrency.py": (*_KNEE, "tests/govern/test_pulse.py"),
    "bulk/govern/consequences.py": (_GOVERN,),
    "bulk/govern/pacing.py": ("tests/govern/test_pacing.py",),
    "bulk/govern/platform_time.py": ("tests/govern/test_platform_time.py",),
    "bulk/govern/polls.py": ("tests/govern/test_polls.py",),
    "bulk/govern/reach.py": (_GOVERN,),
    "bulk/govern/rounds.py": _KNEE,
    "bulk/govern/suffering.py": ("tests/govern/test_suffering.py", *_KNEE),
    "bulk/platform/bodies.py": ("tests/platform/test_bodies.py",),
    "bulk/platform/printable.py": ("tests/platform/test_bodies.py",),
    "bulk/platform/wire.py": _WIRE,
    "bulk/links.py": ("tests/test_links.py", *_WIRE[:1]),
    "bulk/urls.py": ("tests/test_urls.py",),
    "bulk/dispatch/echoes.py": ("tests/dispatch/test_echoes.py",),
    "bulk/dispatch/lanes.py": ("tests/dispatch/test_lanes.py", "tests/dispatch/test_scheduler.py"),
    "bulk/dispatch/last_writes.py": ("tests/dispatch/test_last_writes.py",),
    "bulk/dispatch/progress.py": (
        "tests/dispatch/test_progress.py",
        "tests/dispatch/test_lanes.py",
        "tests/dispatch/test_scheduler.py",
    ),
    "bulk/dispatch/queues.py": ("tests/dispatch/test_queues.py", "tests/dispatch/test_scheduler.py"),
    "bulk/dispatch/rounds.py": ("tests/dispatch/test_rounds.py",),
    "bulk/dispatch/settle.py": ("tests/dispatch/test_settle.py", "tests/dispatch/test_drive.py"),
    "bulk/dispatch/stepping.py": ("tests/dispatch/test_stepping.py",),
    "bulk/dispatch/streak.py": ("tests/dispatch/test_streak.py",),
    "bulk/ledger/opening.py": _LEDGER,
    "bulk/ledger/records.py": _LEDGER[1:],
    "bulk/ledger/rows.py": _LEDGER,
}
"""Path of a module -> the tests that its mutants have to get past."""

if __name__ == "__main__":
    sys.stdout.write(",".join(CORE) + "\n")
