"""Names that operations on an enterprise share: the enterprise itself, and its teams.

Source: specification, Conventions (path parameters) and Enterprise teams.
"""

import re
from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from bulk import urls
from bulk.operation import ItemFlaw

_is_slug = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*").fullmatch
_is_team = re.compile(r"ent:[A-Za-z0-9._-]+|[0-9]{1,18}").fullmatch

Enterprise = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=100,
        description="slug of the enterprise's name",
        examples=["acme"],
        extra_json_schema={"pattern": "^[A-Za-z0-9][A-Za-z0-9_-]*$"},
    ),
]
Team = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=255,
        description="slug of the enterprise team, which begins with ent:, or its id",
        examples=["ent:platform"],
        extra_json_schema={"pattern": "^(ent:[A-Za-z0-9._-]+|[0-9]{1,18})$"},
    ),
]


def flaws_of_enterprise(enterprise: str) -> Iterator[ItemFlaw]:
    """Yield what is wrong with the slug of an enterprise."""
    if not _is_slug(enterprise):
        reason = f"expected letters, digits, hyphens and underscores, a letter or digit first; got {enterprise!r}"
        yield ItemFlaw("enterprise", reason)


def flaws_of_team(team: str) -> Iterator[ItemFlaw]:
    """Yield what is wrong with the slug or id of an enterprise team."""
    if not _is_team(team):
        yield ItemFlaw("enterprise-team", f"expected a slug that begins with ent:, or an id; got {team!r}")


def enterprise_path(enterprise: str) -> str:
    """Return the path below which everything of an enterprise lies."""
    return f"/enterprises/{urls.segment(enterprise)}"
