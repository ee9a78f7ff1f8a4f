"""The license of the installation, and who uses the seats of advanced security.

Source: specification, Licensing and billing.
"""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from bulk.capabilities import Returns
from bulk.model import Request, succeeded, unchanged
from bulk.operation import Item, ItemFlaw, Operation, Steps
from bulk_jobs import accesses
from bulk_jobs.result_types import Committers, License
from bulk_jobs.shared import enterprises, pages, proofs

# for a license without a limit, the platform sends a word instead of a number
LICENSE = proofs.entry({"seats": proofs.NUMBER, "seats_used": int})
"""The proof that an answer is a license."""

COMMITTERS = proofs.listing_in("repositories", {"name": str}, {"total_advanced_security_committers": int})
"""The proof that an answer is a page of the committers report."""


class LicenseItem(Item, frozen=True, kw_only=True):
    """Takes no arguments: an installation has one license."""


class GetLicense(Operation[LicenseItem], Returns[License]):
    """Read the license: its seats, how many are used, and when it ends.

    Requests:  1.
    Category:  core. Lane: none.
    Result:    seats, seats_used, seats_available, kind, days_until_expiration, expire_at.
    Lost answer: a read is repeated.
    Source:    Licensing and billing, GET /enterprise/settings/license.
    """

    name = "license.get"
    access = accesses.LICENSE
    Item = LicenseItem

    def steps(self, item: LicenseItem) -> Steps:
        reply = yield Request(method="GET", path="/enterprise/settings/license", proof=LICENSE)
        return unchanged(reply.body) if reply.is_unchanged else succeeded(reply.body)


class CommittersItem(Item, frozen=True, kw_only=True):
    """Names an enterprise and a product."""

    enterprise: enterprises.Enterprise
    advanced_security_product: (
        Annotated[
            Literal["code_security", "secret_protection"],
            Meta(description="needed where the products are licensed one by one, and not allowed elsewhere"),
        ]
        | None
    ) = None


class GetCommitters(Operation[CommittersItem], Returns[Committers]):
    """Read who commits to repositories with advanced security. Each distinct login takes one seat.

    Requests:  1 for every 100 repositories.
    Category:  core. Lane: none.
    Result:    the totals, and repositories of all pages: name, committers and who they are. The totals count distinct
               logins, so they are less than the sum over the repositories.
    Lost answer: a read is repeated.
    Source:    Licensing and billing, GET /enterprises/{enterprise}/settings/billing/advanced-security.
    """

    name = "committers.get"
    access = accesses.COMMITTERS
    Item = CommittersItem
    example: ClassVar = {"enterprise": "acme"}

    def check(self, item: CommittersItem) -> Iterator[ItemFlaw]:
        return enterprises.flaws_of_enterprise(item.enterprise)

    def steps(self, item: CommittersItem) -> Steps:
        listing = yield from pages.read_all(
            f"{enterprises.enterprise_path(item.enterprise)}/settings/billing/advanced-security",
            COMMITTERS,
            field="repositories",
            advanced_security_product=item.advanced_security_product,
        )
        if listing.flaw is not None:
            return listing.flaw
        result: dict[str, Any] = {**listing.first, "repositories": listing.entries}
        told, read = result.get("total_count"), len(listing.entries)
        note = None
        if isinstance(told, int) and told != read:
            note = f"the platform counted {told} repositories and listed {read}: it changed while it was read"
        return unchanged(result, note=note) if listing.is_unchanged else succeeded(result, note=note)
