"""Secrets of items: `env:NAME` and `file:PATH` are replaced by their secrets when the item is sent, and not before.

So an index, a spool or a ledger never holds a secret of an item. A file must belong to this user and be closed to
others. The content of a place is never shown. Source: interface.md §2 and §4; failures.md rows 61, 62.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from bulk.capabilities import FileError, secret_fields
from bulk.operation import AnyOperation, Item
from bulk.storage.private_files import NoSecret, read_secret

MOST_BYTES = 4096
"""Longest secret (bytes)."""


@dataclass(frozen=True, slots=True)
class SecretPlaces:
    """The places in which secrets of items are found.

    Attributes:
        folder: the folder that relative paths of `file:` start from.
        environ: the environment for `env:`; None: `env:NAME` is the file NAME in the folder, too, and no name leads out
            of the folder, because the items come from another user.
    """

    folder: Path
    environ: Mapping[str, str] | None

    def text_at(self, kind: str, place: str) -> str:
        """Return the secret that a place holds; `kind`: `env` or `file`.

        Raises:
            FileError: the place holds no secret that can be used.
        """
        if self.environ is None:
            name = Path(place)
            if not name.parts or name.is_absolute() or ".." in name.parts:
                raise FileError(f"{place} is not a name below the folder of secrets that this worker was given")
            return _text_of(self.folder / name)
        if kind == "file":
            return _text_of(self.folder / Path(place).expanduser())
        text = self.environ.get(place, "")
        if not text:
            raise FileError(f"the environment variable {place} is not set")
        return text


def load_secrets(places: SecretPlaces, operation: AnyOperation, item: Item, remember: Callable[[str], None]) -> Item:
    """Return `item` with its secrets inline, as it is sent. Reads files: call it where that may block.

    Args:
        remember: called with each secret before anything is done with it, so that it is redacted in every text.

    Raises:
        FileError: a place holds no secret, or one that the operation can't use; the message never shows it.
    """
    for dotted in sorted(secret_fields(operation)):
        item = replaced(item, dotted.split("."), partial(_held, places, remember, dotted))
    for flaw in operation.check(item):
        raise FileError(f"{flaw.field}: {flaw.message}")
    return item


def replaced(holder: Any, names: list[str], become: Callable[[str], str]) -> Any:
    """Return a copy of a struct in which `become` has replaced the field that `names` lead to; the struct itself if
    that field was not given."""
    given = getattr(holder, names[0])
    if given is None:
        return holder
    changed = replaced(given, names[1:], become) if len(names) > 1 else become(given)
    return holder if changed is given else msgspec.structs.replace(holder, **{names[0]: changed})


def _held(places: SecretPlaces, remember: Callable[[str], None], field: str, given: str) -> str:
    kind, colon, place = given.partition(":")
    try:
        text = places.text_at(kind, place) if colon and kind in ("env", "file") else given
    except FileError as flaw:
        raise FileError(f"{field}: {flaw}") from None
    remember(text)
    return text


def _text_of(path: Path) -> str:
    try:
        raw = read_secret(path, MOST_BYTES + 3).rstrip(b"\r\n")
    except NoSecret as flaw:
        raise FileError(str(flaw)) from None
    if not raw:
        raise FileError(f"{path} is empty")
    if len(raw) > MOST_BYTES:
        raise FileError(f"{path} holds more than {MOST_BYTES:,} bytes")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        del raw  # no traceback may hold it
        raise FileError(f"{path} does not hold text in UTF-8") from None
