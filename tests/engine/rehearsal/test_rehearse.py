"""Rehearsals end when arithmetic says so, wait for what is needed, and are the same for the same seed."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bulk.engine.rehearsal.measured import Measured
from bulk.engine.rehearsal.model_platform import ModelBudget
from bulk.engine.rehearsal.rehearse import Rehearsed, model_of, rehearse_all
from bulk.manifest.reading import Overrides, read_manifest

READS = [{"owner": "acme", "repo": f"r{number}"} for number in range(950)]


def rehearsal(
    folder: Path,
    jobs: Mapping[str, Any],
    budget: ModelBudget | None = None,
    *,
    latency_s: float = 0.02,
    limits: Mapping[str, Any] | None = None,
    faults: Mapping[str, float] | None = None,
    **more: Any,
) -> Rehearsed:
    """What comes of these jobs."""
    path = folder / "manifest.yaml"
    platform = {"base_url": "https://x.example/api/v3"}
    path.write_text(json.dumps({"version": 1, "platform": platform, "limits": dict(limits or {}), "jobs": jobs}))
    model = model_of({"core": budget} if budget else {}, Measured(), latency_s, faults or {})
    given: dict[str, Any] = {"seeds": 1, "assumed": {}, "asks": False, **more}
    return rehearse_all(read_manifest(path, Overrides(), {}), model, **given)


def test_a_budget_decides(tmp_path: Path) -> None:
    """950 reads of which 100 of 300 are left for 4 s: 100, then three windows of 8 s: it ends in the last of them."""
    budget = ModelBudget(limit=300, seconds=8.0, remaining=100, ends_in_s=4.0)
    jobs = {"readmes": {"operation": "readme.get", "items": READS}}
    found = rehearsal(tmp_path, jobs, budget)
    assert 4.0 + 2 * 8.0 <= found.course.ends_s <= 4.0 + 3 * 8.0 + 1.0
    assert (found.course.limit, found.course.requests, found.course.exit_code) == ("core", {"core": 950}, 0)
    assert rehearsal(tmp_path, jobs, budget).course == found.course


def test_a_lane_decides(tmp_path: Path) -> None:
    """100 writes to one repository, two requests of 20 ms each, one behind the other."""
    write = {"owner": "acme", "repo": "api", "message": "m", "content": "YQ=="}
    items = [{**write, "path": f"f{number}"} for number in range(100)]
    found = rehearsal(tmp_path, {"files": {"operation": "contents.put", "items": items}})
    assert 100 * 0.04 * 0.8 <= found.course.ends_s <= 100 * 0.06
    assert found.course.limit == "latency"


def test_waves_come_one_behind_the_other(tmp_path: Path) -> None:
    """Three waves with ten minutes between them: twenty minutes and what the writes take."""
    write = {"owner": "acme", "message": "m", "content": "YQ==", "path": "a"}
    items = [{**write, "repo": f"r{number}"} for number in range(100)]
    jobs = {"files": {"operation": "contents.put", "items": items}}
    plain = rehearsal(tmp_path, jobs)
    found = rehearsal(tmp_path, jobs, limits={"waves": [1, "10%", "rest"], "gate": {"after": "10m"}})
    assert plain.course.ends_s < 1.0
    assert (1_200.0 < found.course.ends_s < 1_202.0, found.course.requests) == (True, {"core": 200})


def test_what_needs_single_items_waits_for_those_alone(tmp_path: Path) -> None:
    """One repository has a hundred files in the first job, another one in the second: whole jobs take both times, one
    behind the other, and by key the longer one is all."""
    write = {"owner": "acme", "message": "m", "content": "YQ=="}
    repos = [f"r{number}" for number in range(20)]
    many = {job: [repos[place], *repos, *[repos[place]] * 99] for place, job in enumerate("ab")}
    items = {
        job: [{**write, "repo": repo, "path": f"{job}{number}"} for number, repo in enumerate(many[job])]
        for job in "ab"
    }
    ends: list[float] = []
    for need in ("a", {"a": {"owner": "owner", "repo": "repo"}}):
        jobs = {
            "a": {"operation": "contents.put", "items": items["a"]},
            "b": {"operation": "contents.put", "items": items["b"], "needs": [need]},
        }
        found = rehearsal(tmp_path, jobs)
        assert (found.course.exit_code, found.course.requests) == (0, {"core": 480})
        ends.append(found.course.ends_s)
    whole, by_key = ends
    assert whole >= 200 * 0.04 * 0.8
    assert by_key <= 0.6 * whole


def test_what_is_needed_comes_first(tmp_path: Path) -> None:
    """Items that will be made from results are as many as those they are made from, or as is assumed."""
    orgs = [{"login": f"org-{number}", "admin": "octoadmin"} for number in range(40)]
    hook = {"config": {"url": "https://h.example/x"}, "if_exists": "unchanged"}
    jobs = {
        "orgs": {"operation": "organization.create", "items": orgs},
        "hooks": {
            "operation": "webhook.create",
            "with": hook,
            "items": {"from": "orgs", "each": "item", "map": {"org": "item.login"}},
        },
    }
    found = rehearsal(tmp_path, jobs, asks=True)
    first, second = found.course.jobs
    assert (first.ends_s < second.begins_s, second.items, second.needs) == (True, 40, ("orgs",))
    assert set(found.what_if) == {"a second token", "concurrency 16", "1% of the answers lost"}
    assert rehearsal(tmp_path, jobs, assumed={"hooks": 7}).course.jobs[1].items == 7


def test_equal_reads_are_sent_once(tmp_path: Path) -> None:
    """As in a run; those that are made from results are not known to be equal, and each of them counts."""
    reads = {"operation": "readme.get", "items": [*READS[:20], *READS[:20], READS[3]]}
    made = {"from": "reads", "each": "item", "map": {"owner": "item.owner", "repo": "item.repo", "path": "a"}}
    jobs = {
        "reads": reads,
        "made": {"operation": "contents.get", "items": made},
        "last": {"operation": "contents.get", "needs": ["made"], "items": [{**READS[0], "path": "a"}]},
    }
    course = rehearsal(tmp_path, jobs).course
    assert (course.exit_code, course.requests) == (0, {"core": 20 + 41 + 1})
    assert [job.items for job in course.jobs] == [41, 41, 1]
    ends = [job.ends_s for job in course.jobs]
    assert ends == sorted(ends)
    waves = {"waves": [1, "rest"]}
    assert rehearsal(tmp_path, jobs, limits=waves).course.requests == course.requests


def test_lost_answers_are_settled(tmp_path: Path) -> None:
    """More requests than without, every item ends, and several seeds give a range."""
    write = {"owner": "acme", "message": "m", "content": "YQ==", "path": "a"}
    items = [{**write, "repo": f"r{number}"} for number in range(200)]
    found = rehearsal(
        tmp_path,
        {"files": {"operation": "contents.put", "items": items}},
        faults={"drop-after": 0.1, "unavailable": 0.02},
        seeds=3,
    )
    assert (found.course.exit_code, found.course.requests["core"] > 400) == (0, True)
    assert found.earliest_s < found.latest_s


@pytest.mark.soak
def test_a_hundred_thousand_items(tmp_path: Path, figure: Any) -> None:
    """A run of six hours in at most 30 s of processor time and 200 MB."""
    import resource
    import time

    write = {"owner": "acme", "message": "m", "content": "YQ=="}
    lines = [json.dumps({**write, "repo": f"r{n // 4}", "path": f"f{n}"}) for n in range(100_000)]
    (tmp_path / "files.jsonl").write_text("\n".join(lines))
    jobs = {"files": {"operation": "contents.put", "items": "files.jsonl"}}
    began = time.process_time()
    found = rehearsal(tmp_path, jobs, ModelBudget(limit=36_000, seconds=3_600.0, remaining=36_000))
    took_s, most_mb = time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figure(f"{found.course.ends_s / 3600:.2f} h rehearsed in {took_s:.1f} s of processor time, {most_mb:.0f} MB")
    assert (took_s <= 30.0, 5.0 * 3_600 <= found.course.ends_s <= 6.1 * 3_600) == (True, True)
