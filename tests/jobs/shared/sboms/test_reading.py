"""Bills of materials in every form give the same packages and edges, and what is none is told."""

import gzip
import json
import time
import tracemalloc

import pytest
import zstandard

from bulk_jobs.shared.sboms import correlators, package_urls
from bulk_jobs.shared.sboms.bill import BillFlaw, graph_of
from bulk_jobs.shared.sboms.cyclonedx_xml import STEP_BYTES
from bulk_jobs.shared.sboms.reading import read_bill
from bulk_jobs.shared.sboms.snapshot import manifests_of
from tests.jobs.shared.sboms.bills import FORMS, TIME, graph, spdx_json

GRAPH = graph(40, seed=7)
URLS = [package["url"] for package in GRAPH["packages"]]
EDGES = {
    package["url"]: sorted(URLS[child] for child in package["children"] if URLS[child])
    for package in GRAPH["packages"]
    if package["url"]
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_packages_and_edges(form):
    """As they were put in; components without package URL are counted, and what the root depends on is direct."""
    bill = read_bill(FORMS[form](GRAPH))
    assert graph_of(bill).edges == EDGES
    assert (bill.created, bill.without_url) == (TIME, URLS.count(""))
    (manifest,) = manifests_of(bill).values()
    direct = {url for url, package in manifest["resolved"].items() if package["relationship"] == "direct"}
    assert (manifest["name"], direct) == ("app", nearest(GRAPH["direct"]))


def nearest(numbers):
    """The package URLs of these, and of those behind what has none."""
    found, left, seen = set(), list(numbers), set()
    while left:
        number = left.pop()
        if URLS[number]:
            found.add(URLS[number])
        elif number not in seen:
            seen.add(number)
            left += GRAPH["packages"][number]["children"]
    return found


def test_packages_that_are_not_needed_at_run_time_are_development():
    """`optional` and `excluded` in CycloneDX; nothing is development where a needed component has the same URL."""
    for form in ("cyclonedx.json", "cyclonedx.xml"):
        (manifest,) = manifests_of(read_bill(FORMS[form](GRAPH))).values()
        development = {url for url, package in manifest["resolved"].items() if package["scope"] == "development"}
        assert development == {package["url"] for package in GRAPH["packages"] if package["is_dev"] and package["url"]}


def test_compressed_files_are_told_by_their_content():
    """gzip and zstd, whatever the name; what breaks off or grows without end is refused."""
    data = spdx_json(GRAPH, "SPDX-2.2")
    zstd = zstandard.ZstdCompressor().compress
    parts = gzip.compress(data[:500]) + gzip.compress(data[500:]), zstd(data[:500]) + zstd(data[500:])
    for packed in (gzip.compress(data), zstd(data), b"\xef\xbb\xbf" + data, *parts):
        assert graph_of(read_bill(packed)).edges == EDGES
    with pytest.raises(BillFlaw, match="ends too early"):
        read_bill(gzip.compress(data)[:-20])
    for end in (1, 20, len(zstd(data)) - 5):
        with pytest.raises(BillFlaw, match="is zstd that ends too early"):
            read_bill(zstd(data)[:-end])
    bomb = b" " * 1024 * 1024 * 300
    for packed in (gzip.compress(bomb, 1), zstd(bomb)):
        with pytest.raises(BillFlaw, match="more than 256 MiB"):
            read_bill(packed)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "expected a bill of materials"),
        (b"plain text", "expected a bill of materials"),
        (b"{}", "neither CycloneDX"),
        (b'{"bomFormat": "CycloneDX"', "is not JSON that can be read"),
        (b'{"bomFormat": "CycloneDX", "components": 1}', "is not CycloneDX that can be read"),
        (b'{"spdxVersion": "SPDX-2.1"}', "is SPDX-2.1; SPDX 2.2 and 2.3"),
        (b'{"@context": "https://spdx.org/rdf/3.0.1/spdx-context.jsonld"}', "is SPDX 3"),
        (b"<project/>", "no CycloneDX: its first element is project"),
        (b"<!DOCTYPE x [<!ENTITY a 'b'>]><bom/>", "document type declaration"),
        (b"<!--" + b"x" * 1_000_000 + b"--><!DOCTYPE bom SYSTEM '/etc/passwd'><bom/>", "document type declaration"),
        (b"<!-- nothing but this -->", "is not XML that can be read: no element found"),
        (
            b"<bom xmlns='http://cyclonedx.org/schema/bom/1.5'>&laughs;</bom>",
            "is not XML that can be read: undefined entity",
        ),
        ("<!DOCTYPE x [<!ENTITY a 'b'>]><bom/>".encode("utf-16-le"), "document type declaration"),
        (b"<bom xmlns='http://cyclonedx.org/schema/bom/1.5'>", "is not XML that can be read"),
        (b"<bom/>", "its first element is bom, and none its namespace"),
        (b"<?xml version='1.0' encoding='nonsense-9'?><bom/>", "is not XML that can be read: unknown encoding"),
        (b"<?xml version='1.0' encoding='shift_jis'?><bom/>", "is not XML that can be read"),
        (b"\xff\xfe{\x00\x00\xd8", "is not UTF-16 that can be read"),
        (b'{"@context": "https:\\/\\/spdx.org\\/rdf\\/3.0.1\\/x"}', "is SPDX 3"),
        (b'{"sbom":' * 900 + b"{}" + b"}" * 900, "neither CycloneDX"),
        (b'{"sbom":' * 100_000, "is not JSON that can be read"),
        (b'{"sbom": {"spdxVersion": "SPDX-2.1"}}', "is SPDX-2.1"),
        (gzip.compress(b"{}", mtime=0) + b"more", "can't be decompressed"),
    ],
)
def test_what_is_no_bill_is_told(data, says):
    """The message says what it is instead, and what can be read."""
    with pytest.raises(BillFlaw, match=says):
        read_bill(data)


