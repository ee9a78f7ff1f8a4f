"""CycloneDX as JSON: components, which may be nested, and their dependencies.

Source: the CycloneDX specification, 1.2 to 1.7. Only the fields that a snapshot needs are decoded.
"""

from collections.abc import Iterable, Iterator

import msgspec

from bulk_jobs.shared.sboms.bill import Bill
from bulk_jobs.shared.sboms.decoding import decode

NOT_AT_RUN_TIME = ("optional", "excluded")
"""Scopes of components that are not needed at run time."""


class _Component(msgspec.Struct, rename={"bom_ref": "bom-ref"}):
    name: str = ""
    bom_ref: str = ""
    purl: str = ""
    scope: str = ""
    components: list["_Component"] = []


class _Dependency(msgspec.Struct, rename="camel"):
    ref: str
    depends_on: list[str] = []


class _Metadata(msgspec.Struct, frozen=True):
    timestamp: str = ""
    component: _Component | None = None


class _Bom(msgspec.Struct):
    metadata: _Metadata = _Metadata()
    components: list[_Component] = []
    dependencies: list[_Dependency] = []


_DECODER = msgspec.json.Decoder(_Bom)


def read_json(data: bytes) -> Bill:
    """Read CycloneDX JSON.

    Raises:
        BillFlaw: a field that is needed has another type.
    """
    bom = decode(_DECODER, data, "CycloneDX")
    bill = Bill(created=bom.metadata.timestamp)
    root = bom.metadata.component
    if root is not None:
        bill.name = root.name
        bill.roots = [root.bom_ref or root.purl]
        bill.add(_all(root.components))
    bill.add(_all(bom.components))
    for dependency in bom.dependencies:
        bill.link(dependency.ref, dependency.depends_on)
    return bill


def _all(components: Iterable[_Component]) -> Iterator[tuple[str, str, bool]]:
    for component in components:
        yield component.bom_ref, component.purl, component.scope in NOT_AT_RUN_TIME
        if component.components:
            yield from _all(component.components)
