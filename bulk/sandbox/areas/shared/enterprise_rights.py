"""The enterprise that a path names, and the rights of callers in it.

Its members are all members of its organizations; its administrators are its owners and the site's; billing managers see
what it pays for. All other callers get 404. A member who may not do what he asks for gets 403, or 404 where the
specification names no 403.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bulk.sandbox.http.refusals import forbidden, not_found

if TYPE_CHECKING:
    from bulk.sandbox.http.call import Call


@dataclass(frozen=True, slots=True)
class Enterprise:
    """An enterprise. `slug` is its name in URLs."""

    id: int
    slug: str


def is_administrator(call: Call) -> bool:
    """Return whether the caller's user administers the enterprise."""
    return call.user is not None and (call.user.enterprise_owner or call.user.site_admin)


def joined(call: Call) -> Enterprise:
    """Return the enterprise of the path, for its members.

    Raises:
        Refused: 404, the enterprise does not exist, or the caller is not a member.
    """
    found = _find(call)
    if not is_administrator(call) and not _is_member(call, found):
        raise not_found()
    return found


def administered(call: Call, *, hidden: bool = False) -> Enterprise:
    """Return the enterprise of the path, for its administrators.

    Args:
        call: the request.
        hidden: whether members get 404 instead of 403.

    Raises:
        Refused: 404, the enterprise does not exist, or the caller is not a member; 403, he is a member but no
            administrator.
    """
    found = joined(call)
    if not is_administrator(call):
        raise not_found() if hidden else forbidden("Must be an administrator of the enterprise")
    return found


def billed(call: Call) -> Enterprise:
    """Return the enterprise of the path, for its administrators and billing managers.

    Raises:
        Refused: as `administered`.
    """
    found = _find(call)
    row = call.context.state.db.execute(
        "SELECT 1 FROM billing_managers WHERE user_id = ? AND enterprise_id = ?", (call.caller.id, found.id)
    ).fetchone()
    return found if row is not None else administered(call)


def _find(call: Call) -> Enterprise:
    row = call.context.state.db.execute(
        "SELECT id, slug FROM enterprises WHERE slug = ?", (call.params["enterprise"],)
    ).fetchone()
    if row is None:
        raise not_found()
    return Enterprise(row["id"], row["slug"])


def _is_member(call: Call, enterprise: Enterprise) -> bool:
    row = call.context.state.db.execute(
        "SELECT 1 FROM memberships JOIN organizations ON organizations.id = organization_id "
        "WHERE user_id = ? AND enterprise_id = ?",
        (call.caller.id, enterprise.id),
    ).fetchone()
    return row is not None
