"""The SQL statements of the store, from the files of this folder: each one stands below a line `-- name: …`."""

import re
from collections.abc import Mapping
from importlib import resources

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def load(name: str) -> Mapping[str, bytes]:
    """Return the statements of `sql/NAME.sql` by their names, in the form that psycopg takes."""
    text = (resources.files("bulk.store.sql") / f"{name}.sql").read_text("utf-8")
    _, *parts = _NAME.split(text)
    return {part: body.strip().encode() for part, body in zip(parts[::2], parts[1::2], strict=True)}
