"""A plan is told in sentences: what it costs, what the buckets give, when it would end."""

import json
from typing import Any

import pytest

from bulk.check.plan import BucketPlan, JobPlan, Plan, Savings
from bulk.report.render import plan_text
from bulk.report.render.json_data import as_data
from bulk.report.render.terminal import UNLIMITED, width
from tests.report.ledgers import START


def job(name="codeowners", **fields):
    """300 writes over 25 repositories."""
    values: dict[str, Any] = {
        "operation": "contents.put",
        "credential": "default",
        "category": "core",
        "items": 300,
        "least_requests": 300,
        "most_requests": 600,
        "lanes": 25,
        "longest_lane": "acme/api",
        "longest_lane_items": 12,
        "is_irreversible": False,
        "needs": (),
        "save": None,
    }
    return JobPlan(name=name, **(values | fields))


def bucket(category="core", **fields):
    """A bucket that is enough."""
    values: dict[str, Any] = {
        "credential": "default",
        "limit": 5000,
        "remaining": 4000,
        "reserve": 0,
        "reset_at": START + 600,
        "least_requests": 300,
        "most_requests": 600,
        "least_windows": 1,
        "most_windows": 1,
        "least_done_at": START,
        "most_done_at": START,
    }
    return BucketPlan(category=category, **(values | fields))


def plan(*jobs, buckets=(), **fields):
    """A plan of these jobs."""
    values: dict[str, Any] = {
        "name": "spring-migration",
        "base_url": "https://code.example.com/api/v3",
        "at": START,
        "items": sum(each.items for each in jobs),
        "least_requests": sum(each.least_requests for each in jobs),
        "most_requests": sum(each.most_requests for each in jobs),
        "longest_lane": "acme/api",
        "longest_lane_items": 12,
        "longest_lane_s": 2.4,
        "least_finish_at": START + 60,
        "most_finish_at": START + 60,
        "notes": (),
    }
    return Plan(jobs=jobs, buckets=tuple(buckets), **(values | fields))


def words(found, **look):
    """The text as one line."""
    return " ".join(plan_text.render(found, **look).split())


def test_a_plan_that_fits_in_its_budget():
    """Items, requests, lanes and the predicted end are there, and that the budget is enough."""
    said = words(plan(job(), job("readmes", operation="readme.get", lanes=0, longest_lane=None), buckets=[bucket()]))
    assert "600 items, 600 to 1,200 requests. It would end about" in said
    assert "(in 1 min)." in said
    assert "codeowners contents.put 300 300 to 600 25 acme/api (12)" in said
    assert "readmes readme.get 300 300 to 600 - -" in said
    assert "longest lane is acme/api: 12 items, one after the other, about 2.4 s." in said
    assert "Budget core: 300 to 600 requests; 4,000 of 5,000 left, resets" in said
    assert "; that is enough." in said


def test_a_plan_that_needs_windows():
    """Where a bucket must be waited for, the plan says how many windows it takes, and until when."""
    scarce = bucket(
        remaining=100,
        reserve=50,
        least_windows=2,
        most_windows=4,
        least_done_at=START + 600,
        most_done_at=START + 7800,
    )
    said = words(plan(job(), buckets=[scarce], least_finish_at=START + 600, most_finish_at=START + 7800))
    assert "It would end between" in said
    assert "(in 10 min) and" in said
    assert "100 of 5,000 left, 50 kept in reserve" in said
    assert "that takes 2 to 4 windows; the last request is sent between" in said


def test_a_plan_says_what_lost_answers_would_take():
    """The late end of the range is there, with the share that it stands for; not where it makes no difference."""
    said = words(plan(job(), buckets=[bucket()], lossy_finish_at=START + 120, lossy_share=0.02))
    assert "(in 1 min). With 2% of the answers lost, by" in said
    assert "(in 2 min)." in said
    assert "lost" not in words(plan(job(), buckets=[bucket()], lossy_finish_at=START + 60.1, lossy_share=0.02))


