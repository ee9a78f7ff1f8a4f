"""Who goes when: categories never wait for each other, writes of one repository go one at a time, in order."""

import base64
import itertools
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support.judging import Line, answered, arrived, changed_files, effects, overlaps, span_s, windows
from tests.e2e.support.platform import Home, served

BUSY = {"core": 3_000, "dependency_snapshots": 800}
"""Items that keep a category busy for longer than it takes to use up the other one, on a machine with other work."""
SCARCE, SCARCE_LIMIT, WINDOW_S = 12, 8, 4
NOISE = 3.0
"""The work of the open category may take this much longer than alone, on a machine that does other things meanwhile."""
PAUSE_SHARE = 0.5
"""Waiting for the empty category would be a pause of all of the time that it is empty (share of that)."""

REPOSITORIES, WRITES, LONGEST = 20, 400, 30
NEAR_LONGEST = 1.1
LATENCY_MS = 100
"""As over a long way: a commit keeps the sandbox busy for some 5 ms, twenty lanes at once for half of the time."""
WRITE_NOISE = 1.8
"""The machine does other things beside the test: a request waits for a processor before the sandbox sees it."""

FLEET = {"organization": "acme-fleet", "count": max(BUSY.values()), "readme_bytes": 500}
SNAPSHOT = {
    "version": 0,
    "ref": "refs/heads/main",
    "sha": "0" * 39 + "1",
    "scanned": "2026-11-21T08:00:00Z",
    "detector": {"name": "d", "version": "1", "url": "https://example.com/d"},
}


def items_of(category: str, count: int) -> dict[str, Any]:
    """A job of `count` items that this category pays for, one request each."""
    repositories = [{"owner": "acme-fleet", "repo": f"repo-{number:05d}"} for number in range(count)]
    if category == "core":
        return {"operation": "readme.get", "items": repositories}
    jobs = [{**item, "job": {"id": "1", "correlator": f"build-{number}"}} for number, item in enumerate(repositories)]
    return {"operation": "snapshot.create", "with": SNAPSHOT, "items": jobs}


@pytest.mark.parametrize(
    ("scarce", "busy"), [("core", "dependency_snapshots"), ("dependency_snapshots", "core")], ids=lambda name: name
)
def test_an_empty_category_delays_no_other(scarce: str, busy: str, tmp_path: Path, figure) -> None:
    """While one category is empty, the other runs at full speed, as fast as it runs alone."""
    home, count = Home(tmp_path), BUSY[busy]
    limits = ("--rate-limit", f"{scarce}={SCARCE_LIMIT}/{WINDOW_S}", "--rate-limit", f"{busy}=100000/600")
    jobs = {"scarce": items_of(scarce, SCARCE), "busy": items_of(busy, count)}
    with served(tmp_path / "sandbox", *limits, seed={"repositories": FLEET}) as sandbox:

        def ran(name: str, *jobs_of_it: str) -> Sequence[Line]:
            before = len(sandbox.requests())
            home.manifest(sandbox.base_url, {each: jobs[each] for each in jobs_of_it}, limits={"pace": "burst"})
            ran = home.run("run", "manifest.yaml", "--run-dir", name, "--no-cache")
            assert ran.exit_code == 0, ran.err
            return sandbox.requests()[before:]

        alone_s, lines = span_s(ran("alone", "busy")), ran("both", *jobs)
        mine = [line for line in lines if line["category"] == busy]
        if span_s(mine) >= alone_s * NOISE:  # the machine may have become slower between the two
            alone_s = max(alone_s, span_s(ran("again", "busy")))
    first, second = windows(lines, scarce)
    empty_from, empty_to = max(map(answered, first)), min(map(arrived, second))
    while_empty = [line for line in mine if empty_from < arrived(line) < empty_to]
    pause_s = max(arrived(later) - arrived(line) for line, later in itertools.pairwise(sorted(mine, key=arrived)))
    figure(
        f"{scarce} empty for {empty_to - empty_from:.1f} s, {len(while_empty)} of {busy} meanwhile; "
        f"all {count} in {span_s(mine):.2f} s, alone {alone_s:.2f} s, longest pause {pause_s:.2f} s"
    )
    assert (len(first), len(second), len(mine)) == (SCARCE_LIMIT, SCARCE - SCARCE_LIMIT, count)
    assert len(while_empty) > 100
    assert pause_s < (empty_to - empty_from) * PAUSE_SHARE, "it would wait as long as that is empty"
    assert span_s(mine) < alone_s * NOISE
    assert {line["status"] for line in lines} <= {200, 201}


