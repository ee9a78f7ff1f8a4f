"""Code security configurations in the state, of enterprises and organizations, and how they are shown.

An enterprise's configurations are available in all its organizations; an organization's own only there. Names are
unique within the enterprise or organization. Ids are unique among all configurations.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from bulk.sandbox.areas.configurations import configuration_settings
from bulk.sandbox.areas.configurations.configuration_settings import RESOURCE, Settings
from bulk.sandbox.clock import iso
from bulk.sandbox.http.refusals import not_found, problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bulk.sandbox.http.call import Call
    from bulk.sandbox.store.records import Organization
    from bulk.sandbox.store.state import State

DEFAULT_FOR: tuple[str, ...] = ("all", "none", "private_and_internal", "public")


@dataclass(frozen=True, slots=True)
class Configuration:
    """One configuration.

    Attributes:
        target_id: the enterprise or organization that it belongs to.
        settings: every setting.
        created_at, updated_at: UTC epoch seconds.
    """

    id: int
    target_type: Literal["enterprise", "organization"]
    target_id: int
    name: str
    description: str
    settings: Settings
    created_at: float
    updated_at: float

    @property
    def needs_licenses(self) -> bool:
        """Whether it asks for features that take seats of advanced security."""
        return configuration_settings.needs_licenses(self.settings)


def of_enterprise(state: State, enterprise_id: int) -> list[Configuration]:
    """Return an enterprise's configurations, oldest first."""
    rows = state.db.execute(
        "SELECT * FROM configurations WHERE target_type = 'enterprise' AND target_id = ? ORDER BY id", (enterprise_id,)
    )
    return [_from_row(row) for row in rows]


def find(state: State, text: str) -> Configuration | None:
    """Return the configuration whose id a path gives as `text`."""
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        return None
    row = state.db.execute("SELECT * FROM configurations WHERE id = ?", (int(text),)).fetchone()
    return _from_row(row) if row else None


def available(call: Call, organization: Organization) -> Configuration:
    """Return the configuration of the path: the organization's own, or one of its enterprise.

    Raises:
        Refused: 404, there is no configuration of that id, or it belongs to another organization or enterprise.
    """
    found = find(call.context.state, call.params["configuration_id"])
    owners = {("organization", organization.id), ("enterprise", organization.enterprise_id)}
    if found is None or (found.target_type, found.target_id) not in owners:
        raise not_found()
    return found


def name_problem(
    state: State, target_type: str, target_id: int, name: str, besides: int = 0
) -> dict[str, object] | None:
    """Return why `name` can't be given to a configuration of this target: one other than `besides` has it already."""
    row = state.db.execute(
        "SELECT id FROM configurations WHERE target_type = ? AND target_id = ? AND name = ?",
        (target_type, target_id, name),
    ).fetchone()
    if row is None or row["id"] == besides:
        return None
    return problem(RESOURCE, "name", "already_exists", "name is already taken")


def add(
    state: State, enterprise_id: int, name: str, description: str, given: Mapping[str, object], now: float
) -> Configuration:
    """Make a configuration of an enterprise. Inside a transaction."""
    number = state.allocate("enterprise-configuration")
    while find(state, str(number)) is not None:  # a configuration of an organization has it
        number = state.allocate("enterprise-configuration")
    settings = configuration_settings.complete(given)
    made = Configuration(number, "enterprise", enterprise_id, name, description, settings, now, now)
    state.db.execute(
        "INSERT INTO configurations VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (number, made.target_type, enterprise_id, name, description, _kept(settings), now, now),
    )
    return made


def change(state: State, former: Configuration, **changed: object) -> Configuration:
    """Keep `former` with other `name`, `description`, `settings` or `updated_at`. Inside a transaction."""
    made: Configuration = replace(former, **changed)  # type: ignore[arg-type]
    state.db.execute(
        "UPDATE configurations SET name = ?, description = ?, settings_json = ?, updated_at = ? WHERE id = ?",
        (made.name, made.description, _kept(made.settings), made.updated_at, made.id),
    )
    return made


def remove(state: State, gone: Configuration) -> None:
    """Delete a configuration. Its repositories keep what it gave them, and belong to none. Inside a transaction."""
    state.db.execute("DELETE FROM configuration_repositories WHERE configuration_id = ?", (gone.id,))
    state.db.execute("DELETE FROM configurations WHERE id = ?", (gone.id,))


