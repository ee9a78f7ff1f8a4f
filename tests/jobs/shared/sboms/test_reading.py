"""Bills of materials in every form give the same packages and edges, and what is none is told."""

import gzip
import json

import pytest
import zstandard

from bulk_jobs.shared.sboms import correlators, package_urls
from bulk_jobs.shared.sboms.bill import BillFlaw, graph_of
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
    assert (manifest["name"], direct) == ("app", {URLS[number] for number in GRAPH["direct"] if URLS[number]})


def test_packages_that_are_not_needed_at_run_time_are_development():
    """`optional` and `excluded` in CycloneDX; nothing is development where a needed component has the same URL."""
    for form in ("cyclonedx.json", "cyclonedx.xml"):
        (manifest,) = manifests_of(read_bill(FORMS[form](GRAPH))).values()
        development = {url for url, package in manifest["resolved"].items() if package["scope"] == "development"}
        assert development == {package["url"] for package in GRAPH["packages"] if package["is_dev"] and package["url"]}


def test_compressed_files_are_told_by_their_content():
    """gzip and zstd, whatever the name; what breaks off or grows without end is refused."""
    data = spdx_json(GRAPH, "SPDX-2.2")
    for packed in (gzip.compress(data), zstandard.ZstdCompressor().compress(data), b"\xef\xbb\xbf" + data):
        assert graph_of(read_bill(packed)).edges == EDGES
    with pytest.raises(BillFlaw, match="ends too early"):
        read_bill(gzip.compress(data)[:-20])
    bomb = gzip.compress(b" " * 1024 * 1024 * 300)
    with pytest.raises(BillFlaw, match="more than 256 MiB"):
        read_bill(bomb)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "expected a bill of materials"),
        (b"plain text", "expected a bill of materials"),
        (b"{}", "neither CycloneDX"),
        (b'{"bomFormat": "CycloneDX"', "no JSON that can be read"),
        (b'{"bomFormat": "CycloneDX", "components": 1}', "no CycloneDX that can be read"),
        (b'{"spdxVersion": "SPDX-2.1"}', "is SPDX-2.1; SPDX 2.2 and 2.3"),
        (b'{"@context": "https://spdx.org/rdf/3.0.1/spdx-context.jsonld"}', "is SPDX 3"),
        (b"<project/>", "no CycloneDX: its first element is project"),
        (b"<!DOCTYPE x [<!ENTITY a 'b'>]><bom/>", "document type declaration"),
        ("<!DOCTYPE x [<!ENTITY a 'b'>]><bom/>".encode("utf-16-le"), "document type declaration"),
        (b"<bom xmlns='http://cyclonedx.org/schema/bom/1.5'>", "no XML that can be read"),
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
        ("npm-0123456", "the commit"),
        ("ci_8a1f0c9e-6a52-4b0e-9a7c-2d3b7c1e0f11", "a UUID"),
        ("scan 2026-11-25", "a time"),
        ("scan-20261125", "a time"),
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
    for wrong in ("npm/a", "pkg:npm/", "pkg:/a", "pkg:npm/a\x00"):
        assert package_urls.flaw_of(wrong), wrong
