"""The tag of this engine: a worker takes only runs that an engine with the same tag has checked."""

import hashlib
import inspect
from importlib.metadata import version
from pathlib import Path

from bulk import operation


def engine_tag() -> str:
    """Return the version, and a digest of the code of all operations that are installed."""
    found = hashlib.blake2b(digest_size=6)
    for name in sorted(operation.names()):
        source = inspect.getfile(type(operation.find(name)))
        found.update(name.encode() + b"\0" + Path(source).read_bytes())
    return f"{version('bulkops')} {found.hexdigest()}"
