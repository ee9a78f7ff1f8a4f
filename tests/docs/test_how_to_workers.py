"""The how-to page on several machines: its Kubernetes files are such as Kubernetes takes, and they scale by the truth.

The schemas are the parts of Kubernetes' reference (apps/v1, policy/v1, autoscaling/v2, core/v1) that the page uses; a
field that is not in them is an error, so that a slip of the pen is none that only a cluster finds.
"""

import re
from pathlib import Path
from typing import Any

import jsonschema
import psycopg
import pytest

from bulk.model import OutcomeKind
from tests.docs.shown import refused
from tests.docs.test_how_to import dockerfile, documents
from tests.ledger.samples import record
from tests.store.places import StorePlace, ranges

TEXT, COUNT = {"type": "string", "minLength": 1}, {"type": "integer", "minimum": 1}
NAME = {"type": "string", "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63}
AMOUNT = {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi)?$"}


def a(*optional: str, **needed: Any) -> dict[str, Any]:
    """An object with exactly these fields; `optional`: those of them that may be missing."""
    must = [name for name in needed if name not in optional]
    return {"type": "object", "properties": needed, "required": must, "additionalProperties": False}


def some(of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": of, "minItems": 1}


LABELS = {"type": "object", "additionalProperties": TEXT, "minProperties": 1}
SELECTOR = a(matchLabels=LABELS)
CONTAINER = a(
    name=NAME,
    image=TEXT,
    args=some(TEXT),
    env=some(a(name=TEXT, valueFrom=a(secretKeyRef=a(name=NAME, key=TEXT)))),
    resources=a(requests=a(cpu=AMOUNT, memory=AMOUNT)),
    volumeMounts=some(a(name=NAME, mountPath=TEXT)),
)
POD = a(
    terminationGracePeriodSeconds=COUNT,
    securityContext=a(runAsNonRoot={"const": True}, runAsUser=COUNT, fsGroup=COUNT),
    containers=some(CONTAINER),
    volumes=some(a(name=NAME, emptyDir={"type": "object", "maxProperties": 0})),
)
SPECS = {
    ("apps/v1", "Deployment"): a(
        "replicas", replicas=COUNT, selector=SELECTOR, template=a(metadata=a(labels=LABELS), spec=POD)
    ),
    ("policy/v1", "PodDisruptionBudget"): a(maxUnavailable=COUNT, selector=SELECTOR),
    ("autoscaling/v2", "HorizontalPodAutoscaler"): a(
        scaleTargetRef=a(apiVersion=TEXT, kind=TEXT, name=NAME),
        minReplicas=COUNT,
        maxReplicas=COUNT,
        metrics=some(
            a(
                type={"const": "External"},
                external=a(metric=a(name=TEXT), target=a(type={"const": "AverageValue"}, averageValue=AMOUNT)),
            )
        ),
        behavior=a(scaleDown=a(stabilizationWindowSeconds={"type": "integer", "minimum": 0, "maximum": 3_600})),
    ),
}


def valid(document: Any) -> Any:
    """The spec of a document that Kubernetes would take."""
    spec = SPECS[document["apiVersion"], document["kind"]]
    jsonschema.validate(document, a(apiVersion=TEXT, kind=TEXT, metadata=a(name=NAME), spec=spec))
    return document["spec"]


def test_kubernetes_takes_the_workers() -> None:
    """Deployment, disruption budget and autoscaler are valid and speak of the same pods, whose command can be read."""
    found = documents("several-machines.md", "worker.yaml")
    deployment, budget, scaler = map(valid, found)
    assert [document["kind"] for document in found] == ["Deployment", "PodDisruptionBudget", "HorizontalPodAutoscaler"]
    pod, labels = deployment["template"]["spec"], deployment["template"]["metadata"]["labels"]
    assert labels == deployment["selector"]["matchLabels"] == budget["selector"]["matchLabels"]
    target = {key: found[0][key] for key in ("apiVersion", "kind")} | found[0]["metadata"]
    assert scaler["scaleTargetRef"] == target
    assert scaler["minReplicas"] <= scaler["maxReplicas"]
    assert "replicas" not in deployment, "it would be set back with each apply"
    (container,) = pod["containers"]
    assert refused([str(argument) for argument in container["args"]]) == ""
    assert {each["name"] for each in container["env"]} == {"PGPASSWORD", "BULK_TOKEN"}
    assert {each["name"] for each in container["volumeMounts"]} == {each["name"] for each in pod["volumes"]}
    assert str(pod["securityContext"]["runAsUser"]) in re.findall(r"^USER (\d+)$", dockerfile(), re.MULTILINE)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("spec", "metrics", 0, "external", "target", "averageValue"), 20_000),
        (("spec", "maxReplica"), 8),
        (("metadata", "name"), "Bulk_worker"),
        (("spec", "metrics", 0, "type"), "Resource"),
    ],
)
def test_a_slip_is_seen(place: tuple[str | int, ...], value: object) -> None:
    """A wrong type, an unknown field, a name that can't be and another kind of metric are refused."""
    scaler = documents("several-machines.md", "worker.yaml")[2]
    inner = scaler
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        valid(scaler)


def test_the_figure_that_workers_are_scaled_by_is_what_is_left(store_text: str, tmp_path: Path) -> None:
    """The query of the exporter counts items without an outcome of runs that go on, and a reader may ask it."""
    (queries,) = documents("several-machines.md", "queries.yaml")
    (adapter,) = documents("several-machines.md", "adapter.yaml")
    (scaler,) = (each for each in documents("several-machines.md", "worker.yaml") if "Autoscaler" in each["kind"])
    name = scaler["spec"]["metrics"][0]["external"]["metric"]["name"]
    assert name == f"bulk_{next(iter(queries['bulk']['metrics'][0]))}"
    assert [rule["seriesQuery"] for rule in adapter["externalRules"]] == [name]

    def left() -> int:
        with psycopg.connect(store_text) as connection:
            connection.execute("SET ROLE bulk_reader")
            row = connection.execute(queries["bulk"]["query"]).fetchone()
        assert row is not None
        return int(row[0])

    assert left() == 0
    place = StorePlace(store_text, tmp_path, shards=ranges(((0, 0, 6), (1, 0, 4))))
    items = sum(items for _, _, items in place.identity.jobs)
    assert left() == items
    place.opened(0).commit([record(0), record(1, OutcomeKind.FAILED), record(2)])
    assert left() == items - 3
    place.sql("UPDATE run SET state = 'paused' WHERE id = %s", place.run)
    assert left() == 0
    place.close()
