"""Licensing and billing: the installation's license, and who uses the seats of advanced security.

A seat of the license is a user's. A seat of advanced security belongs to a distinct login among the committers of the
repositories that use it, so the total is less than the sum of the repositories' counts; the report lists those
repositories. Its maximum is the total that there would be if every repository used it. Where the products are sold one
by one (`standalone`), a request must name one of them; where they are sold together, it must not. Source:
specification, Advanced-security committers report; which repositories count is open there (open-points.md, Decisions).
"""

from __future__ import annotations

import math
import sqlite3
from itertools import groupby
from typing import Final

from bulk.sandbox.areas.shared import enterprise_rights
from bulk.sandbox.clock import iso
from bulk.sandbox.http import paging
from bulk.sandbox.http.access import Access
from bulk.sandbox.http.answers import Answer
from bulk.sandbox.http.call import Call
from bulk.sandbox.http.refusals import invalid, not_found, problem
from bulk.sandbox.http.routes import Area, Route

DAY_S: Final = 86_400
PRODUCTS: Final = ("code_security", "secret_protection")


async def get_license(call: Call) -> Answer:
    """GET /enterprise/settings/license, for administrators; 404 for all other callers."""
    if not enterprise_rights.is_administrator(call):
        raise not_found()
    db = call.context.state.db
    row = db.execute("SELECT * FROM licenses ORDER BY enterprise_id").fetchone()
    if row is None:
        raise not_found()
    used: int = db.execute("SELECT count(*) FROM users").fetchone()[0]
    return Answer(
        body={
            "seats": row["seats"],
            "seats_used": used,
            "seats_available": max(0, row["seats"] - used),
            "kind": row["kind"],
            "days_until_expiration": math.ceil((row["expire_at"] - call.now) / DAY_S),
            "expire_at": iso(row["expire_at"]),
        }
    )


async def get_committers(call: Call) -> Answer:
    """GET …/settings/billing/advanced-security: the totals, and a page of the repositories that have committers.

    Raises:
        Refused: 403, the caller is not an administrator or billing manager; 422, `advanced_security_product` is
            missing, unknown or out of place.
    """
    enterprise = enterprise_rights.billed(call)
    db = call.context.state.db
    held = db.execute("SELECT * FROM licenses WHERE enterprise_id = ?", (enterprise.id,)).fetchone()
    _check_product(call.query.get("advanced_security_product"), bool(held and held["standalone"]))
    rows = db.execute(
        "SELECT repositories.id AS id, repositories.name AS repo, organizations.login AS owner, users.login AS login, "
        "email, last_pushed_at, advanced_security_repositories.repository_id IS NOT NULL AS is_used FROM committers "
        "JOIN repositories ON repositories.id = committers.repository_id "
        "JOIN organizations ON organizations.id = organization_id JOIN users ON users.id = user_id "
        "LEFT JOIN advanced_security_repositories USING (repository_id) "
        "WHERE enterprise_id = ? ORDER BY repositories.id, users.id",
        (enterprise.id,),
    ).fetchall()
    using = [row for row in rows if row["is_used"]]
    repositories = [list(group) for _, group in groupby(using, key=lambda row: row["id"])]
    page, headers = paging.cut(call, repositories)
    return Answer(
        body={
            "total_advanced_security_committers": len({row["login"] for row in using}),
            "total_count": len(repositories),
            "maximum_advanced_security_committers": len({row["login"] for row in rows}),
            "purchased_advanced_security_committers": held["advanced_security_seats"] if held else 0,
            "repositories": [_repository(group) for group in page],
        },
        headers=headers,
    )


def _check_product(product: str | None, is_standalone: bool) -> None:
    field = "advanced_security_product"
    if product is None:
        if is_standalone:
            raise invalid(problem("AdvancedSecurity", field, "missing_field"))
    elif product not in PRODUCTS:
        raise invalid(problem("AdvancedSecurity", field, "invalid", f"{field} must be one of {', '.join(PRODUCTS)}"))
    elif not is_standalone:
        reason = f"{field} is allowed only where the products are licensed one by one"
        raise invalid(problem("AdvancedSecurity", field, "invalid", reason))


def _repository(rows: list[sqlite3.Row]) -> dict[str, object]:
    return {
        "name": f"{rows[0]['owner']}/{rows[0]['repo']}",
        "advanced_security_committers": len(rows),
        "advanced_security_committers_breakdown": [
            {
                "user_login": row["login"],
                "last_pushed_date": iso(row["last_pushed_at"])[:10],
                "last_pushed_email": row["email"],
            }
            for row in rows
        ],
    }


# The specification names no scope for the license, and a role for the committers.
LICENSE = Access(hidden=True)
COMMITTERS = Access(
    scopes=("manage_billing:enterprise", "read:enterprise"),
    permission=("enterprise_administration", "write"),
    app_tokens=False,
)
AREA = Area(
    "Licensing and billing",
    (
        Route("GET", "/enterprise/settings/license", get_license, access=LICENSE),
        Route(
            "GET",
            "/enterprises/{enterprise}/settings/billing/advanced-security",
            get_committers,
            access=COMMITTERS,
        ),
    ),
)
