"""The files of stores of kept answers: their names, and how they are closed to others."""

import errno
import hashlib
import hmac
import os
import stat
from contextlib import suppress
from pathlib import Path

from bulk.manifest.manifest import Platform
from bulk.platform.auth.secrets import Secret
from bulk.storage.private_files import kept_content

SECRET_BYTES = 32
"""Length of the random secret of a directory (bytes)."""


def make_private(path: Path) -> None:
    """Make sure that a file exists and is closed to others, whatever the umask; SQLite gives its side files that mode.

    A file that exists is not opened: closing it would undo the locks of all connections of this process to it.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    mode = path.lstat().st_mode
    if not stat.S_ISREG(mode):
        raise OSError(errno.ELOOP, "it is a link or no file")
    if mode & 0o077:
        path.chmod(0o600)


def name_of_token(platform: Platform, secret: Secret) -> str:
    """Return a name that says nothing about the token, and is different for every token."""
    return hmac.new(secret.reveal().encode(), about(platform), hashlib.sha256).hexdigest()[:40]


def about(platform: Platform) -> bytes:
    """Return the text that tells which platform a store is for, without its token or identity."""
    return "\0".join(("bulk answers", platform.base_url, platform.vendor, platform.api_version or "")).encode()


def secret_of(directory: Path) -> bytes:
    """Return the random secret of the directory, and make it if there is none.

    Without the secret, the name of a file does not tell whose it is.
    """
    secret = kept_content(directory / "secret", lambda: os.urandom(SECRET_BYTES))
    if len(secret) < SECRET_BYTES:
        raise ValueError("its secret is damaged")
    return secret


def name_of_identity(directory: Path, platform: Platform, identity: str) -> tuple[str, bytes]:
    """Return the name of the file for `identity`, which says nothing about it, and the secret of the directory.
    Raises:
        OSError, ValueError: the secret can't be read.
    """
    secret = secret_of(directory)
    message = about(platform) + b"\0" + identity.encode()
    return f"{hmac.new(secret, message, hashlib.sha256).hexdigest()[:40]}.db", secret
