"""Figures for machines: the official parsers take them, their number does not grow with items, and they are true."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as classic
from ruamel.yaml import YAML

from bulk.clock import Clock
from bulk.model import ErrorCode
from bulk.report.run_state import run_state_of
from bulk.serve.audits.histories import Histories
from bulk.serve.metrics import metrics
from bulk.serve.metrics.metrics_file import MetricsFile
from bulk.serve.metrics.metrics_source import Latencies, audit_figures, figures
from bulk.status import WaitKind
from tests.browser.audits import write_fleet
from tests.browser.runs import HOSTILE, write_small
from tests.e2e.support.platform import ADMIN, Home, served
from tests.report.ledgers import START, Run, bucket, finished, job_status, status
from tests.serve.conftest import asking

MONITORING = Path(__file__).parents[2] / "docs" / "monitoring"


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Name and labels -> value, by the official parser."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in open_metrics(text)
        for sample in family.samples
    }


def told(run: Run, *, is_classic: bool = False) -> str:
    """What is told of a run."""
    run_state = run_state_of(run.view, START + 5)
    return metrics.text([figures("run", run_state, run.view, Latencies())], is_classic=is_classic)


def test_the_official_parser_takes_what_the_server_says(tmp_path: Path) -> None:
    """`/metrics` is OpenMetrics, and says what the ledger counts of each run that has just ended, and of no other."""
    folder = tmp_path / "fleet"
    now = Clock().now()
    run = Run(folder / "now", readmes=3)
    run.epoch([finished(0), finished(1, "failed")], started_at=now - 60, requests=7)
    Run(folder / "old").epoch([finished()])
    with asking(folder, cache=tmp_path, metrics_key="k" * 20) as asker:
        answer = asker.send("GET", "/metrics", {"Authorization": f"Bearer {'k' * 20}"})
    assert answer.headers["content-type"] == metrics.CONTENT_TYPE
    found = samples(answer.body.decode())
    assert {dict(labels)["run"] for _, labels in found} == {"now"}
    assert found["bulk_items_total", (("job", "readmes"), ("outcome", "failed"), ("run", "now"))] == 1
    assert found["bulk_errors_total", (("code", "not_found"), ("job", "readmes"), ("run", "now"))] == 1
    assert found["bulk_job_items", (("job", "readmes"), ("run", "now"))] == 3
    assert found["bulk_run_state", (("run", "now"), ("state", "stopped"))] == 1
    assert found["bulk_requests_total", (("run", "now"),)] == 7


def test_both_formats_say_the_same(tmp_path: Path) -> None:
    """A text file has the older format, which names counters otherwise; the figures are the same."""
    write_small(tmp_path / "run")
    run = Run(tmp_path / "run")
    families = {family.name: family for family in classic(told(run, is_classic=True))}
    assert families["bulk_items"].type == "counter"
    assert families["bulk_request_seconds"].type == "histogram"
    older = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families.values()
        for sample in family.samples
    }
    assert older == samples(told(run))
    buckets = [value for (name, _), value in older.items() if name == "bulk_request_seconds_bucket"]
    assert len(buckets) == 12
    assert buckets == sorted(buckets)


@pytest.mark.parametrize("jobs", [1, 49, 50, 51, 400])
def test_their_number_does_not_grow(tmp_path: Path, jobs: int) -> None:
    """However many items, jobs and messages there are, at most 50 jobs are told, and the rest is one."""
    run = Run(tmp_path / "run", **{f"j{number}": 10 for number in range(jobs)})
    codes = [str(code) for code in ErrorCode][:4]
    sizes = set()
    with run.open() as ledger:
        for index in range(10):
            items = [finished(index, "failed", job, code=codes[index % 4], message=f"m{index}") for job in run.jobs]
            ledger.commit([run.record(each) for each in items], status(START + 1))
            if index >= 3:
                sizes.add(len(samples(told(run))))
    found = samples(told(run))
    assert len(sizes) == 1
    names = {dict(labels)["job"] for name, labels in found if name == "bulk_items_total"}
    assert len(names) == min(jobs, 51)
    assert sum(value for (name, _), value in found.items() if name == "bulk_items_total") == 10 * jobs


def test_a_hostile_name_is_one_label(tmp_path: Path) -> None:
    """Quotes, line breaks and backslashes in names end no label and begin no line."""
    run = Run(tmp_path / "run")
    name = f'{HOSTILE}\\"}}\n# EOF\nbulk_items_total{{job="x"}} 1e9'
    run.jobs = {name: 3}
    run.epoch([finished(job=name)], buckets=(bucket(category=name, reset_at=1.5),), jobs=(job_status(name),))
    found = samples(told(run))
    assert found["bulk_items_total", (("job", name), ("outcome", "succeeded"), ("run", "run"))] == 1
    assert found["bulk_budget_limit", (("category", name), ("credential", "default"), ("run", "run"))] == 5000


def test_a_run_keeps_a_file_of_metrics(tmp_path: Path) -> None:
    """`--metrics FILE` has the last word of the run when it has ended, is private to nobody, and holds no secret."""
    home = Home(tmp_path)
    with served(tmp_path / "sandbox") as sandbox:
        home.manifest(sandbox.base_url, {"gone": {"operation": "readme.get", "items": [{"owner": "a", "repo": "b"}]}})
        ran = home.run("run", "manifest.yaml", "--run-dir", "run", "--metrics", "bulk.prom")
        assert home.run("run", "manifest.yaml", "--metrics", "nowhere/bulk.prom").exit_code == 2
    assert ran.exit_code == 1
    text = (tmp_path / "bulk.prom").read_text()
    found = {family.name: family.samples for family in classic(text)}
    assert {sample.labels["state"]: sample.value for sample in found["bulk_run_state"]}["complete"] == 1
    assert [sample.value for sample in found["bulk_exit_code"]] == [1]
    assert [sample.value for sample in found["bulk_errors"]] == [1]
    assert ADMIN not in text
    assert not list(tmp_path.glob("bulk.prom.*"))


def names_in(expression: str) -> set[str]:
    """Metrics that an expression asks for."""
    return set(re.findall(r"\bbulk_\w+", expression))


def test_dashboard_and_alerts_ask_for_what_there_is(tmp_path: Path) -> None:
    """Every expression of the dashboard and of the alert rules names metrics and labels that are told."""
    waits = [each.value for each in WaitKind]
    run = Run(tmp_path / "run")
    with run.open() as ledger:
        live = status(START, buckets=(bucket(reset_at=START + 5),), finish_at=START + 60)
        ledger.commit([run.record(finished(1, "failed"))], live)
        families = list(open_metrics(told(run)))
    write_small(tmp_path / "small")
    families += open_metrics(told(Run(tmp_path / "small")))
    write_fleet(tmp_path / "audits" / "fleet")
    figures_of_audits = list(audit_figures(Histories([tmp_path / "audits"], Clock()).all()))
    families += open_metrics(metrics.text([], figures_of_audits))
    known: dict[str, set[str]] = {}
    for family in families:
        for sample in family.samples:
            known.setdefault(sample.name, set()).update(sample.labels)
    board: dict[str, Any] = json.loads((MONITORING / "dashboard.json").read_text())
    rules = YAML(typ="safe").load((MONITORING / "alerts.yaml").read_text())["groups"][0]["rules"]
    expressions = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    expressions += [rule["expr"] for rule in rules]
    assert len(expressions) > 15
    for expression in expressions:
        assert names_in(expression) <= set(known), expression
        for name, labels in re.findall(r"\b(bulk_\w+)\{([^}]*)\}", expression):
            assert set(re.findall(r"(\w+)\s*=~?", labels)) <= known[name], expression
        for kind in re.findall(r'kind="(\w+)"', expression):
            assert kind in waits
        assert expression.count("(") == expression.count(")")
    assert all({"alert", "expr", "labels", "annotations"} <= set(rule) for rule in rules)


def test_a_file_that_can_not_be_replaced_leaves_none_beside_it(tmp_path: Path) -> None:
    """As on a full disk: it is said once, and no part of the file stays."""
    write_small(tmp_path / "run")
    (tmp_path / "out" / "metrics.prom").mkdir(parents=True)
    said = list[str]()
    with MetricsFile(tmp_path / "out" / "metrics.prom", tmp_path / "run", Clock(), said.append):
        pass
    assert len(said) == 1
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["metrics.prom"]


def test_what_a_killed_process_left_of_it_goes(tmp_path: Path) -> None:
    """Whoever writes the file next removes the part; others may read the file, as the umask says."""
    write_small(tmp_path / "run")
    place = tmp_path / "out" / "metrics.prom"
    place.parent.mkdir()
    place.with_name("metrics.prom.part").write_text("# HELP bulk_")
    old = os.umask(0o022)
    try:
        with MetricsFile(place, tmp_path / "run", Clock(), pytest.fail):
            pass
    finally:
        os.umask(old)
    assert [path.name for path in place.parent.iterdir()] == ["metrics.prom"]
    assert place.stat().st_mode & 0o777 == 0o644
