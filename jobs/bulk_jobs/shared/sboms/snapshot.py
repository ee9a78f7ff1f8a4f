"""The manifests of a snapshot, made from a bill of materials.

Packages go by their package URL. Dependencies of the root are `direct`, also those by way of a component without a
package URL, such as a lock file; all others are `indirect`. If the bill names no root that depends on packages, no
relationship is given. Components that are not needed at run time are `development`.
"""

from typing import Any

from bulk_jobs.shared import names
from bulk_jobs.shared.sboms.bill import Bill, BillFlaw, graph_of

KEY = "sbom"
"""Name and key of a manifest whose bill has no name."""


def manifests_of(bill: Bill) -> dict[str, Any]:
    """Return `manifests` of a snapshot: one manifest that resolves to all packages of the bill.

    Raises:
        BillFlaw: no component has a package URL, or the name of the bill can't be sent.
    """
    if not bill.packages:
        raise BillFlaw(f"has no component with a package URL ({bill.without_url:,} without one)")
    direct = _direct(bill)
    needed = {url for reference, url in bill.packages.items() if reference not in bill.development}
    resolved: dict[str, Any] = {
        url: {
            "package_url": url,
            "relationship": "direct" if url in direct else "indirect",
            "scope": "runtime" if url in needed else "development",
            "dependencies": children,
        }
        for url, children in graph_of(bill).edges.items()
    }
    if not direct:  # the bill does not tell which packages are direct
        for package in resolved.values():
            del package["relationship"]
    name = bill.name.strip() or KEY
    flaw = names.flaw_of_text(name)
    if flaw:
        raise BillFlaw(f"the name of what it is about: {flaw}")
    return {name: {"name": name, "resolved": resolved}}


def _direct(bill: Bill) -> set[str]:
    """Return the package URLs of the roots' direct dependencies, and of roots that are packages themselves."""
    left, seen = list(bill.roots), set(bill.roots)
    found = {bill.packages[root] for root in bill.roots if root in bill.packages}
    while left:
        for child in bill.depends_on.get(left.pop(), ()):
            if child in bill.packages:
                found.add(bill.packages[child])
            elif child not in seen:
                seen.add(child)
                left.append(child)
    return found
