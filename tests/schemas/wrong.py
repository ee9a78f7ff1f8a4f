"""Schemas made wrong on purpose, so that tests can see them caught: nothing else uses them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tests.schemas.areas.organizations import Organization
from tests.schemas.areas.others import RateLimits
from tests.schemas.checker import Checker, note
from tests.schemas.table import BESIDE, ENDPOINTS, NOTHING, Answer, json
from tests.schemas.words import Text

if TYPE_CHECKING:
    from bulk.sandbox.http.observing import Observed

ADMINISTRATION = "POST /admin/organizations"
RATE_LIMIT = "GET /rate_limit"


class LackingOrganization(Organization, kw_only=True):
    """An organization with a field that the platform does not show."""

    motto: Text


WRONG: dict[str, Mapping[int, Answer]] = {
    **ENDPOINTS,
    **BESIDE,
    ADMINISTRATION: {201: json(LackingOrganization), 422: NOTHING},
    # `rate` is there before 2026-03-10, which this denies
    RATE_LIMIT: {200: json(RateLimits)},
}
_CHECKER = Checker(WRONG)


def observe(seen: Observed) -> None:
    """Note what is wrong by these schemas."""
    note(_CHECKER, seen)
