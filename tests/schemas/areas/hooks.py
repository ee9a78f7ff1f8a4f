"""Webhooks of organizations, and their deliveries."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from tests.schemas.words import Count, Id, Masked, Shape, Text, Timestamp, Url


class HookConfig(Shape, kw_only=True):
    """Where a webhook delivers, and how. A secret is shown masked, where there is one."""

    url: Url
    content_type: Literal["json", "form"]
    insecure_ssl: Literal["0", "1"] | int
    secret: Masked | UnsetType = UNSET


class Hook(Shape, kw_only=True):
    """A webhook of an organization."""

    id: Id
    url: Url
    ping_url: Url
    deliveries_url: Url
    name: Literal["web"]
    events: list[Text]
    active: bool
    config: HookConfig
    updated_at: Timestamp
    created_at: Timestamp
    type: Literal["Organization"]


class Delivery(Shape, kw_only=True):
    """One delivery of a webhook."""

    id: Id
    guid: Text
    delivered_at: Timestamp
    redelivery: bool
    duration: float
    status: Text
    status_code: Count
    event: Text
    action: Text | None
    installation_id: Id | None
    repository_id: Id | None
    throttled_at: Timestamp | None
