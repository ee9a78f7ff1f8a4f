"""The areas that are served: one line for each file."""

from typing import Final

from bulk.sandbox import contents, organizations, rate_limit, readme, rulesets, snapshots
from bulk.sandbox.routes import Area

AREAS: Final[tuple[Area, ...]] = (
    contents.AREA,
    organizations.AREA,
    rate_limit.AREA,
    readme.AREA,
    rulesets.AREA,
    snapshots.AREA,
)
