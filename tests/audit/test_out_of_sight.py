"""Nights that can't read what an earlier one could: nothing of it is fixed, and nobody is told that all is well."""

import json
from xml.etree import ElementTree

import pytest

from tests.audit.nights import ABSENT, FILES, POLICY, VAULT, Nights
from tests.audit.test_judging import judged, policy
from tests.e2e.support.platform import Home, served

SEED = {"repositories": [{"organization": "acme-eng", "name": "vault", "private": True, "files": {"README.md": "x"}}]}


@pytest.fixture
def nights(tmp_path):
    """An audit of two files that are not there, one in a private repository; a command is told of each night."""
    with served(tmp_path / "sandbox", seed=SEED) as sandbox:
        found = Nights(Home(tmp_path), sandbox)
        found.home.write("owners.sql", POLICY)
        found.items = [ABSENT, {**VAULT, "path": "CODEOWNERS"}]
        found.write(policies=["owners.sql"], notify=[{"command": ["sh", "-c", "cat >> told.jsonl"]}])
        yield found


def told(nights):
    """The messages so far."""
    return [json.loads(line) for line in (nights.folder / "told.jsonl").read_text().splitlines()]


def test_what_can_not_be_read_is_not_fixed(nights):
    """One file is out of sight and one is there now: one violation is unknown, the other fixed, and no recovery is told
    until the first can be read again and is there, too."""
    assert nights.result()[0] == 7
    nights.put(ABSENT, "* @acme-eng/owners\n")
    token, nights.home.token = nights.home.token, "sbx-read-only"
    code, partly = nights.result("--no-cache")
    found = {each["key"]["repo"]: each["status"] for each in partly["judgement"]["violations"]}
    assert (code, found) == (7, {"hello-world": "fixed", "vault": "unknown"}), partly
    assert (partly["night"]["unknown"], partly["night"]["verdict"]) == (1, ["drift", "unknown"])
    message = told(nights)[-1]
    assert (message["unknown"], message["counts"]["unknown"]) == (["owners owner acme-eng, repo vault"], 1)
    assert nights.result("--no-cache")[0] == 1
    assert told(nights)[-1] == message
    nights.home.token = token
    nights.put(nights.items[1], "* @acme-eng/owners\n")
    code, whole = nights.result("--no-cache")
    assert (whole["night"]["fixed"], whole["night"]["unknown"], whole["night"]["verdict"]) == (1, 0, ["drift"])
    assert nights.result("--no-cache")[0] == 0
    assert told(nights)[-1]["events"] == ["recovery"]


def test_what_could_not_be_read_at_first_has_not_come_into_the_list(nights):
    """An item that was in the list from the first night on, and could not be read then, is in sight later, not new."""
    token, nights.home.token = nights.home.token, "sbx-read-only"
    assert nights.result("--no-cache")[1]["drift"]["never_read"] == 1
    assert nights.result("--no-cache")[1]["drift"]["never_read"] == 1
    nights.home.token = token
    found = nights.result("--no-cache")[1]
    assert (found["drift"]["added"], found["drift"]["in_sight_again"], found["drift"]["never_read"]) == (0, 1, 0)
    assert [(each["kind"], each["before_at"]) for each in found["changes"]] == [("in_sight_again", None)]


def test_what_left_the_list_is_no_cure(nights):
    """An item with a violation leaves the list: the violation counts as fixed, and a note says that nobody has read it
    again. No note is told of one that was read and is there now, nor the night after."""
    assert nights.result()[0] == 7
    nights.put(ABSENT, "* @acme-eng/owners\n")
    nights.items.pop()
    nights.write(policies=["owners.sql"])
    note = "owners: 1 of its 2 fixed violations may be of items that left the list, which nobody has read again."
    said = nights.audit().out
    assert f"Note: {note}" in said.splitlines(), said
    code, after = nights.result()
    assert (code, after["judgement"]["notes"]) == (0, [])


def test_a_night_that_reads_nothing_is_a_failure_and_no_recovery(nights):
    """All is out of sight: violations stay unknown, the target is told of a failure, and of a recovery afterwards."""
    nights.items = nights.items[1:]
    nights.write(policies=["owners.sql"], notify=[{"command": ["sh", "-c", "cat >> told.jsonl"]}])
    assert nights.result()[0] == 7
    token, nights.home.token = nights.home.token, "sbx-read-only"
    ran = nights.audit("--no-cache", "--format", "junit", "--out", "junit.xml")
    assert (ran.exit_code, ran.out.partition("\n")[0].endswith(": nothing could be read")) == (1, True), ran.out
    assert "?    owners (error): 1 unknown" in ran.out
    suite = ElementTree.parse(nights.folder / "junit.xml").getroot()
    assert (suite.attrib["failures"], suite.attrib["skipped"], len(suite.findall("testcase/skipped"))) == ("0", "1", 1)
    (page,) = nights.folder.glob(f"audits/files/pages/{nights.history().nights[-1].run}.html")
    assert "nothing could be read" in page.read_text()
    message = told(nights)[-1]
    assert (message["events"], message["why"]) == (["failure"], "nothing could be read, so that nobody knows how it is")
    nights.home.token = token
    code, seen = nights.result("--no-cache")
    assert (code, [each["status"] for each in seen["judgement"]["violations"]]) == (7, ["known"])


