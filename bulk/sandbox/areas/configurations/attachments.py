"""Attaching configurations to repositories: which repositories, whether licenses suffice, and the work in background.

An attachment is accepted (202) and done `ATTACH_S` later, for all of its repositories at one moment; until then they
keep what they had. The repositories of a scope are determined when the attachment is accepted. An organization has one
attachment at a time. An accepted attachment survives a restart.

Seats of advanced security are taken by the distinct committers of all repositories that use it. Where they do not
suffice, a configuration that asks for licensed features gives its repositories the free ones only: they are listed with
it as `failed` and do not use advanced security because of it. Source: specification, Code security configurations; the
vendor's page about too few licenses.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from bulk.sandbox.areas.configurations import configurations
from bulk.sandbox.areas.shared import organization_repositories
from bulk.sandbox.http.refusals import invalid, problem

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from bulk.sandbox.areas.configurations.configurations import Configuration
    from bulk.sandbox.http.context import Context
    from bulk.sandbox.store.records import Organization
    from bulk.sandbox.store.state import State

ATTACH_S: Final = 0.5
SCOPES: Final = ("all", "all_without_configurations", "public", "private_or_internal", "selected")
RESOURCE: Final = "CodeSecurityConfigurationAttachment"
ATTACHED: Final = "attached"
FAILED: Final = "failed"
_INTO_ALL = "INSERT OR REPLACE INTO configuration_repositories VALUES (?, ?, ?)"


def targets(state: State, organization: Organization, body: Mapping[str, object]) -> list[int]:
    """Return ids of the repositories that the body's `scope` means right now, ascending.

    Raises:
        Refused: 422, the scope is missing or unknown, `selected_repository_ids` does not go with it, or names what is
            no repository of the organization.
    """
    scope = body.get("scope")
    if scope not in SCOPES:
        code = "missing_field" if scope is None else "invalid"
        raise invalid(problem(RESOURCE, "scope", code, f"scope must be one of {', '.join(SCOPES)}"))
    selected = body.get("selected_repository_ids")
    if scope == "selected":
        return _selected(selected, organization_repositories.membership(state, organization.id))
    if selected is not None:
        reason = "selected_repository_ids can be given only with scope selected"
        raise invalid(problem(RESOURCE, "selected_repository_ids", "invalid", reason))
    known = organization_repositories.visibilities(state, organization.id)
    match scope:
        case "public":
            return [number for number, private in known.items() if not private]
        case "private_or_internal":
            return [number for number, private in known.items() if private]
        case "all_without_configurations":
            held = state.db.execute("SELECT repository_id FROM configuration_repositories")
            return sorted(known.keys() - {row["repository_id"] for row in held})
    return list(known)


def is_under_way(state: State, organization: Organization) -> bool:
    """Return whether an attachment of the organization was accepted and is not done yet."""
    row = state.db.execute("SELECT 1 FROM attachments WHERE organization_id = ?", (organization.id,)).fetchone()
    return row is not None


def is_being_attached(state: State, configuration: Configuration) -> bool:
    """Return whether the configuration is on its way to some repositories."""
    row = state.db.execute("SELECT 1 FROM attachments WHERE configuration_id = ?", (configuration.id,)).fetchone()
    return row is not None


def accept(
    context: Context, organization: Organization, configuration: Configuration, repositories: Collection[int]
) -> bool:
    """Record an attachment and begin it; returns whether it changes anything."""
    state = context.state
    is_licensed = licenses_suffice(state, organization.enterprise_id, configuration, repositories)
    status = ATTACHED if is_licensed else FAILED
    due_at = context.clock.now() + ATTACH_S
    held = {
        row["repository_id"]
        for row in state.db.execute(
            "SELECT repository_id FROM configuration_repositories WHERE configuration_id = ? AND status = ?",
            (configuration.id, status),
        )
    }
    with state.transaction() as db:
        db.execute(
            "INSERT INTO attachments VALUES (?, ?, ?, ?, ?)",
            (organization.id, configuration.id, json.dumps(list(repositories)), is_licensed, due_at),
        )
    _finish_later(context, organization.id, due_at)
    return not held.issuperset(repositories)


def licenses_suffice(
    state: State, enterprise_id: int, configuration: Configuration, repositories: Collection[int]
) -> bool:
    """Return whether the licenses suffice for `repositories` to have all features of the configuration.

    Seats that are promised to attachments which are not done yet count as taken.
    """
    if not configuration.needs_licenses:
        return True
    row = state.db.execute(
        "SELECT advanced_security_seats FROM licenses WHERE enterprise_id = ?", (enterprise_id,)
    ).fetchone()
    users = {
        each["repository_id"] for each in state.db.execute("SELECT repository_id FROM advanced_security_repositories")
    }
    users.update(repositories)
    for each in state.db.execute("SELECT * FROM attachments WHERE is_licensed"):
        promised = configurations.find(state, str(each["configuration_id"]))
        if promised is not None and promised.needs_licenses:
            users.update(json.loads(each["repositories_json"]))
    committers = state.db.execute(
        "SELECT repository_id, user_id FROM committers JOIN repositories ON repositories.id = repository_id "
        "JOIN organizations ON organizations.id = organization_id WHERE enterprise_id = ?",
        (enterprise_id,),
    )
    needed = {each["user_id"] for each in committers if each["repository_id"] in users}
    return len(needed) <= (row["advanced_security_seats"] if row else 0)


def spread(state: State, enterprise_id: int, configuration: Configuration) -> None:
    """Apply a changed configuration to the repositories that have it. Inside a transaction."""
    rows = state.db.execute(
        "SELECT repository_id FROM configuration_repositories WHERE configuration_id = ?", (configuration.id,)
    )
    held = [row["repository_id"] for row in rows]
    give(state, configuration, held, licenses_suffice(state, enterprise_id, configuration, held))


def give(state: State, configuration: Configuration, repositories: Collection[int], is_licensed: bool) -> None:
    """Let `repositories` have the configuration and no other, with all its features or the free ones only.

    Inside a transaction.
    """
    status = ATTACHED if is_licensed else FAILED
    ids = [(number,) for number in repositories]
    state.db.executemany(_INTO_ALL, [(number, configuration.id, status) for (number,) in ids])
    if not configuration.needs_licenses:
        state.db.executemany("DELETE FROM advanced_security_repositories WHERE repository_id = ?", ids)
    elif is_licensed:
        state.db.executemany("INSERT OR IGNORE INTO advanced_security_repositories VALUES (?)", ids)


async def take_up(context: Context) -> None:
    """Go on with attachments that were accepted before a restart."""
    for row in context.state.db.execute("SELECT organization_id, due_at FROM attachments").fetchall():
        _finish_later(context, row["organization_id"], row["due_at"])


def _finish_later(context: Context, organization_id: int, due_at: float) -> None:
    async def finish() -> None:
        await context.clock.sleep(min(max(due_at - context.clock.now(), 0.0), ATTACH_S))
        state = context.state
        with state.transaction() as db:
            row = db.execute(
                "DELETE FROM attachments WHERE organization_id = ? RETURNING *", (organization_id,)
            ).fetchone()
            configuration = configurations.find(state, str(row["configuration_id"]))
            assert configuration is not None, "one that is being attached can't be deleted"
            repositories, organization = json.loads(row["repositories_json"]), state.organization_by_id(organization_id)
            # The configuration may have been changed since the attachment was accepted.
            is_licensed = licenses_suffice(state, organization.enterprise_id, configuration, repositories)
            was_promised = row["is_licensed"] or not configuration.needs_licenses
            give(state, configuration, repositories, bool(is_licensed and was_promised))

    context.background.start("attachment of a configuration", finish)


def _selected(selected: object, is_known: Callable[[int], bool]) -> list[int]:
    field = "selected_repository_ids"
    if selected is None:
        raise invalid(problem(RESOURCE, field, "missing_field", f"{field} is required with scope selected"))
    if not isinstance(selected, list) or not all(
        isinstance(each, int) and not isinstance(each, bool) for each in selected
    ):
        raise invalid(problem(RESOURCE, field, "invalid", f"{field} must be an array of integers"))
    unknown = sorted({each for each in selected if not is_known(each)})
    if unknown:
        shown = ", ".join(map(str, unknown[:10]))
        raise invalid(problem(RESOURCE, field, "invalid", f"no repository of this organization: {shown}"))
    return sorted(set(selected))
