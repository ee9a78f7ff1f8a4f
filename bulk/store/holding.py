"""The shards that a worker holds, their epochs, and the items in them."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

Key = tuple[int, int]
"""The number of a job, and the index of an item in it."""


@dataclass(frozen=True, slots=True)
class Span:
    """Neighbouring items of one job: from index `first` on and before `behind`."""

    job: int
    first: int
    behind: int


@dataclass(slots=True)
class _Held:
    epoch: int
    spans: Sequence[Span] = ()
    items: Mapping[int, Sequence[int]] = field(default_factory=dict)


class Holding:
    """The shards of one run that this worker holds now; the code that claims or loses a shard calls `hold` or `let_go`.

    The items of a range are known by their span. The items of a shard of lanes are listed one by one: the worker reads
    from the bundle's index which they are.
    """

    def __init__(self) -> None:
        self._held: dict[int, _Held] = {}
        self._spans: list[tuple[Span, int]] = []
        self._shards: dict[Key, int] = {}

    def hold(self, shard: int, epoch: int, spans: Sequence[Span] = (), items: Iterable[Key] = ()) -> None:
        """Record that the worker holds the shard from now on; `spans` and `items` are the items in it."""
        self.let_go(shard)
        listed: dict[int, list[int]] = {}
        for job, index in items:
            listed.setdefault(job, []).append(index)
            self._shards[job, index] = shard
        self._held[shard] = _Held(epoch, spans, listed)
        self._spans += [(span, shard) for span in spans]

    def let_go(self, shard: int) -> None:
        """Forget a shard, because it was finished, released, or taken over."""
        gone = self._held.pop(shard, None)
        if gone is None:
            return
        self._spans = [entry for entry in self._spans if entry[1] != shard]
        for job, indexes in gone.items.items():
            for index in indexes:
                self._shards.pop((job, index), None)

    def shards(self) -> list[int]:
        """Return the numbers of all held shards, in order."""
        return sorted(self._held)

    def epoch_of(self, shard: int) -> int:
        """Return the worker's epoch of a shard; -1, which no shard has, where the worker does not hold the shard."""
        held = self._held.get(shard)
        return -1 if held is None else held.epoch

    def shard_of(self, job: int, index: int) -> int:
        """Return the number of the held shard that has the item; -1, which no shard has, where there is none."""
        found = self._shards.get((job, index))
        if found is not None:
            return found
        for span, shard in self._spans:
            if span.job == job and span.first <= index < span.behind:
                return shard
        return -1

    def spans_of(self, job: int, shards: Collection[int] | None = None) -> Iterator[Span]:
        """Yield the spans of a job in held shards; `shards`: only in these."""
        for span, shard in self._spans:
            if span.job == job and (shards is None or shard in shards):
                yield span

    def items_of(self, job: int, shards: Collection[int] | None = None) -> list[int]:
        """Return the indexes of the listed items of a job in held shards; `shards`: only in these."""
        return [
            index
            for shard, held in tuple(self._held.items())
            if shards is None or shard in shards
            for index in held.items.get(job, ())
        ]
