"""Files that an option names and a command writes at its end: their places are tried before any work is done."""

from pathlib import Path

from bulk.errors import UsageError


def try_out(option: str, path: Path) -> None:
    """Try whether a file can be written in the place that `option` names; what is there stays as it is.

    Raises:
        UsageError: it can't: the message says why, and the way out.
    """
    from bulk.storage.private_files import try_replacing

    if path.is_dir():
        raise UsageError(f"{option} {path}: is a folder; name a file")
    if path.exists() and not path.is_file():
        raise UsageError(f"{option} {path}: is not a regular file; name another one")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{option} {path}: {path.parent} is not a folder; make it, or name another file")
    try:
        try_replacing(path)
    except OSError as error:
        raise UsageError(f"{option} {path}: can't be written: {error.strerror}; name another file") from None
