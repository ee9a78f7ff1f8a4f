"""`snapshot.create`: what is sent, what is checked before, what the platform's verdict means."""

from typing import Any

import msgspec
import orjson
import pytest

from bulk.capabilities import FileError, skipping_unchanged
from bulk.model import UNSEEN, Effect, ErrorCode, OutcomeKind
from bulk_jobs.snapshots import CreateSnapshot
from tests.jobs.driver import drive, flaws, item_of, reply, run, settle
from tests.jobs.shared.sboms.bills import TIME, cyclonedx_json, graph

CREATE = CreateSnapshot()
RESOLVED = {
    "left-pad": {
        "package_url": "pkg:npm/left-pad@1.3.0",
        "metadata": {"depth": 1},
        "relationship": "direct",
        "scope": "runtime",
        "dependencies": ["pkg:npm/%40acme/pad@2.0.0"],
    }
}
MANIFESTS = {
    "package-lock.json": {
        "name": "package-lock.json",
        "file": {"source_location": "web/package-lock.json"},
        "metadata": {"tool": "npm"},
        "resolved": RESOLVED,
    }
}
SNAPSHOT = {
    "version": 0,
    "job": {"id": "5622", "correlator": "Build Web", "html_url": "https://ci.example.com/5622"},
    "sha": "0" * 40,
    "ref": "refs/heads/main",
    "detector": {"name": "Acme", "version": "1.2.0", "url": "https://example.com"},
    "metadata": {"text": "x", "number": 1, "share": 0.5, "flag": True, "nothing": None},
    "manifests": MANIFESTS,
    "scanned": "2026-11-21T08:00:00Z",
}
ITEM = {"owner": "Acme", "repo": "web", **SNAPSHOT}
TAKEN = {"id": 7, "created_at": "2026-11-21T08:00:01Z", "message": "Updated", "result": "SUCCESS"}


def test_the_body_is_the_snapshot_as_it_was_given():
    """Nothing is added, and owner, repo and id stay out of it."""
    driven = run(CREATE, {**ITEM, "id": "mine"}, reply(201, TAKEN))
    (request,) = driven.requests
    assert driven.shown() == ["POST /repos/Acme/web/dependency-graph/snapshots"]
    assert request.body == SNAPSHOT
    assert request.effect is Effect.ORDERED
    assert CREATE.category == "dependency_snapshots"
    assert driven.outcome.result == TAKEN


def test_a_snapshot_without_manifests_can_be_sent():
    """The specification does not require them."""
    fields = {name: value for name, value in ITEM.items() if name not in ("manifests", "metadata")}
    assert not flaws(CREATE, fields)
    assert "manifests" not in run(CREATE, fields, reply(201, TAKEN)).requests[0].body


@pytest.mark.parametrize("result", ["SUCCESS", "success", "ACCEPTED", "Accepted", " success "])
def test_good_verdicts(result):
    """Success and accepted, in any case, succeed."""
    outcome = run(CREATE, ITEM, reply(201, {**TAKEN, "result": result})).outcome
    assert outcome.kind is OutcomeKind.SUCCEEDED


@pytest.mark.parametrize("result", ["INVALID", "FAILED", "failure", ""])
def test_a_snapshot_that_is_taken_and_reported_as_failed_is_rejected(result):
    """The code is `rejected`, the message the platform's own, and the result is there."""
    answer = {**TAKEN, "result": result, "message": "The commit does not exist."}
    driven = run(CREATE, ITEM, reply(201, answer))
    assert driven.error.code is ErrorCode.REJECTED
    assert "The commit does not exist." in driven.error.message
    assert driven.outcome.result == answer
    assert driven.outcome.http_status == 201


def test_a_lost_answer_is_settled_by_sending_again():
    """Nothing reads a snapshot: settling asks nothing and can't tell, so that the newest is repeated, and a
    refusal of it proves nothing."""
    driven = settle(CREATE, ITEM, UNSEEN, method="POST")
    assert driven.requests == []
    assert driven.is_undecided
    assert CREATE.settled_by


def test_the_lane_is_what_the_latest_wins_of():
    """Repository, correlator and detector; two of a lane share its name, others do not."""
    lane = CREATE.lanes(item_of(CREATE, **ITEM))
    other_sha = CREATE.lanes(item_of(CREATE, **{**ITEM, "sha": "1"}))
    other_job = CREATE.lanes(item_of(CREATE, **{**ITEM, "job": {"id": "1", "correlator": "docs"}}))
    assert lane == other_sha == ("Acme/web Build Web Acme",)
    assert other_job != lane