def test_a_policy_holds_of_nothing_that_was_not_read(nights):
    """failures.md row 109: an item that nobody has ever read may violate the policy. Neither the night nor a test of
    its run says that the policy holds."""
    nights.items = [FILES[0], {**VAULT, "path": "README.md"}]
    nights.write(policies=["owners.sql"])
    nights.home.token = "sbx-read-only"
    ran = nights.audit("--format", "junit", "--out", "junit.xml")
    line = "?    owners (error): nothing; 1 item could not be read"
    assert (ran.exit_code, line in ran.out, "nothing is violated, 1 item could not" in ran.out) == (1, True, True), (
        ran.out
    )
    suite = ElementTree.parse(nights.folder / "junit.xml").getroot()
    assert [each.attrib["message"] for each in suite.findall("testcase/skipped")] == ["1 item could not be read"]
    (page,) = nights.folder.glob("audits/files/pages/*.html")
    assert '<td class="">unknown</td>' in page.read_text()
    tested = nights.home.run("audit", "test", "files.yaml", f"audits/files/runs/{nights.history().nights[-1].run}")
    assert line in tested.out, tested.out


@pytest.mark.parametrize(
    ("sql", "lost", "status"),
    [
        ("SELECT org, id, two, '' AS said FROM t", {"org": "ORG-1"}, "unknown"),
        ("SELECT org, id, two, '' AS said FROM t", {"org": "org-2"}, "fixed"),
        ("SELECT a.org, a.id AS id, two, '' AS said FROM t AS a", {"org": "org-2"}, "fixed"),
        ("SELECT t.org AS org, id, two, '' AS said FROM t", {"org": "org-2"}, "fixed"),
        ("SELECT b.a.org, id, two, '' AS said FROM (SELECT *, {org: org} AS a FROM t) b", {"org": "org-2"}, "unknown"),
        ("SELECT upper(org) AS org, id, two, '' AS said FROM t", {"org": "org-2"}, "unknown"),
        ("SELECT upper(org) org, id, two, '' AS said FROM t", {"org": "org-2"}, "unknown"),
        ("SELECT two \"org\", id, two, '' AS said FROM t", {"org": "org-2"}, "unknown"),
        ("SELECT CASE WHEN id > 0 THEN org END\n  org, id, two, '' AS said FROM t", {"org": "org-2"}, "unknown"),
        ("SELECT org: upper(org), id, two, '' AS said FROM t", {"org": "org-2"}, "unknown"),
        ("SELECT u.* FROM (SELECT upper(org), id, two, '' FROM t) AS u(org, id, two, said)", {"org": "o"}, "unknown"),
        ("WITH u(org, id, two, said) AS (SELECT upper(org), id, two, '' FROM t) FROM u", {"org": "o"}, "unknown"),
        ("SELECT DISTINCT org, id, two, 'its org' AS said FROM t -- it's every org", {"org": "org-2"}, "fixed"),
        ("SELECT org, id, two, /* its org: */ '' AS said FROM t WHERE org::text = org AND", {"org": "org-2"}, "fixed"),
        ("SELECT org, id, two, '' AS said FROM t WHERE true AND org LIKE org AND", {"org": "org-2"}, "fixed"),
        ("SELECT 'org-1' AS org, id, two, '' AS said FROM t", {"org": "org-2"}, "unknown"),
        ("SELECT org, id, two, '' AS said FROM t", {"repo": "r"}, "unknown"),
    ],
)
def test_whose_violation_is_gone_decides_what_it_is(sql, lost, status):
    """It is fixed where its key tells it apart from all that can't be read, and else unknown."""
    sql = sql if sql.endswith(" AND") else f"{sql}\nWHERE"
    odd = policy(f"{sql} id = 1")
    before = {each.fingerprint: each for each in judged([odd]).violations}
    gone = policy(f"{sql} id = -1")
    (found,) = judged([gone], before=before, lost=[("t", lost)]).violations
    assert found.status == status
    (found,) = judged([gone], before=before, lost=[("other_table", lost)]).violations
    assert found.status == "fixed"
