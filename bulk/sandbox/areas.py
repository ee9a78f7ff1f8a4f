"""The areas that are served: one line for each file."""

from typing import Final

from bulk.sandbox import (
    contents,
    enterprise_security,
    licenses,
    organizations,
    rate_limit,
    readme,
    rulesets,
    snapshots,
    team_organizations,
)
from bulk.sandbox.routes import Area

AREAS: Final[tuple[Area, ...]] = (
    contents.AREA,
    enterprise_security.AREA,
    licenses.AREA,
    organizations.AREA,
    rate_limit.AREA,
    readme.AREA,
    rulesets.AREA,
    snapshots.AREA,
    team_organizations.AREA,
)
