"""The samples of several workers of one run, merged second by second, as if one process had made them. Pure."""

from collections.abc import Sequence

import msgspec
import zstandard

from bulk.ledger.records import Minute
from bulk.report.timeline import MINUTE_S, Sample

HEARD_S = 2.5
"""The age after which a worker's sample does not count as its present state (seconds): a worker makes one each second.
"""


def together(workers: Sequence[Sequence[Sample]]) -> list[Minute]:
    """Return the minutes of all workers together; `workers`: the samples of each worker, in order.

    Items that ended are counted once; requests in flight, allowed concurrency and waits are sums of each worker's last
    sample.
    """
    by_second: dict[int, list[tuple[int, Sample]]] = {}
    for worker, samples in enumerate(workers):
        for sample in samples:
            by_second.setdefault(int(sample.at), []).append((worker, sample))
    last: dict[int, Sample] = {}
    minutes: dict[int, list[Sample]] = {}
    for second in sorted(by_second):
        told = by_second[second]
        last.update(told)
        now = [sample for sample in last.values() if sample.at > second + 1 - HEARD_S]
        minutes.setdefault(second // MINUTE_S, []).append(_one([sample for _, sample in told], now))
    return [Minute(minute, zstandard.compress(msgspec.json.encode(samples))) for minute, samples in minutes.items()]


def _one(told: Sequence[Sample], now: Sequence[Sample]) -> Sample:
    outcomes: dict[int, list[int]] = {}
    waits: dict[str, int] = {}
    latencies: list[int] = []
    for sample in told:
        for job, counts in sample.outcomes.items():
            outcomes[job] = [a + b for a, b in zip(outcomes.get(job, [0] * len(counts)), counts, strict=True)]
        if sample.latencies:
            latencies = [a + b for a, b in zip(latencies or [0] * 12, sample.latencies, strict=False)]
    for sample in now:
        for kind, items in sample.waits.items():
            waits[kind] = waits.get(kind, 0) + items
    newest = max(told, key=lambda sample: sample.at)
    return msgspec.structs.replace(
        newest,
        outcomes=outcomes,
        concurrency=sum(sample.concurrency for sample in now),
        in_flight=sum(sample.in_flight for sample in now),
        waits=waits,
        latencies=latencies,
    )
