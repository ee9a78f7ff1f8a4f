"""A workflow of GitHub Actions, whose schedules are in UTC."""

import hashlib
import json
import shlex
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from bulk.audit.schedules.audited import LONGEST_S, Audited, Emitted
from bulk.audit.schedules.times import Times
from bulk.errors import UsageError


def emit(times: Times, audited: Audited, at: datetime) -> Emitted:
    """Return the workflow; `at`: now.

    Raises:
        UsageError: the times can't be written in UTC.
    """
    text = json.dumps
    expression, warnings = _in_utc(times, audited, at)
    command = shlex.join(audited.command(["bulk"], audited.manifest.name, "audits"))
    command = command.replace("${{", "$''{{")  # it stands in quotes of the shell; Actions would read an expression
    secrets = "".join(f"\n          {name}: ${{{{ secrets.{name} }}}}" for name in audited.secrets)
    environment = f"\n        env:{secrets}" if secrets else ""
    return Emitted(
        {
            f".github/workflows/{audited.unit}.yml": f"""name: {text(f"Audit {audited.name}")}
on:
  schedule:
    - cron: {text(expression)}
  workflow_dispatch:
permissions: {{}}
concurrency:
  group: {audited.unit}
  cancel-in-progress: false
jobs:
  audit:
    runs-on: ubuntu-latest
    timeout-minutes: {LONGEST_S // 60}
    permissions:
      contents: read
    steps:
      - uses: actions/checkout@v4
      - uses: actions/cache@v4
        with:
          path: |
            audits
            ~/.cache/bulk
          key: {audited.unit}-${{{{ github.run_id }}}}
          restore-keys: {audited.unit}-
      - run: pip install 'bulkops[audit,notify,app]'
      - run: {text(command)}{environment}
"""
        },
        warnings,
    )


def _in_utc(times: Times, audited: Audited, at: datetime) -> tuple[str, list[str]]:
    """Return the expression in UTC, with a minute that is not the full hour, and warnings about it."""
    minute, hour, *days = times.expression.split()
    warnings = ["runs come late, at busy times by hours, or not at all; after 60 days without a commit they stop"]
    if minute == "0":
        digest = hashlib.sha256(str(audited.history).encode()).digest()
        minute = str(1 + digest[0] % 59)
        warnings.append(f"the full hour is the busiest time: the minute is {minute} instead")
    if times.zone in ("UTC", "Etc/UTC"):
        return " ".join((minute, hour, *days)), warnings
    if not hour.isdecimal():
        raise UsageError("--emit actions: schedules are in UTC there; give one hour, or --tz UTC")
    zone = ZoneInfo(times.zone)
    year = [at.astimezone(zone).replace(hour=int(hour), minute=0, fold=0) + timedelta(days=day) for day in range(366)]
    january = next(each for each in year if each.month == 1 and each.day > 1)
    utc = january.astimezone(UTC)
    if utc.minute:
        raise UsageError(f"--emit actions: {times.zone} is no whole hours from UTC: give --tz UTC")
    shifts = sorted({_offset(each) - _offset(january) for each in year})
    if days != ["*", "*", "*"] and any((utc + _offset(january) + shift).date() != utc.date() for shift in shifts):
        raise UsageError(f"--emit actions: {hour}:00 in {times.zone} is another day in UTC: give --tz UTC and its days")
    told = " or ".join(_told(shift) for shift in shifts if shift)
    if told:
        warnings.append(f"schedules are in UTC there: this is the time of {times.zone} in January, and else {told}")
    return " ".join((minute, str(utc.hour), *days)), warnings


def _offset(moment: datetime) -> timedelta:
    return moment.utcoffset() or timedelta()


def _told(shift: timedelta) -> str:
    minutes = round(abs(shift) / timedelta(minutes=1))
    return f"{minutes} minutes {'later' if shift > timedelta() else 'earlier'}"
