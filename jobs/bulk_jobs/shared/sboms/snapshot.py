"""The manifests of a snapshot, made from a bill of materials.

Packages go by their package URL. What the root depends on is `direct`, everything else `indirect`; where the bill
names no root, nothing is said of that. Components that need not be there at run time are `development`.
"""

from typing import Any

from bulk_jobs.shared.sboms.bill import Bill, BillFlaw, graph_of

KEY = "sbom"
"""Name and key of a manifest whose bill says no name."""


def manifests_of(bill: Bill) -> dict[str, Any]:
    """Return `manifests` of a snapshot: one manifest that resolves to all packages of the bill.

    Raises:
        BillFlaw: no component has a package URL.
    """
    if not bill.packages:
        raise BillFlaw(f"has no component with a package URL ({bill.without_url:,} without one)")
    graph = graph_of(bill)
    direct = {
        bill.packages[child] for root in bill.roots for child in bill.depends_on.get(root, ()) if child in bill.packages
    }
    needed = {url for reference, url in bill.packages.items() if reference not in bill.development}
    has_root = any(root in bill.depends_on for root in bill.roots)
    resolved: dict[str, Any] = {}
    for url, children in graph.edges.items():
        package: dict[str, Any] = {"package_url": url}
        if has_root:
            package["relationship"] = "direct" if url in direct else "indirect"
        package["scope"] = "runtime" if url in needed else "development"
        package["dependencies"] = children
        resolved[url] = package
    name = bill.name.strip() or KEY
    return {name: {"name": name, "resolved": resolved}}
