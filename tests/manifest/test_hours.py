"""`limits.hours`: what is left to others when, over midnight and on days on which the clock changes."""

from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from bulk.errors import ManifestError
from bulk.manifest.manifest import Limits
from bulk.manifest.reading import Overrides, read_manifest
from bulk.quantities import Share

TEXT = """
version: 1
platform: {{base_url: "https://example.com/api/v3"}}
limits: {{reserve: 10, hours: {hours}}}
jobs: {{readmes: {{operation: readme.get, items: [{{owner: acme, repo: api}}]}}}}
"""
BERLIN = ZoneInfo("Europe/Berlin")


def limits_of(tmp_path: Path, hours: str, reserve: str | None = None) -> Limits:
    """Those of a manifest with these hours."""
    path = tmp_path / "manifest.yaml"
    path.write_text(TEXT.format(hours=hours))
    return read_manifest(path, Overrides(reserve=reserve), {}).limits


@pytest.mark.parametrize(
    ("hours", "local", "count"),
    [
        ('{"08:00-18:00 Europe/Berlin": {reserve: 50}}', "2026-07-01T07:59", 10),
        ('{"08:00-18:00 Europe/Berlin": {reserve: 50}}', "2026-07-01T08:00", 50),
        ('{"08:00-18:00 Europe/Berlin": {reserve: 50}}', "2026-07-01T17:59", 50),
        ('{"08:00-18:00 Europe/Berlin": {reserve: 50}}', "2026-07-01T18:00", 10),
        ('{"08:00-18:00 UTC": {reserve: 50}}', "2026-07-01T09:59", 10),
        ('{"08:00-18:00 UTC": {reserve: 50}}', "2026-07-01T10:00", 50),
        ('{"22:00-06:00 Europe/Berlin": {reserve: 50}}', "2026-07-01T23:30", 50),
        ('{"22:00-06:00 Europe/Berlin": {reserve: 50}}', "2026-07-01T05:59", 50),
        ('{"22:00-06:00 Europe/Berlin": {reserve: 50}}', "2026-07-01T12:00", 10),
        ('{"18:00-24:00 Europe/Berlin": {reserve: 50}}', "2026-07-01T23:59", 50),
        ('{"18:00-24:00 Europe/Berlin": {reserve: 50}}', "2026-07-02T00:00", 10),
        ('{"08:00-18:00 Europe/Berlin": {reserve: 50}}', "2026-10-25T08:00", 50),  # the day has 25 hours
        ('{"02:30-03:00 Europe/Berlin": {reserve: 50}}', "2026-03-29T03:00", 10),  # there is no 2:30 on that day
        ('{"08:00-12:00 UTC": {reserve: 1}, "09:00-18:00 UTC": {reserve: 2}}', "2026-01-01T11:00", 1),
        ('{"08:00-12:00 UTC": {reserve: 1}, "09:00-18:00 UTC": {reserve: 2}}', "2026-01-01T14:00", 2),
    ],
)
def test_what_is_left_to_others_then(tmp_path: Path, hours: str, local: str, count: int) -> None:
    """`local` is the time in Berlin."""
    at = datetime.fromisoformat(local).replace(tzinfo=BERLIN).timestamp()
    assert limits_of(tmp_path, hours).reserve_at(at) == Share(count=count)


def test_the_command_line_beats_them(tmp_path: Path) -> None:
    """`--reserve` holds at all hours."""
    limits = limits_of(tmp_path, '{"00:00-23:59 UTC": {reserve: 50}}', reserve="5%")
    assert (limits.hours, limits.reserve_at(0.0)) == ((), Share(fraction=0.05))


@pytest.mark.parametrize(
    ("hours", "words"),
    [
        ("5", "expected an object"),
        ('{"08:00-18:00": {reserve: 50}}', "expected hours and a time zone"),
        ('{"8-18 UTC": {reserve: 50}}', "expected hours and a time zone"),
        ('{"08:60-18:00 UTC": {reserve: 50}}', "times lie between 00:00 and 24:00"),
        ('{"24:00-08:00 UTC": {reserve: 50}}', "times lie between 00:00 and 24:00"),
        ('{"00:00-24:00 UTC": {reserve: 50}}', "use limits.reserve"),
        ('{"08:00-18:00 Europe/Berln": {reserve: 50}}', "unknown time zone; did you mean Europe/Berlin"),
        ('{"08:00-18:00 localtime": {reserve: 50}}', "unknown time zone"),
        ('{"08:00-18:00 ../../etc/passwd": {reserve: 50}}', "unknown time zone"),
        ('{"08:00-18:00 UTC": {}}', "expected {reserve: 50%}"),
        ('{"08:00-18:00 UTC": 50}', "expected an object"),
        ('{"08:00-18:00 UTC": {reserve: 100%}}', "below 100%"),
        ('{"08:00-18:00 UTC": {reserve: 50, pace: even}}', "unknown field"),
    ],
)
def test_what_can_not_be_hours_is_named(tmp_path: Path, hours: str, words: str) -> None:
    """With the line, and what was expected."""
    with pytest.raises(ManifestError) as caught:
        limits_of(tmp_path, hours)
    assert "manifest.yaml:4: limits.hours" in str(caught.value)
    assert words in str(caught.value)
