"""Columns are stable: those of the last release are there, with the same types."""

import json
from pathlib import Path
from typing import Any

import pytest

from bulk.audit.tables.columns import COMMON, _of_type, sql_type, table_of
from bulk.audit.tables.drift import differences, drift_rows
from bulk.operation import find, names
from tests.schemas.areas import files, hooks, notifications, organizations, others, rulesets, security

SPECIFIED: dict[str, list[Any]] = {
    "team-organization.list": [list[organizations.Organization]],
    "team-organization.get": [organizations.Organization],
    "contents.get": [
        files.File,
        files.LargeFile,
        files.Symlink,
        files.Submodule,
        list[files.Entry],
        list[files.OldEntry],
        files.Directory,
    ],
    "readme.get": [files.File, files.LargeFile],
    "enterprise-configuration.list": [list[security.Configuration]],
    "enterprise-configuration.get": [security.Configuration],
    "enterprise-configuration.defaults": [list[security.Default]],
    "organization-configuration.get": [security.Configuration],
    "organization-configuration.repositories": [list[security.ConfiguredRepository]],
    "enterprise-security.get": [security.LegacySettings],
    "enterprise-ruleset.history": [list[rulesets.Version]],
    "enterprise-ruleset.version": [rulesets.VersionWithState],
    "organization-ruleset.list": [list[rulesets.Summary]],
    "license.get": [security.License],
    "committers.get": [security.Committers],
    "webhook.list": [list[hooks.Hook]],
    "webhook.get": [hooks.Hook],
    "webhook.get-config": [hooks.HookConfig],
    "webhook.deliveries": [list[hooks.Delivery]],
    "notification.list": [list[notifications.Thread]],
    "thread.get": [notifications.Thread],
    "rate-limit.get": [others.RateLimits, others.OldRateLimits],
}
"""The schemas of answers of the operations that read."""

RELEASED = Path(__file__).with_name("columns.json")
"""Columns of each table as of the last release; a new one is added with `python -m tests.audit.tables.test_columns`."""


def columns():
    """Every table's columns and their types, objects flattened."""
    tables = {table.name: table.columns for table in map(table_of, map(find, names()))}
    return {name: dict(of) for name, of in {**tables, **COMMON}.items()}


def test_no_column_of_the_last_release_is_gone_or_of_another_type():
    """Columns are added, never renamed or retyped; a field is added to an object at its end or in its middle."""
    now = columns()
    for table, released in json.loads(RELEASED.read_text()).items():
        for column, kind in released.items():
            assert column in now[table], f"{table}.{column} is gone"
            if not kind.startswith("STRUCT"):
                assert now[table][column] == kind, f"{table}.{column} has another type"
            else:
                fields = {field.strip("()") for field in kind.removeprefix("STRUCT").split(", ")}
                assert all(field in now[table][column] for field in fields), f"{table}.{column} has lost a field"


@pytest.mark.parametrize("name", names())
def test_what_may_hold_a_secret_has_no_column(name):
    """No column of content, signed addresses, secrets."""
    text = " ".join([*table_of(find(name)).columns, *table_of(find(name)).columns.values()])
    assert '"content"' not in text
    assert "download_url" not in text
    assert name != "webhook.update" or "secret" not in table_of(find(name)).item["config"]


def test_what_the_types_do_not_foresee_is_counted():
    """Unknown fields and values of other types are told with their type, never with their value."""
    table = table_of(find("webhook.list"))
    structure = json.dumps([{"id": "VARCHAR", "config": {"url": "VARCHAR", "extra": "BOOLEAN"}, "events": "NULL"}])
    rows = drift_rows("night", {"hooks": table}, [("hooks", structure, 7), ("hooks", structure, 2)])
    assert rows == [
        ["night", "webhook.list", "result.config.extra", "unknown", 9, "BOOLEAN"],
        ["night", "webhook.list", "result.id", "type", 9, "VARCHAR"],
    ]
    assert list(differences({"a": ["JSON"]}, {"a": ["BIGINT"]}, "r")) == [("r.a", "type", "JSON")]
    for given, kind in (([["BIGINT"]], "ARRAY"), ({"b": "BIGINT"}, "OBJECT")):  # in place of a text; ended a night once
        assert list(differences({"a": given}, {"a": "VARCHAR"}, "r")) == [("r.a", "type", kind)]
    assert sql_type([{"a": "BIGINT", "b": ["JSON"]}]) == 'STRUCT("a" BIGINT, "b" JSON[])[]'


@pytest.mark.parametrize("name", [name for name in names() if find(name).is_read])
def test_what_the_specification_says_is_foreseen(name):
    """No answer that is as specified is told as drift of a schema: each of its fields has a type, or is an address."""
    table = table_of(find(name))
    for kind in SPECIFIED[name]:
        given, shape = _of_type(kind, -99), table.result
        if table.list_field and isinstance(given, list) and isinstance(shape, dict):
            shape = shape[table.list_field]
        found = differences(given, shape, "result", table.untabled)
        assert [(field, kind) for field, problem, kind in found if problem == "unknown"] == []


if __name__ == "__main__":
    RELEASED.write_text(json.dumps(columns(), indent=1) + "\n")
