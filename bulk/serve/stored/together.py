"""What several workers told of one run, second by second, as if one process had told it. Pure."""

from collections.abc import Sequence

import msgspec
import zstandard

from bulk.ledger.records import Minute
from bulk.report.timeline import MINUTE_S, Sample

HEARD_S = 2.5
"""What a worker said longer ago does not tell how it is now (seconds): each says it once a second."""


def together(workers: Sequence[Sequence[Sample]]) -> list[Minute]:
    """Return the minutes of all. `workers`: the samples of each, in order.

    What ended is told once; what is in flight, allowed or waiting is the sum of what each said last.
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
