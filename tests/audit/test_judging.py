"""Policies over many rows: what is said of each, and which waiver it has."""

import datetime
import os
from pathlib import Path

import pytest

from bulk.audit.policies import judging
from bulk.audit.policies.judging import FIXED, KNOWN, NEW, WAIVED, judge
from bulk.audit.policies.policy import policy_of, read_policies
from bulk.audit.policies.waivers import Waiver, read_waivers
from bulk.audit.tables.child import Task
from bulk.errors import ManifestError
from bulk.flaws import Flaws
from tests.e2e.support.platform import Home

ROWS = 2_500
"""More than are fetched at once, twice (count)."""
AT = "2026-11-25T02:00:00.000Z"
MADE = f"CREATE TABLE t AS SELECT range AS id, 'org-' || range % 5 AS org, [range, 1] AS two FROM range({ROWS})"
MANIFEST = Path("m.yaml")
LATER, OVER = datetime.date(2026, 12, 31), datetime.date(2026, 11, 24)


def policy(sql, head="-- policy: odd\n-- key: org, id, two\n-- message: {org} has {id}: {said}\n"):
    """A policy with this query."""
    flaws = Flaws()
    found = policy_of(head + sql, "odd", "odd.sql", flaws)
    flaws.raise_if_any()
    assert found is not None
    return found


def judged(policies, waivers=(), before=None, lost=()):
    """What they find in the table `t`."""
    return judge(policies, waivers, Task(statements=(MADE,)), before or {}, lost, items=ROWS, at=AT)


def waiver(expires=LATER, **key):
    """A waiver of the policy for this key."""
    return Waiver(policy="odd", key=key, reason="Soon.", by="ops", expires=expires)


def test_of_many_messages_each_loses_its_own_secret():
    """A message with a secret loses it, wherever in a batch it stands; the messages beside it stay as they are."""
    secret = "ghp_" + "a1b2c3d4e5" * 4
    sql = f"SELECT org, id, two, CASE WHEN id IN (7, 1_800) THEN 'token {secret}' ELSE 'nothing' END AS said FROM t"
    found = {each.key["id"]: each.message for each in judged([policy(sql)]).violations}
    assert len(found) == ROWS
    assert [found[number] for number in (7, 1_800)] == ["org-2 has 7: token ***", "org-0 has 1800: token ***"]
    assert {text.partition(": ")[2] for number, text in found.items() if number not in (7, 1_800)} == {"nothing"}


def test_keys_lose_their_secrets_and_stay_apart():
    """A key is shown without the secret that a policy has put together; violations are told apart by what they had."""
    secrets = ["ghp_" + letter * 36 for letter in "ab"]
    sql = f"SELECT org, two, unnest({secrets}) AS id, '' AS said FROM t WHERE id = 7"
    first = judged([policy(sql)]).violations
    assert [each.key["id"] for each in first] == ["***", "***"]
    assert not any(secret in repr(first) for secret in secrets)
    again = judged([policy(sql)], before={each.fingerprint: each for each in first}).violations
    assert [each.status for each in again] == [KNOWN, KNOWN]


def test_rows_beyond_the_most_are_told(monkeypatch):
    """A policy that returns more rows than are taken says so; one that returns as many does not."""
    monkeypatch.setattr(judging, "MOST_ROWS", ROWS - 1)
    (note,) = judged([policy("SELECT *, '' AS said FROM t")]).notes
    assert note == "odd returns more than 2,499 rows: no more were looked at, and others may be next time."
    assert judged([policy("SELECT *, '' AS said FROM t WHERE id > 0")]).notes == ()