def name(number: int, form: int) -> dict[str, str]:
    """The n-th repository, written in one of four ways: all the same to the platform."""
    forms = [("acme-fleet", "repo-{}"), ("Acme-Fleet", "repo-{}"), ("acme-FLEET", "Repo-{}"), ("ACME-fleet", "REPO-{}")]
    owner, repo = forms[form % len(forms)]
    return {"owner": owner, "repo": repo.format(f"{number:05d}")}


def writes() -> list[dict[str, str]]:
    """400 files over 20 repositories, one of which has 40 of them, in an order that mixes all."""
    others = WRITES - LONGEST
    homes = [0] * LONGEST + [1 + number % (REPOSITORIES - 1) for number in range(others)]
    order = sorted(range(WRITES), key=lambda place: (place * 7919) % WRITES)
    return [
        {
            **name(homes[place], number),
            "path": f"docs/{number:03d}.txt",
            "content": base64.b64encode(b"%d\n" % number).decode(),
        }
        for number, place in enumerate(order)
    ]


def by_repository(lines: Sequence[Line]) -> dict[str, list[Line]]:
    """The requests of each repository, however it was written."""
    found = defaultdict(list)
    for line in lines:
        found["/".join(line["path"].split("/")[4:6]).casefold()].append(line)
    return found


def test_writes_of_a_repository_go_one_at_a_time_and_in_order(tmp_path: Path, figure) -> None:
    """400 writes over 20 repositories in mixed case: no overlap in one, manifest order kept, as fast as the longest.

    No lane waits for another: all is done when the longest lane is. That one can't be faster than the platform's time
    for its requests, one after the other, as the journal tells it; what it waits longer is the platform's time for the
    other lanes, on this machine's two cores. The same manifest again makes no commit.
    """
    home, items = Home(tmp_path), writes()
    job = {"operation": "contents.put", "with": {"message": "Add a file"}}
    options, seed = ("--rate-limit", "off", "--latency", str(LATENCY_MS)), {"repositories": FLEET}
    with served(tmp_path / "sandbox", *options, seed=seed) as sandbox:
        home.manifest(sandbox.base_url, {"files": {**job, "items": items}})
        ran = home.run("run", "manifest.yaml", "--run-dir", "one")
        assert ran.exit_code == 0, ran.err
        lines = sandbox.requests()
        again = home.run("run", "manifest.yaml", "--run-dir", "two")
        assert again.exit_code == 0, again.err
        repeated = sandbox.requests()[len(lines) :]
    lanes = by_repository([line for line in lines if line["method"] == "PUT"])
    longest = max(by_repository(lines).values(), key=len)
    least_s = sum(float(line["elapsed_ms"]) for line in longest) / 1_000.0
    took_s = span_s(lines)
    longest_s = span_s(longest)
    figure(
        f"{len(lines)} requests of {len(lanes)} lanes in {took_s:.2f} s: {took_s / longest_s:.3f} times the longest; "
        f"the platform spent {least_s:.2f} s on it: {took_s / least_s:.3f} times"
    )
    assert len(lanes) == REPOSITORIES
    for repository, mine in lanes.items():
        assert list(overlaps(mine)) == []
        wanted = [item["path"] for item in items if f"{item['owner']}/{item['repo']}".casefold() == repository]
        assert [line["path"].split("/contents/")[1] for line in sorted(mine, key=arrived)] == wanted
        assert changed_files(tmp_path / "sandbox" / "state", repository) == wanted
    assert Counter(line["outcome"] for line in home.results("one")) == {"succeeded": WRITES}
    assert took_s <= NEAR_LONGEST * longest_s
    assert took_s <= NEAR_LONGEST * WRITE_NOISE * least_s
    assert effects(repeated) == []
    assert Counter(line["outcome"] for line in home.results("two")) == {"unchanged": WRITES}
