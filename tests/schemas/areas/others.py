"""Dependency snapshots and rate limits."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from tests.schemas.words import Count, Id, Shape, Text, Timestamp


class SnapshotTaken(Shape, kw_only=True):
    """A snapshot was taken; `result` says what became of it."""

    id: Id
    created_at: Timestamp
    message: Text
    result: Text


class Rate(Shape, kw_only=True):
    """What is left of one category; `reset` is epoch seconds."""

    limit: Count
    used: Count
    remaining: Count
    reset: Count


class Categories(Shape, kw_only=True):
    """All categories."""

    core: Rate
    search: Rate
    code_search: Rate
    graphql: Rate
    integration_manifest: Rate
    dependency_snapshots: Rate
    dependency_sbom: Rate
    code_scanning_upload: Rate
    code_scanning_autofix: Rate
    actions_runner_registration: Rate
    scim: Rate
    source_import: Rate | UnsetType = UNSET


class RateLimits(Shape, kw_only=True):
    """From 2026-03-10 on."""

    resources: Categories


class OldRateLimits(RateLimits, kw_only=True):
    """Before: `rate` equals core."""

    rate: Rate

    def __post_init__(self) -> None:
        """Both say the same."""
        if self.rate != self.resources.core:
            raise ValueError("rate must equal resources.core")