def test_a_bill_without_package_urls_is_refused():
    """Nothing could be sent; how many components have none is told."""
    bill = read_bill(json.dumps({"bomFormat": "CycloneDX", "components": [{"name": "a"}, {"name": "b"}]}).encode())
    with pytest.raises(BillFlaw, match=r"2 without one"):
        manifests_of(bill)


@pytest.mark.parametrize(
    ("correlator", "found"),
    [
        ("build-5622", "the job's id"),
        ("run5622/1", "the job's id"),
        ("port-15622", ""),
        ("npm-0123456", "the commit"),
        ("ci_8a1f0c9e-6a52-4b0e-9a7c-2d3b7c1e0f11", "a UUID"),
        ("scan 2026-11-25", "a time"),
        ("scan-20261125", "a time"),
        ("scan_2026_11_25", "a time"),
        ("scan 2026/11/25", "a time"),
        ("scan-20261125T0800Z", "a time"),
        ("scan 2026.1.1", ""),
        ("ports 2026-1125", ""),
        ("scan-1795000000", "a time"),
        ("nightly-npm", ""),
        ("build (ubuntu-22.04, 3.11)", ""),
    ],
)
def test_a_correlator_is_the_same_in_the_next_run(correlator, found):
    """What is another one each time leaves the old snapshots in place for ever."""
    flaw = correlators.flaw_of(correlator, "5622", "0123456789abcdef0123456789abcdef01234567")
    assert flaw.startswith(f"holds {found}" if found else "")
    assert bool(flaw) == bool(found)


@pytest.mark.parametrize(
    "url", ["pkg:npm/a", "pkg:npm/%40a/b@1", "pkg:golang/example.com/a/b@v1", "pkg:deb/debian/a@1?x=y"]
)
def test_plain_package_urls_are_checked_as_the_reference_library_does(url):
    """They are URLs; what is none is told, and of no type that is plain."""
    assert package_urls.flaw_of(url) == ""
    for wrong in ("npm/a", "pkg:npm/", "pkg:/a", "pkg:npm/a\x00", "pkg:npm/a?b"):
        assert repr(wrong) in package_urls.flaw_of(wrong), wrong


