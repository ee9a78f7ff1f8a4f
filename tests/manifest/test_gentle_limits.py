"""The limits that a manifest which is made from another one takes over from it."""

import json
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from bulk.manifest.hours import Hours
from bulk.manifest.manifest import Limits
from bulk.manifest.reading import Overrides, read_manifest
from bulk.manifest.settings import gentle_section
from bulk.quantities import Share

HEAD = {
    "version": 1,
    "platform": {"base_url": "https://example.com/api/v3"},
    "jobs": {"readmes": {"operation": "readme.get", "items": [{"owner": "acme", "repo": "api"}]}},
}
PARTS = st.builds(lambda parts: Share(fraction=parts / 10**8), st.integers(0, 10**8 - 1))
RESERVES = st.builds(lambda count: Share(count=count), st.integers(0, 10**6)) | PARTS
SECONDS = st.floats(1e-6, 86_400.0).map(lambda seconds: round(seconds, 9))
HOURS = st.builds(
    Hours,
    first=st.integers(0, 719),
    behind=st.integers(720, 1_440),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns"]),
    reserve=RESERVES,
).filter(lambda hours: hours.behind - hours.first < 1_440)
LIMITS = st.builds(
    Limits,
    concurrency=st.integers(1, 1_000),
    reserve=RESERVES,
    request_timeout_s=SECONDS,
    unreachable_s=SECONDS,
    settle_s=SECONDS,
    pace=st.sampled_from(["even", "burst"]),
    hours=st.lists(HOURS, max_size=3, unique_by=lambda hours: hours.text).map(tuple),
)


def read_again(folder: Path, limits: Limits) -> Limits:
    """What a manifest says that has such a section."""
    path = folder / "manifest.yaml"
    path.write_text(json.dumps({**HEAD, "limits": gentle_section(limits)}))
    return read_manifest(path, Overrides(), {}).limits


def means_the_same(one: Share, other: Share) -> bool:
    """Both are the same count, or the same share but for a rounding error."""
    if one.fraction is None or other.fraction is None:
        return one == other
    return abs(one.fraction - other.fraction) < 1e-12


@given(limits=LIMITS)
def test_what_is_taken_over_means_the_same(tmp_path_factory, limits: Limits) -> None:
    """Counts, shares, durations and hours; shares to a millionth of a percent."""
    found = read_again(tmp_path_factory.mktemp("limits"), limits)
    assert means_the_same(found.reserve, limits.reserve)
    assert replace(found, reserve=limits.reserve, hours=()) == replace(limits, hours=())
    assert [each.text for each in found.hours] == [each.text for each in limits.hours]
    for mine, theirs in zip(found.hours, limits.hours, strict=True):
        assert means_the_same(mine.reserve, theirs.reserve)


def test_what_is_as_usual_is_not_said(tmp_path: Path) -> None:
    """Nor is what ends or divides a run."""
    mine = Limits(failures=Share(count=3), max_duration_s=9.0, waves=(Share(count=1),), gate="manual", confirm="always")
    assert gentle_section(mine) == {}
    assert read_again(tmp_path, mine) == Limits()
    said = Limits(concurrency=4, reserve=Share(fraction=0.125), hours=(Hours(480, 1_440, "UTC", Share(count=5)),))
    assert gentle_section(said) == {
        "concurrency": 4,
        "reserve": "12.5%",
        "hours": {"08:00-24:00 UTC": {"reserve": 5}},
    }
