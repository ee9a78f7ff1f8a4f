"""What it takes to make a snapshot of a bill of 1,000 packages: `python -m benchmarks.audits.conversion [PACKAGES]`.

Printed for each form: CPU time (ms, the median of several, and the least), and how much of it each step takes; and how
long XML takes that a tree has to be made of. The exit code is 1 where a bar does not hold. Python looks for objects
that only hold each other as seldom as it does in the process that converts bills of this size.
"""

import gc
import itertools
import statistics
import sys
import time

import orjson

from bulk.bundle.conversion_child import OBJECTS
from bulk_jobs.shared.sboms.reading import read_bill
from bulk_jobs.shared.sboms.snapshot import manifests_of
from tests.jobs.shared.sboms.bills import FORMS, graph

ROUNDS = 15
MOST_MS = 4.0


def steps_ms(text: bytes) -> tuple[float, float, float]:
    """CPU time of reading a bill, making its manifests, and encoding these (ms)."""
    moments = [time.thread_time()]
    bill = read_bill(text)
    moments.append(time.thread_time())
    manifests = manifests_of(bill)
    moments.append(time.thread_time())
    orjson.dumps(manifests)
    moments.append(time.thread_time())
    first, second, third = (1_000 * (after - before) for before, after in itertools.pairwise(moments))
    return first, second, third


def main() -> int:
    """Measure each form."""
    packages = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    made, short = graph(packages, 1), list[str]()
    texts = {form: make(made) for form, make in FORMS.items()}
    commented = {
        "with a comment, which takes a tree": texts["cyclonedx.xml"].replace(b"<metadata>", b"<!-- --><metadata>")
    }
    gc.freeze()
    gc.set_threshold(OBJECTS)
    for form, text in {**texts, **commented}.items():
        found = [steps_ms(text) for _ in range(ROUNDS)]
        sums = [sum(each) for each in found]
        reading, making, encoding = (statistics.median(each) for each in zip(*found, strict=True))
        print(
            f"{form}: {packages:,} packages, {len(text) / 1e3:,.0f} kB: {statistics.median(sums):.1f} ms, at least "
            f"{min(sums):.1f} ms; reading {reading:.1f}, making {making:.1f}, encoding {encoding:.1f} ms"
        )
        if form in FORMS and statistics.median(sums) > MOST_MS * packages / 1_000:
            short.append(f"{form}: at most {MOST_MS} ms for 1,000 packages")
    print("\n".join(f"FALLS SHORT: {bar}" for bar in short) or "all bars hold")
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