def test_a_manifest_file_is_put_inline():
    """A JSON file with the map of manifests is sent as if it had been inline."""
    fields = {name: value for name, value in ITEM.items() if name != "manifests"}
    item = item_of(CREATE, **fields, manifest_file="npm.json")
    loaded = CREATE.with_file(item, "manifest_file", msgspec.json.encode(MANIFESTS))
    assert not list(CREATE.check(loaded))
    body = drive(CREATE.steps(loaded), reply(201, TAKEN)).requests[0].body
    assert orjson.loads(orjson.dumps(body)) == SNAPSHOT


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "JSON"),
        (b"\xff", "JSON"),
        (b"[]", "JSON"),
        (b'{"a":' * 100_000, "JSON"),
        (b'{"a": {}}', "name"),
        (b'{"a": {"name": "a", "more": 1}}', "more"),
        (b'{"a": {"name": "a", "resolved": {"b": {"package_url": "b"}}}}', "manifests.a.resolved.b.package_url"),
        (
            msgspec.json.encode({"a": {"name": "a", "resolved": {str(n): {"package_url": "x"} for n in range(9)}}}),
            "and 4 more",
        ),
        (msgspec.json.encode({"a": {"name": "a", "metadata": {str(n): n for n in range(9)}}}), "metadata"),
    ],
)
def test_a_manifest_file_is_checked(data, word):
    """What can't be sent is an error of the file, and the message names the place in it."""
    item = item_of(CREATE, **{**ITEM, "manifests": None, "manifest_file": "x"})
    with pytest.raises(FileError) as caught:
        CREATE.with_file(item, "manifest_file", data)
    assert word in str(caught.value)


def test_no_other_field_takes_a_file():
    """A file for another field is an error."""
    with pytest.raises(FileError):
        CREATE.with_file(item_of(CREATE, **ITEM), "scanned", b"{}")


def _manifest(**fields):
    return {"manifests": {"package-lock.json": {"name": "x", **fields}}}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"owner": "a/b"}, "owner"),
        ({"repo": "x.git"}, "repo"),
        ({"scanned": "today"}, "scanned"),
        ({"sha": "a\nb"}, "sha"),
        ({"ref": "a\x00"}, "ref"),
        ({"job": {"id": "a\r\nb", "correlator": "x"}}, "job.id"),
        ({"job": {"id": "x", "correlator": "a\nb"}}, "job.correlator"),
        ({"detector": {"name": "a\x1b", "version": "1", "url": "u"}}, "detector.name"),
        ({"metadata": {"k\x00": 1}}, "metadata.k\x00"),
        ({"manifest_file": "x"}, "manifests"),
        (_manifest(file={"source_location": "../x"}), "manifests.package-lock.json.file.source_location"),
        (_manifest(metadata={"a": "\x00"}), "manifests.package-lock.json.metadata.a"),
        (
            _manifest(resolved={"left-pad": {"package_url": "left-pad"}}),
            "manifests.package-lock.json.resolved.left-pad.package_url",
        ),
        (
            _manifest(resolved={"x": {"package_url": "pkg:npm/a\nb"}}),
            "manifests.package-lock.json.resolved.x.package_url",
        ),
        (
            _manifest(resolved={"x": {"dependencies": ["pkg:npm/a@1", "pkg:npm"]}}),
            "manifests.package-lock.json.resolved.x.dependencies.1",
        ),
        (
            _manifest(resolved={"x": {"metadata": {"b": "\x07"}}}),
            "manifests.package-lock.json.resolved.x.metadata.b",
        ),
    ],
)
def test_checks(change, field):
    """Each value that the platform would refuse is a flaw of exactly its dotted field."""
    assert set(flaws(CREATE, {**ITEM, **change})) == {field}


