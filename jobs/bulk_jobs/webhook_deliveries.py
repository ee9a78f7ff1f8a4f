"""Deliveries of an organization's webhook: what it was sent, and how that went.

Source: specification, Organization webhooks; open-points.md (deliveries).
"""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from bulk.capabilities import Returns
from bulk.operation import ItemFlaw, Operation, Steps
from bulk_jobs import accesses
from bulk_jobs.result_types import Delivery
from bulk_jobs.shared import hook_settings, pages, proofs
from bulk_jobs.shared.hook_settings import HookItem, hook_path

_DELIVERIES = proofs.listing({})


class DeliveriesItem(HookItem, frozen=True, kw_only=True):
    """Names a webhook, and says which of its deliveries are listed."""

    status: (
        Annotated[Literal["success", "failure"], Meta(description="only deliveries that ended like this")] | None
    ) = None


class ListDeliveries(Operation[DeliveriesItem], Returns[list[Delivery]]):
    """Read what a webhook was sent and how that went, newest first.

    Requests:  1 for every 100 deliveries.
    Category:  core. Lane: none.
    Result:    the deliveries, as an array.
    Lost answer: a read is repeated.
    Source:    Organization webhooks, GET /orgs/{org}/hooks/{hook_id}/deliveries.
    """

    name = "webhook.deliveries"
    access = accesses.HOOKS_READ
    Item = DeliveriesItem
    is_momentary = True
    example: ClassVar = {"org": "acme-ops", "hook_id": 4001, "status": "failure"}

    def check(self, item: DeliveriesItem) -> Iterator[ItemFlaw]:
        return hook_settings.flaws_of_organization(item)

    def steps(self, item: DeliveriesItem) -> Steps:
        return pages.outcome_of(
            (yield from pages.read_all(f"{hook_path(item)}/deliveries", _DELIVERIES, status=item.status))
        )