@pytest.mark.parametrize(
    ("given", "waived"),
    [
        ([waiver(org="org-1")], ROWS // 5),
        ([waiver(id=number) for number in range(0, ROWS, 2)], ROWS // 2),
        ([waiver(id=5.0), waiver(id="6"), waiver(two=[7, 1]), waiver(id=8, org="org-4")], 2),
        ([waiver(OVER, org="org-1"), waiver(org="org-1", id=1)], 1),
    ],
)
def test_a_waiver_is_for_what_has_its_values(given, waived):
    """Some columns or all, numbers, texts and lists: as many are waived as have just these values."""
    judgement = judged([policy("SELECT *, '' AS said FROM t")], given)
    (result,) = judgement.policies
    assert (result.waived, result.new) == (waived, ROWS - waived)
    assert sum(each.status == WAIVED for each in judgement.violations) == waived


def test_waivers_that_ended_or_fit_nothing_are_named():
    """One that has ended is told, and one that nothing fits; one that fits is not."""
    given = [waiver(OVER, org="org-1"), waiver(id=ROWS), waiver(id=2)]
    ended, idle = judged([policy("SELECT *, '' AS said FROM t")], given).notes
    assert ended == "The waiver of odd for org org-1 ended on 2026-11-24; ops gave it."
    assert idle == f"The waiver of odd for id {ROWS} fits nothing, and may go."


def test_each_policy_counts_its_own():
    """Two policies over one table: each has its counts by status, since the night before as well."""
    first = policy("SELECT *, '' AS said FROM t WHERE id < 3")
    head = "-- policy: even\n-- key: id\n-- severity: warning\n-- fail_if: > 1_000\n".replace("1_000", "1000")
    second = policy("SELECT id FROM t WHERE id % 2 = 0", head)
    night = judged([first, second])
    before = {each.fingerprint: each for each in night.violations}
    fewer = policy("SELECT *, '' AS said FROM t WHERE id BETWEEN 2 AND 5")
    odd, even = judged([fewer, second], before=before).policies
    assert (odd.new, odd.known, odd.fixed, odd.is_failed) == (3, 1, 2, True)
    assert (even.new, even.known, even.fixed, even.is_failed) == (0, ROWS // 2, 0, True)
    assert {NEW, KNOWN, FIXED} == {each.status for each in judged([fewer, second], before=before).violations}


def test_rows_of_one_key_are_one_violation_that_says_the_same_each_night():
    """Rows come in any order: of several with one key the first in the alphabet is told."""
    rows = [f"SELECT 'org' AS org, 1 AS id, 2 AS two, '{said}' AS said" for said in ("b", "a", "c")]
    for order in (rows, rows[::-1]):
        found = judged([policy(" UNION ALL ".join(order))])
        assert [each.message for each in found.violations] == ["org has 1: a"]
        assert found.policies[0].new == 1


def test_violations_stand_in_the_same_order_each_night():
    """Rows come in any order: what is told of a policy, and its examples, go by the message."""
    orders = [judged([policy(f"SELECT *, '' AS said FROM t ORDER BY {how}")]) for how in ("id DESC", "hash(id)")]
    first, second = ([each.message for each in found.violations] for found in orders)
    assert first == second == sorted(first)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_policies_and_waivers_that_are_no_files_are_refused(tmp_path, make):
    """Nothing waits for a FIFO or reads a device to its end."""
    place = tmp_path / "odd.sql"
    make(place)
    for read in (lambda: read_policies([str(place)], MANIFEST), lambda: read_waivers(place, [], LATER, MANIFEST)):
        with pytest.raises(ManifestError, match="is not a regular file"):
            read()


def test_a_link_that_leads_nowhere_is_told_as_one(tmp_path):
    """It is there, so that to say its own name again would help nobody."""
    place = tmp_path / "odd.sql"
    place.symlink_to("gone.sql")
    for read in (
        lambda: read_policies(["*.sql"], tmp_path / "m.yaml"),
        lambda: read_waivers(place, [], LATER, MANIFEST),
    ):
        with pytest.raises(ManifestError, match=r"is a link to '?gone\.sql'?, where no file is"):
            read()


def test_a_name_of_several_columns_is_no_key_and_stands_in_no_message(tmp_path):
    """Which of them would be the key is chance; the check says so, and so does the night."""
    odd = policy("SELECT org, id, two, 'a' AS said, 'b' AS said FROM t")
    flaw = "said: is the name of several columns; give the others another name, with AS"
    with pytest.raises(ManifestError, match=flaw):
        judged([odd])
    job = {"operation": "webhook.list", "items": [{"org": "acme"}]}
    home = Home(tmp_path)
    home.manifest("https://code.example.com/api/v3", {"hooks": job}, "audit.yaml", audit={"policies": ["odd.sql"]})
    (tmp_path / "odd.sql").write_text("-- key: org\nSELECT a.org, b.org FROM webhook_list a, webhook_list b")
    checked = home.run("check", "audit.yaml")
    assert (checked.exit_code, flaw.replace("said", "org") in checked.err) == (2, True), checked.err
    (tmp_path / "odd.sql").write_text("-- policy: odd\n-- key: org\nSELECT upper(org) FROM webhook_list")
    checked = home.run("check", "audit.yaml")
    assert checked.exit_code == 2
    assert "odd.sql:2: org: unknown column; expected one of upper(org); AS gives a column a name" in checked.err
