"""The contents of a new organization: the repositories that a seed file names, and their configurations.

No endpoint of the specification creates a repository, so that a rehearsal would end with empty organizations. Each new
repository gets the configuration that is its enterprise's default for its kind; an organization that is only being
created has no default of its own. With too few licenses it gets the free features of that only. Source: specification,
default_for_new_repos.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bulk.sandbox.areas.configurations import attachments, configurations
from bulk.sandbox.seeding import new_repositories
from bulk.sandbox.store.records import Repository

if TYPE_CHECKING:
    from bulk.sandbox.areas.configurations.configurations import Configuration
    from bulk.sandbox.store.records import Organization
    from bulk.sandbox.store.state import State


def furnish(state: State, organization: Organization, now: float) -> None:
    """Give a new organization its repositories and their configurations. Inside a transaction.

    Args:
        now: when its repositories are made (UTC epoch seconds).
    """
    attached: dict[int, tuple[Configuration, list[int]]] = {}
    for seed in new_repositories.kept(state):
        number = state.allocate("repository")
        state.add_repository(
            Repository(number, organization.id, seed.name, seed.private, seed.description, seed.default_branch, now)
        )
        state.add_seed_files(number, seed.files)
        found = configurations.default_for_new(state, organization.enterprise_id, is_private=seed.private)
        if found is not None:
            attached.setdefault(found.id, (found, []))[1].append(number)
    for configuration, numbers in attached.values():
        is_licensed = attachments.licenses_suffice(state, organization.enterprise_id, configuration, numbers)
        attachments.give(state, configuration, numbers, is_licensed)
