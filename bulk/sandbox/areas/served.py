"""The areas that are served: one line for each file."""

from typing import Final

from bulk.sandbox.areas import licenses, notifications, rate_limit
from bulk.sandbox.areas.apps import device_flow, installations, token_check
from bulk.sandbox.areas.configurations import (
    enterprise_configurations,
    enterprise_security,
    organization_configurations,
)
from bulk.sandbox.areas.contents import contents, readme
from bulk.sandbox.areas.organizations import organizations, team_organizations
from bulk.sandbox.areas.rulesets import rulesets
from bulk.sandbox.areas.snapshots import snapshots
from bulk.sandbox.areas.webhooks import webhooks
from bulk.sandbox.http.routes import Area

AREAS: Final[tuple[Area, ...]] = (
    contents.AREA,
    device_flow.AREA,
    enterprise_configurations.AREA,
    enterprise_security.AREA,
    installations.AREA,
    licenses.AREA,
    notifications.AREA,
    organization_configurations.AREA,
    organizations.AREA,
    rate_limit.AREA,
    readme.AREA,
    rulesets.AREA,
    snapshots.AREA,
    team_organizations.AREA,
    token_check.AREA,
    webhooks.AREA,
)
