"""A live plan as text: how many items of each job have which verdict, and the first items in a few words."""

from collections.abc import Iterator, Mapping, Sequence

from bulk.report.render.formatting import count, counted
from bulk.report.render.terminal import aligned, line_of, safe

VERDICTS = ("create", "change", "equal", "conflict", "pending", "unseen", "failed")


def lines(
    jobs: Sequence[tuple[str, Mapping[str, int], bool]], requests: int, free: int, shown: Sequence[str]
) -> Iterator[str]:
    """Yield the lines of the text.

    Args:
        jobs: of each job its name, its counts by verdict, and whether its items were looked at.
        requests: requests that were sent (count). free: requests that were answered with 304 (count).
        shown: the items to list, each in a few words.
    """
    looked = [(name, counts) for name, counts, is_seen in jobs if is_seen]
    items = sum(sum(counts.values()) for _, counts in looked)
    yield f"looked at {counted(items, 'item')}: {counted(requests, 'request')}, {count(free)} of them 304 (free)"
    rows = [["job", *VERDICTS]]
    rows += [[safe(name, 60), *(count(counts.get(verdict, 0)) for verdict in VERDICTS)] for name, counts in looked]
    for cells in aligned(rows, 0, names=0, right=range(1, len(VERDICTS) + 1)):
        yield line_of(cells)
    blind = [safe(name, 60) for name, _, is_seen in jobs if not is_seen]
    if blind:
        yield f"not looked at, because they read or their items are made from results: {', '.join(blind)}"
    yield from (safe(each, 200) for each in shown)
