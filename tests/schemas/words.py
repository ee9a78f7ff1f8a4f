"""What answers are made of: the base of all schemas, and the types that fields share.

A schema is a struct whose fields must all be there, with no other beside them, unless a field has the default `UNSET`.
Null is allowed only where the type says so. Source: docs/specification facts, Resources and their fields; what the
specification leaves open is as docs/open-points.md says.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class Shape(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A JSON object of an answer."""


Timestamp = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
Date = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\d$")]
Url = Annotated[str, Meta(pattern=r"^https?://[^\s]+$")]
MemberUrl = Annotated[str, Meta(pattern=r"^https?://[^\s]+\{/member\}$")]
Sha = Annotated[str, Meta(pattern=r"^[0-9a-f]{40}$")]
Id = Annotated[int, Meta(ge=1)]
Count = Annotated[int, Meta(ge=0)]
Text = Annotated[str, Meta(min_length=1)]
Masked = Annotated[str, Meta(pattern=r"^\*+$")]
