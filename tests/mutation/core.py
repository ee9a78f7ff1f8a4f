"""The pure core: modules that decide and touch nothing. All of their branches are tested, and their mutants are hunted.

`make coverage` wants every branch of them covered, `make mutation` breaks each in every small way and wants at least
90% of that noticed by the module's own tests, which stand beside it, the quickest first.
"""

import sys
from typing import Final

_GOVERN = "tests/govern/test_decisions.py"
_KNEE = ("tests/govern/concurrency/test_adaptive_limit.py", "tests/govern/concurrency/test_knee.py")
_WIRE = ("tests/platform/test_classification_headers.py", "tests/platform/test_classification_verdicts.py")
_LEDGER = ("tests/ledger/test_opening.py", "tests/ledger/test_ledger.py")

CORE: Final[dict[str, tuple[str, ...]]] = {
    "bulk/govern/budgets/buckets.py": (
        "tests/govern/budgets/test_bucket_words.py",
        "tests/govern/budgets/test_buckets.py",
    ),
    "bulk/govern/concurrency/adaptive_limit.py": (*_KNEE, "tests/govern/concurrency/test_loop_load.py"),
    "bulk/govern/reactions.py": (_GOVERN,),
    "bulk/govern/permits/pacing.py": ("tests/govern/permits/test_pacing.py",),
    "bulk/govern/server_clock.py": ("tests/govern/test_server_clock.py",),
    "bulk/govern/poll_intervals.py": ("tests/govern/test_poll_intervals.py",),
    "bulk/govern/reachability.py": (_GOVERN,),
    "bulk/govern/concurrency/latency_rounds.py": _KNEE,
    "bulk/govern/concurrency/overload.py": ("tests/govern/concurrency/test_overload.py", *_KNEE),
    "bulk/platform/bodies/body_values.py": ("tests/platform/bodies/test_body_values.py",),
    "bulk/redaction/printable.py": ("tests/platform/bodies/test_body_values.py",),
    "bulk/platform/classification.py": _WIRE,
    "bulk/urls.py": ("tests/test_urls.py", "tests/test_links.py", *_WIRE[:1]),
    "bulk/execute/writes/late_writes.py": ("tests/execute/writes/test_late_writes.py",),
    "bulk/schedule/lanes.py": ("tests/schedule/test_lanes.py", "tests/schedule/test_scheduler.py"),
    "bulk/execute/writes/recent_writes.py": (
        "tests/execute/writes/test_expiring_map.py",
        "tests/execute/writes/test_recent_creations.py",
        "tests/execute/writes/test_recent_writes.py",
    ),
    "bulk/schedule/job_progress.py": (
        "tests/schedule/test_job_progress.py",
        "tests/schedule/test_joining.py",
        "tests/schedule/test_lanes.py",
        "tests/schedule/test_scheduler.py",
    ),
    "bulk/schedule/queues.py": (
        "tests/schedule/test_queues.py",
        "tests/schedule/test_joining.py",
        "tests/schedule/test_scheduler.py",
    ),
    "bulk/execute/requests/retry_budget.py": ("tests/execute/requests/test_retry_budget.py",),
    "bulk/execute/writes/settle.py": ("tests/execute/writes/test_settle.py", "tests/execute/test_item_runner.py"),
    "bulk/execute/generator_steps.py": ("tests/execute/test_generator_steps.py",),
    "bulk/engine/status/warnings.py": ("tests/engine/test_warnings.py",),
    "bulk/ledger/opening.py": _LEDGER,
    "bulk/ledger/records.py": _LEDGER[1:],
    "bulk/ledger/rows.py": _LEDGER,
}
"""Path of a module -> the tests that its mutants have to get past."""

if __name__ == "__main__":
    sys.stdout.write(",".join(CORE) + "\n")
