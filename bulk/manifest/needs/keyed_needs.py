"""`needs: [{JOB: {FIELD: ITS_FIELD}}]`: an item waits for the items of a job that have its key, not for the whole job.

Which fields make the key is checked against both operations; the values are checked with the items. No I/O.
Source: interface.md §2.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec

from bulk.capabilities import secret_fields
from bulk.flaws import shown, unknown_name
from bulk.manifest.credential_specs import AppSpec, spec_of
from bulk.manifest.manifest import Job, KeyedNeed
from bulk.operation import AnyOperation

MOST = 100
"""At most this many needs by key in one job (count)."""
UNMATCHED = ("refuse", "free")
_EXPECTED = "expected a list of job names, or of jobs and keys, such as [create-orgs, {create-teams: {team: slug}}]"


Needs: TypeAlias = tuple[tuple[str, ...], tuple[KeyedNeed, ...]]
"""Names of all jobs that are needed, and those of them that are needed by key."""


def needs_of(given: object) -> Needs:
    """Return the names of all jobs that are needed, and those of them that are needed by key.

    Raises:
        ValueError: `given` is something else; the message says what was expected.
    """
    if not isinstance(given, list):
        raise ValueError(_EXPECTED)
    names: list[str] = []
    keyed: list[KeyedNeed] = []
    for need in given:
        match need:
            case str():
                names.append(need)
            case dict() if need:
                for name, fields in need.items():
                    keyed.append(_keyed(name, fields))
                    names.append(name)
            case _:
                raise ValueError(_EXPECTED)
    twice = next((need.job for need in keyed if names.count(need.job) > 1), None)
    if twice is not None:
        raise ValueError(f"{shown(twice)} is named twice: a job is needed as a whole, or by one key")
    if len(keyed) > MOST:
        raise ValueError(f"at most {MOST} jobs can be needed by key, these are {len(keyed):,}")
    return tuple(dict.fromkeys(names)), tuple(keyed)


def _keyed(name: object, fields: object) -> KeyedNeed:
    is_map = isinstance(fields, dict) and bool(fields)
    if not isinstance(name, str) or not is_map or not isinstance(fields, dict):
        raise ValueError(f"{_EXPECTED}; a key is {{field of the own items: field of that job's items}}")
    if not all(isinstance(field, str) and field for pair in fields.items() for field in pair):
        raise ValueError(f"{_EXPECTED}; fields are named by strings")
    return KeyedNeed(name, tuple(fields.items()))


def flaws_of(jobs: Sequence[Job], credentials: Mapping[str, str]) -> Iterator[tuple[Job, str]]:
    """Yield (job, message) for each need by key with a field that items lack, or for which no item can wait.

    Args:
        credentials: sources of the credentials, by name.
    """
    found = {job.name: job for job in jobs}
    waiting = [job for job in jobs if job.by_key]
    for job in waiting:
        for need in job.by_key:
            if need.job in found:
                yield from ((job, why) for why in _flaws(job, found[need.job], need))
    for job in jobs if waiting else ():
        app = spec_of(credentials.get(job.credential, ""), AppSpec)
        if app is not None and app.installation is None:
            why = f"don't go with credential {shown(job.credential)} of job {job.name}"
            way_out = "an App without a number of its installation: give it one, or need whole jobs"
            yield waiting[0], f"needs by key {why}, {way_out}"
            return


def _flaws(job: Job, other: Job, need: KeyedNeed) -> list[str]:
    derived = next((each.name for each in (job, other) if each.derivation is not None), None)
    if derived is not None:
        why = f"{derived} makes its items from results, so that their keys are not known before"
        return [f"{why}: need the whole job, {other.name}"]
    sides = [(job, mine, f"{need.job}.{mine}") for mine, _ in need.fields]
    sides += [(other, its, f"{need.job}.{mine}") for mine, its in need.fields]
    return [f"{where}: {why}" for each, name, where in sides if (why := _flaw_of_field(name, each.operation))]


def _flaw_of_field(name: str, operation: AnyOperation) -> str:
    known = {field.encode_name for field in msgspec.structs.fields(operation.Item)}
    if name not in known:
        return f"items of {operation.name}: {unknown_name(name, known)}"
    if any(name == secret.partition(".")[0] for secret in secret_fields(operation)):
        return f"{name} of {operation.name} is a secret, and a key is shown in messages"
    return ""