NINE = {str(number): number for number in range(9)}


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"sha": "0" * 41}, "$.sha"),
        ({"sha": ""}, "$.sha"),
        ({"version": "0"}, "$.version"),
        ({"version": 0.5}, "$.version"),
        ({"job": {"id": "1"}}, "correlator"),
        ({"detector": {"name": "a", "version": "1"}}, "url"),
        ({"metadata": NINE}, "$.metadata"),
        ({"metadata": {"a": {}}}, "$.metadata"),
        ({"metadata": {"a": []}}, "$.metadata"),
        (_manifest(metadata=NINE), "metadata"),
        (_manifest(resolved={"x": {"metadata": NINE}}), "metadata"),
        (_manifest(resolved={"x": {"relationship": "friend"}}), "relationship"),
        (_manifest(resolved={"x": {"scope": "test"}}), "scope"),
        (_manifest(resolved={"x": {"purl": "x"}}), "purl"),
    ],
)
def test_types_and_limits(change, place):
    """Lengths, counts, types, values and unknown fields are refused while an item is decoded, with their place."""
    with pytest.raises(msgspec.ValidationError) as caught:
        item_of(CREATE, **{**ITEM, **change})
    assert place in str(caught.value)


def test_eight_keys_and_forty_characters_are_allowed():
    """The limits themselves are within."""
    eight = {str(number): number for number in range(8)}
    item = {
        **ITEM,
        "sha": "f" * 40,
        "metadata": eight,
        **_manifest(metadata=eight, resolved={"x": {"metadata": eight}}),
    }
    assert not flaws(CREATE, item)


def test_a_number_that_json_has_no_word_for_is_refused():
    """YAML knows `.nan` and `.inf`; the platform does not."""
    bad = msgspec.structs.replace(item_of(CREATE, **ITEM), metadata={"a": float("nan"), "b": float("inf"), "c": 1.5})
    assert [flaw.field for flaw in CREATE.check(bad)] == ["metadata.a", "metadata.b"]


def test_manifests_are_left_out_of_results():
    """Results leave out the manifests of a snapshot, which are large."""
    assert "manifests" in CREATE.unreported


def test_a_bill_of_materials_becomes_manifests():
    """Its packages are sent as one manifest, and its own time is when it was scanned; a flaw names the file's."""
    fields = {name: value for name, value in ITEM.items() if name not in ("manifests", "scanned")}
    item = item_of(CREATE, **fields, sbom_file="a.cdx.json")
    assert not list(CREATE.check(item))
    loaded = CREATE.with_file(item, "sbom_file", cyclonedx_json(graph(3, seed=1)))
    body = drive(CREATE.steps(loaded), reply(201, TAKEN)).requests[0].body
    sent = orjson.loads(orjson.dumps(body))
    assert (sent["scanned"], list(sent["manifests"]), "sbom_file" in sent) == (TIME, ["app"], False)
    assert len(sent["manifests"]["app"]["resolved"]) == 3
    with pytest.raises(FileError, match="neither CycloneDX"):
        CREATE.with_file(item, "sbom_file", b"{}")
    assert flaws(CREATE, fields)["scanned"].startswith("is missing")


def test_what_counts_of_a_snapshot():
    """The digest leaves out the id and the page of the job and the time, and with `content` the commit; never: there is
    none. The version of the form counts."""
    item = item_of(CREATE, **ITEM)
    ways: list[Any] = [skipping_unchanged(CREATE, how, 60.0) for how in ("exact", "content", "never")]
    exact, content, never = ways
    later = msgspec.structs.replace(item, scanned="2026-12-01T08:00:00Z", job=msgspec.structs.replace(item.job, id="9"))
    moved = msgspec.structs.replace(item, sha="f" * 40)
    assert exact.sent_digest(item) == exact.sent_digest(later) != exact.sent_digest(moved)
    assert content.sent_digest(item) == content.sent_digest(moved)
    assert content.sent_digest(item) != content.sent_digest(msgspec.structs.replace(item, version=item.version + 1))
    assert content.sent_digest(item) != content.sent_digest(msgspec.structs.replace(item, ref="refs/heads/x"))
    assert never.sent_digest(item) == CREATE.sent_digest(item) == b""


def test_two_sources_of_one_commit_overwrite_each_other():
    """Two jobs of a matrix with one correlator are a conflict; a later commit takes the place of an earlier one."""
    fields = {name: value for name, value in ITEM.items() if name != "manifests"}
    one, other = (item_of(CREATE, **fields, sbom_file=name) for name in ("linux.json", "windows.json"))
    conflict = CREATE.conflict(one, other)
    assert conflict is not None
    assert "give each its own job.correlator" in conflict.message
    assert CREATE.conflict(one, one) is None
    assert CREATE.conflict(one, msgspec.structs.replace(other, sha="f" * 40)) is None
