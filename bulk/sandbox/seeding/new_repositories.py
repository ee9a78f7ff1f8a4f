"""The repositories that each new organization gets, as a seed file named them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from bulk.sandbox.seeding.seed_file import NewRepositorySeed

if TYPE_CHECKING:
    from bulk.sandbox.store.state import State

_KEY: Final = "new_organizations.repositories"


def keep(state: State, repositories: Sequence[NewRepositorySeed]) -> None:
    """Give new organizations these repositories from now on, and no others. Inside a transaction."""
    state.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_KEY, msgspec.json.encode(repositories).decode()))


def kept(state: State) -> list[NewRepositorySeed]:
    """Return the repositories that the last call of `keep` was given."""
    row = state.db.execute("SELECT value FROM meta WHERE key = ?", (_KEY,)).fetchone()
    return [] if row is None else msgspec.json.decode(row["value"], type=list[NewRepositorySeed])