def test_a_plan_that_never_ends():
    """A reserve that leaves nothing is said to leave nothing."""
    never = bucket(least_windows=None, most_windows=None, least_done_at=None, most_done_at=None)
    said = words(plan(job(), buckets=[never], least_finish_at=None, most_finish_at=None))
    assert "It would never end" in said
    assert "never sent, because the reserve leaves nothing" in said


def test_what_can_not_be_undone_stands_out():
    """Notes are there; what can't be undone is coloured where colour is on."""
    found = plan(
        job(needs=("orgs",)),
        notes=("job orgs: organization.create cannot be undone (40 items)", "saved to x"),
        buckets=[bucket(limit=None, remaining=None), bucket("scim", credential="admin")],
    )
    said = plan_text.render(found)
    assert "Note: job orgs: organization.create cannot be undone (40 items)" in said
    assert "codeowners starts after orgs." in said
    assert "Budget default/core: 300 to 600 requests, no limit." in said
    assert "\x1b[33mNote: job orgs" in plan_text.render(found, is_coloured=True)


def test_a_plan_as_data():
    """As data it has the plan's own fields, with moments in ISO 8601."""
    found = json.loads(json.dumps(as_data(plan(job(), buckets=[bucket(reset_at=1e300)], most_finish_at=None))))
    assert (found["at"], found["least_finish_at"]) == ("2026-11-21T08:00:00.000Z", "2026-11-21T08:01:00.000Z")
    assert found["most_finish_at"] is None
    assert found["jobs"][0]["most_requests"] == 600
    assert (found["buckets"][0]["least_done_at"], found["buckets"][0]["reset_at"]) == ("2026-11-21T08:00:00.000Z", None)


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_hostile_and_many(columns):
    """Whatever names hold and however many there are, each line fits and nothing acts on the terminal
    (failures.md row 66)."""
    hostile = "\x1b[2J\u202e" + "漢" * 90
    jobs = [job(f"{hostile}{number}", longest_lane=hostile, needs=(hostile,)) for number in range(80)]
    shown = plan_text.render(
        plan(
            *jobs,
            name=hostile,
            longest_lane=hostile,
            notes=(hostile,) * 50,
            buckets=[bucket(hostile), bucket(credential=hostile)],
        ),
        columns=columns,
    )
    assert all(char.isprintable() or char == "\n" for char in shown)
    assert all(width(line) <= columns for line in shown.splitlines())
    assert "and 20 more jobs" in shown
    assert "and 20 more notes" in shown


def test_nothing_is_cut_that_has_room():
    """Where the lanes find no room they are left out, before an operation is cut; a pipe breaks no sentence."""
    lane = "borealis-web-north/api migration acme-inventory"
    long = plan(job("organizations", operation="organization-configuration.attach", longest_lane=lane))
    for columns in (80, 110, 200, UNLIMITED):
        shown = plan_text.render(long, columns=columns)
        table = [line for line in shown.splitlines() if line.startswith("organizations")]
        assert "organization-configuration.attach" in table[0]
        assert (lane in table[0], "…" in table[0]) == (columns >= 200, columns == 110), shown
    notes = ("a note of more than one line " * 9,)
    assert f"Note: {notes[0].strip()}" in plan_text.render(plan(job(), notes=notes), columns=UNLIMITED)


def test_what_is_saved_is_said():
    """Duplicates, superseded items and shared calls, in requests; and what is already so is not sent."""
    saved = Savings(duplicates=1_200, superseded=3, combined=198, requests=1_401, already_so=300)
    said = words(plan(job(), saved=saved))
    assert "1,401 requests saved: 1,200 duplicates, 3 superseded, 198 sent together with others." in said
    assert "What is already as asked for is not sent, which saves up to 300 of these requests." in said
    assert as_data(plan(job(saved=saved), saved=saved))["jobs"][0]["saved"]["combined"] == 198
    assert "saved" not in words(plan(job()))
