"""`digests.json`: the head of the chain, and what every file of a run directory was when its run ended.

The chain covers what was sent and how it ended; this file covers the rest, such as the pages of SQLite and the reports.
It is written last, while the directory is still held, and deleted when the run goes on. It leaves out `saved/`, which
may have terabytes; `bulk verify` compares the digest (`sha256`) that a result has of a saved file. It leaves out
`results.jsonl`, too: the ledger has digests of all of it.
"""

import contextlib
import hashlib
from fnmatch import fnmatch
from pathlib import Path

import msgspec

from bulk.ledger.directory import RESULTS
from bulk.storage.names import is_text
from bulk.storage.private_files import open_regular, read_regular, write_whole

DIGESTS = "digests.json"

NOT_COVERED = (DIGESTS + "*", RESULTS, "gates.json*", "run.lock", "control.sock")
"""Names that change after the end, or are not files, or whose bytes the ledger covers."""

LOG = "ledger.db-wal"


class FileDigest(msgspec.Struct, frozen=True):
    """A file as it was when the run ended: bytes, and SHA-256 in hexadecimal."""

    size: int
    sha256: str


class Digests(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `digests.json`.

    Attributes:
        head: head of the digest chain, in hexadecimal.
        files: the digests of files by name; the ledger is left out where a reader kept its write-ahead log open.
    """

    version: int = 1
    head: str
    files: dict[str, FileDigest]


def note_files(run_dir: Path, head: bytes) -> None:
    """Write `digests.json`. A failure to write does no harm: then the chain alone says what was done."""
    with contextlib.suppress(OSError):
        files = {path.name: digest_of(path) for path in covered(run_dir)}
        data = msgspec.json.format(msgspec.json.encode(Digests(head=head.hex(), files=files)), indent=1)
        write_whole(run_dir / DIGESTS, data + b"\n")


def forget_files(run_dir: Path) -> None:
    """Delete `digests.json`, because the run goes on.

    Raises:
        OSError: the disk refused.
    """
    (run_dir / DIGESTS).unlink(missing_ok=True)


def read_digests(run_dir: Path) -> Digests | None:
    """Return the content of `digests.json`; None: there is no such file.

    Raises:
        ValueError: the file is damaged.
        OSError: the file can't be read.
    """
    try:
        data = read_regular(run_dir / DIGESTS)
    except FileNotFoundError:
        return None
    found = msgspec.json.decode(data, type=Digests)
    if found.version != 1 or msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n" != data:
        raise ValueError("it is not as it was written")
    return found


def covered(run_dir: Path) -> list[Path]:
    """Return the files that `digests.json` covers, in the order of their names."""
    has_log = (run_dir / LOG).exists()
    return [
        path
        for path in sorted(run_dir.iterdir())
        if path.is_file()
        and not path.is_symlink()
        and is_text(path.name)  # any other name is of no file that a run writes
        and not any(fnmatch(path.name, pattern) for pattern in NOT_COVERED)
        and not (has_log and path.name.startswith("ledger.db"))
    ]


def digest_of(path: Path) -> FileDigest:
    """Return size and digest of a file.

    Raises:
        OSError: the file can't be read.
    """
    with open(open_regular(path, follows=True), "rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        return FileDigest(file.tell(), sha256)
