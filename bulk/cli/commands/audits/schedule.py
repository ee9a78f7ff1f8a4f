"""`bulk schedule`: what the system's scheduler needs to run an audit."""

import contextlib
import os
import re
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bulk.cli import output
from bulk.cli.logs import Command
from bulk.cli.options import ANY_PATH, CACHE, LIMITS, MANIFEST, PLATFORM, overriding
from bulk.errors import UsageError
from bulk.storage.child_process import python

if TYPE_CHECKING:
    from bulk.manifest.manifest import Manifest
    from bulk.manifest.reading import Overrides

FORMS = ("systemd", "cron", "kubernetes", "actions")


@click.command(cls=Command)
@click.argument("manifest", type=ANY_PATH)
@click.option("--cron", metavar="'M H D M W'", required=True, help="When, as in '30 2 * * *'.")
@click.option("--tz", "zone", metavar="ZONE", default="UTC", show_default=True, help="Time zone, as Europe/Berlin.")
@click.option("--emit", "form", type=click.Choice(FORMS), required=True, help="For which scheduler.")
@click.option("--history", metavar="DIR", type=ANY_PATH, help="Default: audits/NAME.")
@click.option("--image", metavar="IMAGE", help="Container image, for kubernetes.")
@click.option("--out", metavar="DIR", type=ANY_PATH, help="Write the files there; nothing is overwritten.")
@CACHE[0]
@CACHE[1]
@overriding(*MANIFEST, *PLATFORM, *LIMITS)
def schedule(
    *,
    manifest: Path,
    cron: str,
    zone: str,
    form: str,
    history: Path | None,
    image: str | None,
    out: Path | None,
    cache: Path | None,
    no_cache: bool,
    overrides: "Overrides",
) -> int:
    """Print what a scheduler needs to audit MANIFEST.

    Where the audit of before still runs, the next one passes it by.
    """
    import bulk
    from bulk.audit.audit import refuse_writes
    from bulk.audit.schedules.audited import Audited
    from bulk.audit.schedules.emitting import emit
    from bulk.audit.schedules.times import times_of
    from bulk.clock import Clock
    from bulk.manifest.reading import read_manifest

    if image is not None and form != "kubernetes":
        raise UsageError(f"--image is of no use for {form}: it goes with --emit kubernetes")
    times, now = times_of(cron, zone), datetime.fromtimestamp(Clock().now(), UTC)
    read = read_manifest(manifest, overrides, os.environ)
    refuse_writes(read)
    emitted = emit(
        form,
        times,
        Audited(
            name=read.name,
            manifest=manifest.resolve(),
            history=(history or Path("audits") / read.name).absolute(),
            folder=Path.cwd(),
            options=[*_options(read, overrides), *_cache(cache, is_none=no_cache)],
            program=_program(),
            secrets=_secrets(read),
            image=image or f"bulk:{bulk.__version__}",
        ),
        now,
    )
    if out is None:
        for name, content in emitted.files.items():
            output.out(f"# {name}\n{content}")
    else:
        _write(out, dict(emitted.files))
    for warning in emitted.warnings:
        output.say(f"note: {warning}")
    coming = times.next_times(now)
    output.say("next: " + ", ".join(at.isoformat(timespec="minutes") for at in coming))
    return 0


def _program() -> list[str]:
    """Return what starts this bulk, wherever that is done: the installed program, else Python with its module."""
    found = shutil.which("bulk") or sys.argv[0]
    is_program = Path(found).name == "bulk" and os.access(found, os.X_OK)
    return [str(Path(found).absolute())] if is_program else python("bulk")


def _options(manifest: "Manifest", overrides: "Overrides") -> list[str]:
    """Return the options for `bulk audit`, also for values of this shell's environment that the scheduler's lacks."""
    platform, environ = manifest.platform, os.environ
    given: dict[str, object] = {
        "base-url": platform.base_url if overrides.base_url or environ.get("BULK_BASE_URL") else None,
        "vendor": platform.vendor if overrides.vendor or environ.get("BULK_VENDOR") else None,
        "concurrency": overrides.concurrency,
        "reserve": overrides.reserve,
        "failures": overrides.failures,
        "max-duration": overrides.max_duration,
        "limit": overrides.limit,
        "credentials": overrides.credentials_file,
    }
    return [
        *(f"--{name}={value}" for name, value in given.items() if value is not None),
        *(f"--credential={name}={source}" for name, source in overrides.credentials.items()),
        *(f"--var={name}={value}" for name, value in overrides.variables.items()),
        *(f"--job={name}" for name in overrides.jobs),
        *(["--with-needs"] if overrides.with_needs else []),
    ]


def _cache(cache: Path | None, *, is_none: bool) -> list[str]:
    return ["--no-cache"] if is_none else [] if cache is None else [f"--cache={cache.absolute()}"]


def _secrets(manifest: "Manifest") -> list[str]:
    """Return the variables that the credentials of the jobs and the notifications name."""
    from bulk.manifest.credential_specs import PoolSpec, spec_of

    of_platform, sources, names = manifest.platform.credentials, [], [job.credential for job in manifest.jobs]
    while names:
        source = of_platform[names.pop(0)]
        pool = spec_of(source, PoolSpec)
        names += pool.members if pool is not None else ()
        sources.append(source)
    if manifest.audit is not None:
        sources += [target.source for target in manifest.audit.notify]
    return list(dict.fromkeys(found for source in sources for found in _variables(source)))


def _variables(source: str) -> list[str]:
    """Return the environment variables that a source names; a source that is a map may name several."""
    if source.startswith(("file:", "command:")):
        return []
    return re.findall(r'(?:^|")env:([^"]+)', source)


def _write(folder: Path, files: dict[str, str]) -> None:
    """Write the files, all or none; those that are there with the same content stay, and no other is overwritten."""
    from bulk.storage.new_files import arriving

    try:
        with arriving(folder) as part:
            for name in (name for name, content in files.items() if not _holds(folder / name, content)):
                (part / name).parent.mkdir(parents=True, exist_ok=True)
                (part / name).write_text(files[name], encoding="utf-8")
    except FileExistsError as error:
        raise UsageError(
            f"--out: {error.filename} exists already and has other content; name another folder, or move it away"
        ) from None
    except OSError as error:
        place = error.filename or folder
        raise UsageError(f"--out {place}: can't be written: {error.strerror}; name another folder") from None
    for name in files:
        output.out(str(folder / name))


def _holds(path: Path, content: str) -> bool:
    from bulk.storage.private_files import read_regular

    with contextlib.suppress(OSError):
        return read_regular(path) == content.encode()
    return False