def test_what_is_said_of_a_package_url_is_short():
    """However long it is, a terminal is not filled with it."""
    for wrong in ("x" * 10_000, "pkg:npm/a?" + "b" * 10_000, "pkg:npm/" + "\x00" * 10_000):
        flaw = package_urls.flaw_of(wrong)
        assert wrong[:10].encode("unicode_escape").decode() in flaw
        assert len(flaw) < 350, flaw


def resolved(data):
    """What is sent of a bill: each package's version, relationship and children."""
    (manifest,) = manifests_of(read_bill(data if isinstance(data, bytes) else json.dumps(data).encode())).values()
    return {
        url.removeprefix("pkg:npm/"): (package.get("relationship"), [child[8:] for child in package["dependencies"]])
        for url, package in manifest["resolved"].items()
    }


def library(name, reference=None, **more):
    """A component of CycloneDX."""
    return {"type": "library", "bom-ref": reference or name, "name": name, "purl": f"pkg:npm/{name}", **more}


def cyclonedx(components, *dependencies, root="root"):
    """A bill about `root`; dependencies are pairs."""
    return {
        "bomFormat": "CycloneDX",
        "metadata": {"component": {"bom-ref": root, "name": "app"}} if root else {},
        "components": components,
        "dependencies": [{"ref": reference, "dependsOn": children} for reference, children in dependencies],
    }


