"""SPDX 2.2 and 2.3 as JSON: packages, and the relationships that are dependencies.

Source: the SPDX specification 2.3, relationships. SPDX 3 is another model, and is refused by name.
"""

import msgspec

from bulk_jobs.shared.sboms.bill import Bill
from bulk_jobs.shared.sboms.decoding import decode

DOCUMENT = "SPDXRef-DOCUMENT"
_FORWARD = frozenset({"DEPENDS_ON"})
_BACKWARD = frozenset(
    {
        "DEPENDENCY_OF",
        "RUNTIME_DEPENDENCY_OF",
        "BUILD_DEPENDENCY_OF",
        "DEV_DEPENDENCY_OF",
        "OPTIONAL_DEPENDENCY_OF",
        "PROVIDED_DEPENDENCY_OF",
        "TEST_DEPENDENCY_OF",
    }
)
_DEVELOPMENT = frozenset({"BUILD_DEPENDENCY_OF", "DEV_DEPENDENCY_OF", "OPTIONAL_DEPENDENCY_OF", "TEST_DEPENDENCY_OF"})


class _Reference(msgspec.Struct, rename="camel"):
    reference_type: str = ""
    reference_locator: str = ""

    @property
    def names_url(self) -> bool:
        """Whether the reference is a package URL; some tools write its type as the URL of the type's definition."""
        return self.reference_type.rpartition("/")[2] == "purl"


class _Package(msgspec.Struct, rename={"spdx_id": "SPDXID", "external_refs": "externalRefs"}):
    spdx_id: str
    name: str = ""
    external_refs: list[_Reference] = []


class _Relationship(msgspec.Struct, rename="camel"):
    spdx_element_id: str
    relationship_type: str
    related_spdx_element: str


class _Creation(msgspec.Struct, frozen=True):
    created: str = ""


class _Document(msgspec.Struct, rename="camel"):
    name: str = ""
    creation_info: _Creation = _Creation()
    document_describes: list[str] = []
    packages: list[_Package] = []
    relationships: list[_Relationship] = []


_DECODER = msgspec.json.Decoder(_Document)


def read_json(data: bytes) -> Bill:
    """Read SPDX 2 JSON.

    Raises:
        BillFlaw: a field that is needed has another type.
    """
    document = decode(_DECODER, data, "SPDX")
    bill = Bill(name=document.name, created=document.creation_info.created, roots=list(document.document_describes))
    _take_relationships(document, bill)
    bill.add(
        (
            package.spdx_id,
            next((ref.reference_locator for ref in package.external_refs if ref.names_url), ""),
            package.spdx_id in bill.development,
        )
        for package in document.packages
    )
    if len(roots := set(bill.roots)) == 1:
        bill.name = next((package.name for package in document.packages if package.spdx_id in roots), "") or bill.name
    return bill


def _take_relationships(document: _Document, bill: Bill) -> None:
    for each in document.relationships:
        kind = each.relationship_type
        if kind == "DESCRIBES" and each.spdx_element_id == DOCUMENT:
            bill.roots.append(each.related_spdx_element)
        elif kind == "DESCRIBED_BY" and each.related_spdx_element == DOCUMENT:
            bill.roots.append(each.spdx_element_id)
        elif kind in _FORWARD:
            bill.link(each.spdx_element_id, (each.related_spdx_element,))
        elif kind in _BACKWARD:
            bill.link(each.related_spdx_element, (each.spdx_element_id,))
            if kind in _DEVELOPMENT:
                bill.development.add(each.spdx_element_id)
