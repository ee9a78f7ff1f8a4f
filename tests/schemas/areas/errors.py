"""Answers that say no: every status from 400 on has this body."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, UnsetType

from tests.schemas.words import Shape, Text, Url


class Problem(Shape, kw_only=True):
    """One entry of `errors`. One that is about no field names none, and has a code of its own."""

    resource: Text
    field: Text | UnsetType = UNSET
    code: Literal["missing", "missing_field", "invalid", "already_exists", "unprocessable", "custom", "too_large"]
    message: Text | UnsetType = UNSET
    index: int | UnsetType = UNSET
    value: Any | UnsetType = UNSET

    def __post_init__(self) -> None:
        """Only what is custom may be about no field."""
        if self.field is UNSET and self.code != "custom":
            raise ValueError("field must be there where code is not custom")


class Error(Shape, kw_only=True):
    """The platform refuses."""

    message: Text
    documentation_url: Url
    status: Text | UnsetType = UNSET
    url: Url | UnsetType = UNSET
    errors: list[Problem | Text] | UnsetType = UNSET