def spdx(packages, *relationships):
    """An SPDX document; relationships are triples of names."""
    where = {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl"}
    return {
        "spdxVersion": "SPDX-2.3",
        "name": "document",
        "packages": [
            {
                "SPDXID": f"SPDXRef-{name}",
                "name": name,
                "externalRefs": [{**where, "referenceLocator": f"pkg:npm/{name}"}],
            }
            for name in packages
        ],
        "relationships": [
            {"spdxElementId": f"SPDXRef-{one}", "relationshipType": kind, "relatedSpdxElement": f"SPDXRef-{other}"}
            for one, kind, other in relationships
        ],
    }


FILE = {"type": "application", "bom-ref": "lock", "name": "package-lock.json"}
LISTED = spdx(["app", "a"], ("DOCUMENT", "DESCRIBES", "app"), ("app", "DEPENDS_ON", "a"))
BILLS = {
    "no root": (cyclonedx([library("a"), library("b")], ("a", ["b"]), root=""), {"a": (None, ["b"]), "b": (None, [])}),
    "a root of which nothing is said": (cyclonedx([library("a")], ("root", [])), {"a": (None, [])}),
    "the root as a component as well": (
        cyclonedx([library("app", "root"), library("a")], ("root", ["a"])),
        {"a": ("direct", [])},
    ),
    "a lock file between root and packages": (
        cyclonedx([FILE, library("a"), library("b")], ("root", ["lock"]), ("lock", ["a", "lock"]), ("a", ["b"])),
        {"a": ("direct", ["b"]), "b": ("indirect", [])},
    ),
    "a circle": (
        cyclonedx([library("a"), library("b")], ("root", ["a"]), ("a", ["b"]), ("b", ["a", "b"])),
        {"a": ("direct", ["b"]), "b": ("indirect", ["a"])},
    ),
    "one reference of two components": (
        cyclonedx([library("a"), library("b", "a")], ("root", ["a"])),
        {"a": ("direct", []), "b": ("indirect", [])},
    ),
    "one package as two components": (
        cyclonedx([library("a", "1"), library("a", "2"), library("b")], ("root", ["1"]), ("2", ["b"])),
        {"a": ("direct", ["b"]), "b": ("indirect", [])},
    ),
    "nested": (
        cyclonedx([library("a", components=[library("b", components=[library("c")])])]),
        {"a": (None, []), "b": (None, []), "c": (None, [])},
    ),
    "the platform's own export": ({"sbom": LISTED}, {"a": ("direct", [])}),
    "several roots": (
        spdx(["a", "b"], ("DOCUMENT", "DESCRIBES", "a"), ("DOCUMENT", "DESCRIBES", "b")),
        {"a": ("direct", []), "b": ("direct", [])},
    ),
    "a type as an address": (
        json.dumps(LISTED).replace('"purl"', '"http://spdx.org/rdf/references/purl"').encode(),
        {"a": ("direct", [])},
    ),
    "UTF-16 of a shell": (json.dumps(LISTED).encode("utf-16"), {"a": ("direct", [])}),
}


@pytest.mark.parametrize("case", BILLS)
def test_bills_of_other_tools(case):
    """What tools write beside the plain form is read as it is meant."""
    data, wanted = BILLS[case]
    assert resolved(data) == wanted


XML = (
    '<c:bom xmlns:c="http://cyclonedx.org/schema/bom/1.6" xmlns:v="https://vendor.example.com/"><c:components>'
    '<c:component bom-ref="a"><v:purl>pkg:npm/x</v:purl><c:name>a</c:name><c:purl><![CDATA[pkg:npm/a]]></c:purl>'
    "<c:pedigree><c:ancestors><c:component><c:purl>pkg:npm/y</c:purl></c:component></c:ancestors></c:pedigree>"
    "</c:component><v:component><c:purl>pkg:npm/z</c:purl></v:component></c:components></c:bom>"
)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_elements_of_others_are_passed_over(encoding):
    """Prefixes are any; an element of another namespace is none of ours, and an ancestor is not a component."""
    assert resolved(XML.encode(encoding)) == {"a": (None, [])}


COMPONENT = '<component bom-ref="a"><purl>pkg:npm/a</purl></component>'
ELSEWHERE = {
    "tools": f"<metadata><tools><components>{COMPONENT}</components></tools></metadata>",
    "an annotator": f"<annotations><annotation><annotator>{COMPONENT}</annotator></annotation></annotations>",
    "how it was made": f"<formulation><formula><components>{COMPONENT}</components></formula></formulation>",
}


@pytest.mark.parametrize("where", ELSEWHERE)
def test_components_elsewhere_are_no_packages_of_it(where):
    """Those of its tools, of who wrote notes, and of how it was made: as in JSON."""
    bom = f'<bom xmlns="http://cyclonedx.org/schema/bom/1.6">{ELSEWHERE[where]}<components>{{}}</components></bom>'
    assert read_bill(bom.format("").encode()).packages == {}
    assert read_bill(bom.format(COMPONENT).encode()).packages == {"a": "pkg:npm/a"}


def test_a_bill_that_is_read_in_many_steps_is_the_same():
    """XML of more than a step gives what JSON gives, and what is read of it is dropped meanwhile."""
    made = graph(8_000, seed=3)
    as_json, text = manifests_of(read_bill(FORMS["cyclonedx.json"](made))), FORMS["cyclonedx.xml"](made)
    tracemalloc.start()
    try:
        bill = read_bill(text)
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert manifests_of(bill) == as_json
    assert len(text) > 6 * STEP_BYTES
    assert peak - kept < len(text), (kept, peak)


def test_elements_that_lie_deep_in_each_other_are_passed_over():
    """Neither reading them nor dropping them needs the stack."""
    depth = 300_000
    head = b'<bom xmlns="http://cyclonedx.org/schema/bom/1.5">'
    assert read_bill(head + b"<a>" * depth + b"</a>" * depth + b"</bom>").packages == {}


def test_a_name_that_can_not_be_sent_is_told():
    """The manifest is called by it."""
    bill = cyclonedx([library("a")])
    bill["metadata"]["component"]["name"] = "a\x00b"
    with pytest.raises(BillFlaw, match="the name of what it is about: holds a control character"):
        resolved(bill)


def seconds_of(depth):
    """What it takes to read components that lie in each other so deep (CPU time)."""
    part = b"<component><name>a</name><components>", b"</components></component>"
    head = b'<bom xmlns="http://cyclonedx.org/schema/bom/1.5"><components>', b"</components></bom>"
    began = time.thread_time()
    bill = read_bill(head[0] + part[0] * depth + part[1] * depth + head[1])
    assert bill.without_url == depth
    return time.thread_time() - began


def test_the_time_that_xml_takes_grows_with_its_size_alone():
    """Components that lie deep in each other are read as fast as others, in XML as in a plain list."""
    small, large = (min(seconds_of(depth) for _ in range(3)) for depth in (1_000, 16_000))
    assert large < 40 * small
