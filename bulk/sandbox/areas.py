"""The areas that are served: one line for each file."""

from typing import Final

from bulk.sandbox import (
    contents,
    enterprise_configurations,
    enterprise_security,
    licenses,
    notifications,
    organization_configurations,
    organizations,
    rate_limit,
    readme,
    rulesets,
    snapshots,
    team_organizations,
    webhooks,
)
from bulk.sandbox.routes import Area

AREAS: Final[tuple[Area, ...]] = (
    contents.AREA,
    enterprise_configurations.AREA,
    enterprise_security.AREA,
    licenses.AREA,
    notifications.AREA,
    organization_configurations.AREA,
    organizations.AREA,
    rate_limit.AREA,
    readme.AREA,
    rulesets.AREA,
    snapshots.AREA,
    team_organizations.AREA,
    webhooks.AREA,
)