def shown(call: Call, configuration: Configuration) -> dict[str, object]:
    """Return a configuration as the platform shows it."""
    owner, page = _places(call, configuration)
    settings = dict(configuration.settings)
    reviewers = settings["secret_scanning_delegated_bypass_options"]
    if isinstance(reviewers, dict):
        settings["secret_scanning_delegated_bypass_options"] = {
            "reviewers": [
                {"security_configuration_id": configuration.id, **reviewer} for reviewer in reviewers["reviewers"]
            ]
        }
    return {
        "id": configuration.id,
        "target_type": configuration.target_type,
        "name": configuration.name,
        "description": configuration.description,
        **settings,
        "url": f"{call.base_url}/{owner}/code-security/configurations/{configuration.id}",
        "html_url": f"{call.site_url}/{page}/settings/security_products/configurations/edit/{configuration.id}",
        "created_at": iso(configuration.created_at),
        "updated_at": iso(configuration.updated_at),
    }


def defaults(state: State, target_type: str, target_id: int) -> list[tuple[str, Configuration]]:
    """Return (`default_for_new_repos`, configuration) of an enterprise or organization, by configuration."""
    rows = state.db.execute(
        "SELECT default_for_new_repos, configurations.* FROM configuration_defaults JOIN configurations "
        "ON configurations.id = configuration_id "
        "WHERE configuration_defaults.target_type = ? AND configuration_defaults.target_id = ? "
        "ORDER BY configurations.id",
        (target_type, target_id),
    )
    return [(row["default_for_new_repos"], _from_row(row)) for row in rows]


def default_for_new(state: State, enterprise_id: int, *, is_private: bool) -> Configuration | None:
    """Return an enterprise's default for new repositories of a kind; None: there is none."""
    kind = "private_and_internal" if is_private else "public"
    found = (made for name, made in defaults(state, "enterprise", enterprise_id) if kind in _kinds(name))
    return next(found, None)


def set_default(state: State, organization: Organization, configuration: Configuration, kind: str) -> bool:
    """Make a configuration an organization's default for new repositories of a kind; returns whether that is new.

    Each kind of repository has one default at most: another configuration gives up the kinds that this one takes, and
    keeps its other ones. Inside a transaction.
    """
    before = {made.id: _kinds(name) for name, made in defaults(state, "organization", organization.id)}
    after = {number: kinds - _kinds(kind) for number, kinds in before.items()}
    after[configuration.id] = _kinds(kind)
    after = {number: kinds for number, kinds in after.items() if kinds}
    state.db.execute(
        "DELETE FROM configuration_defaults WHERE target_type = 'organization' AND target_id = ?", (organization.id,)
    )
    state.db.executemany(
        "INSERT INTO configuration_defaults VALUES ('organization', ?, ?, ?)",
        [(organization.id, _kind_of(kinds), number) for number, kinds in after.items()],
    )
    return after != before


def is_default(state: State, configuration: Configuration) -> bool:
    """Return whether the configuration is a default for new repositories of an enterprise or organization."""
    return bool(
        state.db.execute(
            "SELECT 1 FROM configuration_defaults WHERE configuration_id = ?", (configuration.id,)
        ).fetchone()
    )


def _kinds(name: str) -> frozenset[str]:
    kinds = {"all": ("private_and_internal", "public"), "none": ()}
    return frozenset(kinds.get(name, (name,)))


def _kind_of(kinds: frozenset[str]) -> str:
    return "all" if len(kinds) > 1 else next(iter(kinds))


def _places(call: Call, configuration: Configuration) -> tuple[str, str]:
    """Return where the owner of a configuration is, in the interface and among the pages for people."""
    state = call.context.state
    if configuration.target_type == "organization":
        login = state.organization_by_id(configuration.target_id).login
        return f"orgs/{login}", f"organizations/{login}"
    row = state.db.execute("SELECT slug FROM enterprises WHERE id = ?", (configuration.target_id,)).fetchone()
    return f"enterprises/{row['slug']}", f"enterprises/{row['slug']}"


def _kept(settings: Mapping[str, object]) -> str:
    return json.dumps(configuration_settings.differing(settings))


def _from_row(row: sqlite3.Row) -> Configuration:
    return Configuration(
        row["id"],
        row["target_type"],
        row["target_id"],
        row["name"],
        row["description"],
        configuration_settings.complete(json.loads(row["settings_json"])),
        row["created_at"],
        row["updated_at"],
    )
