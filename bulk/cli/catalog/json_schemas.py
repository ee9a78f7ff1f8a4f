"""The JSON Schema of every JSON that Bulk prints or writes: the files of `docs/schemas/`, made from the types.

`make reference` writes them. Every field has a description, from its class's docstring, `MORE` or `COMMON`. What a
schema does not name may not occur, so that an output can't have a field that is not documented.
"""

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import inspect as types

from bulk.check.check_data import CheckData
from bulk.check.plan import Plan
from bulk.cli.catalog.documentation import OperationDocumentation, Summary
from bulk.cli.error_data import ErrorsData
from bulk.cluster.stored_status import StoredStatus
from bulk.control.protocol import InForce
from bulk.engine.credentials.credential_check import CredentialRow
from bulk.engine.credentials.probes import ProbedCredentials
from bulk.engine.migrations.live_check import Verified
from bulk.engine.rehearsal.rehearse import Rehearsed
from bulk.ledger.digests.verification import Verification
from bulk.model import ErrorCode, OutcomeKind
from bulk.report.diff.diff_record import Change
from bulk.report.diff.diff_record import Summary as DiffSummary
from bulk.report.record import Report
from bulk.report.render.json_data import MOMENT, is_moment
from bulk.report.render.status_data import BucketLeft, StatusData
from bulk.report.run_list import ListedRun
from bulk.serve.events import ActionEvent, AgainEvent, EndEvent, ItemEvent
from bulk.status import RunStatus

DIALECT = "https://json-schema.org/draft/2020-12/schema"

COMMON: Mapping[str, str] = {
    "active_s": "time in which it ran (seconds)",
    "attempts": "sends of the request that decided (count); 0 where nothing was sent",
    "base_url": "address of the platform's API",
    "category": "category of the rate limit",
    "code": "stable code of an error",
    "credential": "name of the credential, never the token",
    "elapsed_ms": "from the first send to the outcome (milliseconds)",
    "http_status": "HTTP status of the answer that decided; null where there was none",
    "id": "the user's own; null where none was given",
    "index": "place among the job's items, from 0",
    "item": "the item as it was given, without large fields that were sent and without secrets",
    "items": "items (count); null where that is not known",
    "job": "name of the job",
    "jobs": "one entry for each job, in the manifest's order",
    "label": "the item in a few words",
    "left": "items without an outcome (count); null where the number of items is not known",
    "message": "what was said, for people",
    "name": "its name",
    "next_command": "the command that goes on; empty where nothing is left to do",
    "notes": "what a person should know",
    "number": "its number, from 1",
    "operation": "name of the operation",
    "outcome": "how the item ended",
    "outcomes": "how many items ended how, by outcome (counts)",
    "run_dir": "the run directory, as the user named it",
    "started_at": "when it began",
    "state": "where it stands",
    "superseded": "items that a later one makes superfluous (count)",
    "version": "of the meaning of this record",
    "why": "the reason, for people; empty where there is none",
}
"""Descriptions of fields that many records share, for records whose docstring does not have them."""


MORE: Mapping[str, str] = {
    "BucketLeft.limit": "requests in a window (count); null where the platform limits nothing",
    "BucketLeft.remaining": "requests left in this window (count); null where nothing is limited",
    "BucketLeft.reserve": "requests kept for others (count)",
    "BucketLeft.reset_at": "end of this window; null where nothing is limited",
    "Elapsed.median_ms": "half of the items took at most this long (milliseconds)",
    "Elapsed.most_ms": "the longest (milliseconds)",
    "Elapsed.p95_ms": "95% of the items took at most this long (milliseconds)",
    "Elapsed.p99_ms": "99% of the items took at most this long (milliseconds)",
    "BucketPlan.is_window_seen": "whether the length of its windows was seen; else it is judged",
    "BucketStatus.reset_at": "end of this window; null where unknown",
    "Ending.error": "why it did not succeed, as in a line of results; null where it did",
    "Ending.result": "its result",
    "FieldDifference.field": "dotted name of the field; a number in brackets is a place in an array",
    "FieldDifference.new": "its value in RUN_B; missing where it was not there",
    "FieldDifference.old": "its value in RUN_A; missing where it was not there",
    "FieldDocumentation.description": "what it is",
    "FieldDocumentation.examples": "values that it may have",
    "FieldDocumentation.is_required": "whether every item must have it",
    "JobDiff.added": "items that RUN_B alone has (count)",
    "JobDiff.changed": "items that differ (count)",
    "JobDiff.lost_sight": "items that RUN_A has read and RUN_B could not (count)",
    "JobDiff.new_items": "items of RUN_B (count)",
    "JobDiff.old_items": "items of RUN_A (count)",
    "JobDiff.removed": "items that RUN_A alone has (count)",
    "JobDiff.same": "items that are the same in both (count)",
    "JobPlan.needs": "names of the jobs that it needs: as a whole, or of which an item needs some (by_key)",
    "JobPlan.saved": "what need not be sent",
    "JobReport.elapsed": "how long its items took; null where none was sent",
    "JobReport.errors": "how often which error occurred, the most frequent first",
    "OperationDocumentation.fields": "the fields of an item",
    "OperationDocumentation.is_irreversible": "whether what it does can't be undone",
    "OperationDocumentation.is_read": "whether it changes nothing",
    "OperationDocumentation.lane_of_example": "the lane of the example",
    "OperationDocumentation.least_requests": "fewest requests of an item (count)",
    "OperationDocumentation.most_requests": "most requests of an item where no answer is lost (count)",
    "OperationDocumentation.result": "what its result is, in words",
    "OperationDocumentation.source": "the part of the platform's documentation that it follows",
    "Plan.buckets": "what the run takes from each bucket",
    "Plan.least_requests": "of all jobs where everything is already as asked (count)",
    "Plan.lossy_share": "share of the answers that `lossy_finish_at` takes for lost, from 0 to 1",
    "Plan.most_requests": "of all jobs where everything is sent (count)",
    "Report.buckets": "what was spent from each bucket",
    "Report.epochs": "every start of the run, in order; the last 100",
    "Report.slowest": "the items that took longest, the slowest first",
    "Report.timeline": "finished items over time; null where nothing ran",
    "Report.vendor": "`service` or `github`",
    "RunStatus.buckets": "the buckets that it uses",
    "RunStatus.in_flight": "requests in flight (count)",
    "RunStatus.retries": "requests that repeated one that failed (count)",
    "RunStatus.waits": "the reasons for which items wait",
    "Summary.added": "items that RUN_B alone has (count)",
    "Summary.changed": "items that differ (count)",
    "Summary.lost_sight": "items that RUN_A has read and RUN_B could not (count)",
    "Summary.removed": "items that RUN_A alone has (count)",
    "Summary.requests": "what an item costs, in words",
    "Summary.same": "items that are the same in both (count)",
    "Summary.summary": "what it does, on one line",
    "Wait.until": "when that ends; null where unknown",
}
"""Descriptions of single fields that the docstring of their class mentions only in passing."""


class ResultLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `results.jsonl`, and of `bulk report --format jsonl`: one item that has ended.

    Attributes:
        started_at: the first send, or when the item was skipped.
        request_id: the platform's own id of the request; null where there was none.
        result: what the operation gives, see `bulk operations NAME`; null where it failed.
        error: null where the item succeeded or was unchanged.
        missing: whether the item is proven not to be there, and its job says `missing: ok`; else it is left out.
        unchanged_by: `date` where only the moment of its last change shows that the item is unchanged; else it is left
            out.
    """

    job: str
    index: int
    id: str | None
    item: dict[str, Any]
    outcome: OutcomeKind
    http_status: int | None
    attempts: int
    started_at: float
    elapsed_ms: float
    request_id: str | None
    result: Any
    error: "ItemErrorData | None"
    missing: bool | msgspec.UnsetType = msgspec.UNSET
    unchanged_by: str | msgspec.UnsetType = msgspec.UNSET


class ItemErrorData(msgspec.Struct, frozen=True, kw_only=True):
    """Why an item did not succeed."""

    code: ErrorCode
    message: str
    http_status: int | None
    attempts: int


class NoteLine(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was said while the run went on.

    Attributes:
        type: tells this line from a status.
        text: for people.
    """

    type: Literal["note"]
    text: str


class LogLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the log with `--log-format json`, on standard error.

    Attributes:
        at: when it was logged.
        level: `debug`, `info`, `warning`, `error` or `critical`.
        logger: which part of Bulk says it.
        run: name of the run directory, where a run is driven. job, item: where it is about an item: its job and index.
        traceback: of an exception, where there was one.
    """

    at: float
    level: str
    logger: str
    message: str
    run: str | msgspec.UnsetType = msgspec.UNSET
    job: str | msgspec.UnsetType = msgspec.UNSET
    item: int | msgspec.UnsetType = msgspec.UNSET
    traceback: str | msgspec.UnsetType = msgspec.UNSET


@dataclass(frozen=True, slots=True)
class Output:
    """One JSON output: its title, and the types that its document, or each of its lines, may have."""

    title: str
    kinds: tuple[Any, ...]


OUTPUTS: Mapping[str, Output] = {
    "check": Output("bulk check --json", (CheckData,)),
    "credentials": Output(
        "bulk credentials check --json; with --probe an object", (list[CredentialRow], ProbedCredentials)
    ),
    "diff": Output("A line of bulk diff --json: the summary first, then the changes", (DiffSummary, Change)),
    "events": Output("A line of bulk watch --events", (ItemEvent, ActionEvent, AgainEvent, EndEvent)),
    "errors": Output("What any command prints with --json where it could not do its work", (ErrorsData,)),
    "log": Output("A line of the log with --log-format json", (LogLine,)),
    "operation": Output("bulk operations NAME --json", (OperationDocumentation,)),
    "operations": Output("bulk operations --json", (list[Summary],)),
    "plan": Output("bulk plan --json", (Plan,)),
    "progress": Output("A line of --progress json", (RunStatus, NoteLine)),
    "rate-limit": Output("bulk rate-limit --json", (list[BucketLeft],)),
    "rehearsal": Output("bulk rehearse --json", (Rehearsed,)),
    "report": Output("report.json, bulk report --json, bulk run --json, bulk retry --json", (Report,)),
    "result": Output("A line of results.jsonl and of bulk report --format jsonl", (ResultLine,)),
    "runs": Output("bulk runs --json", (list[ListedRun],)),
    "set": Output("bulk set --json", (InForce,)),
    "status": Output("bulk status --json", (StatusData,)),
    "stored-status": Output("bulk status --store --json", (StoredStatus,)),
    "verify": Output("bulk verify --json", (Verification, Verified)),
}


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of one output.

    Raises:
        LookupError: a field of it has no description.
    """
    output, made = OUTPUTS[name], _Definitions()
    kinds = [made.of(types.type_info(kind), "") for kind in output.kinds]
    if name == "progress":
        status = made.definitions["RunStatus"]
        tag = {"const": "status", "description": "tells this line from a note"}
        status["properties"] = {"type": tag, **status["properties"]}
        status["required"] = ["type", *status["required"]]
    head = {"$schema": DIALECT, "$id": f"{name}.schema.json", "title": output.title}
    return {**head, **(kinds[0] if len(kinds) == 1 else {"oneOf": kinds}), "$defs": made.definitions}


def as_text(name: str) -> str:
    """Return the text of the file in `docs/schemas/`."""
    return msgspec.json.format(msgspec.json.encode(schema(name)), indent=2).decode() + "\n"


class _Definitions:
    """Schemas of the structs that an output is made of, by name."""

    def __init__(self) -> None:
        self.definitions: dict[str, Any] = {}

    def of(self, kind: types.Type, field: str) -> dict[str, Any]:  # noqa: C901 - one line for each kind of type
        """Return the schema of a type; `field` is the name of the member that has it."""
        match kind:
            case types.StructType():
                return self._struct(kind.cls)
            case types.IntType() | types.FloatType() if is_moment(field):
                return {"type": "string", "pattern": MOMENT}
            case types.DateTimeType():
                return {"type": "string", "pattern": MOMENT}
            case types.IntType():
                return {"type": "integer"}
            case types.FloatType():
                return {"type": "number"}
            case types.StrType():
                return {"type": "string"}
            case types.BoolType():
                return {"type": "boolean"}
            case types.NoneType():
                return {"type": "null"}
            case types.EnumType():
                return {"enum": [each.value for each in kind.cls]}
            case types.LiteralType():
                return {"enum": list(kind.values)}
            case types.ListType() | types.VarTupleType():
                return {"type": "array", "items": self.of(kind.item_type, "")}
            case types.DictType():
                return {"type": "object", "additionalProperties": self.of(kind.value_type, "")}
            case types.UnionType():
                inner = [self.of(each, field) for each in kind.types if not _is_unset(each)]
                return inner[0] if len(inner) == 1 else {"anyOf": inner}
            case types.AnyType():
                return {}
        raise LookupError(f"{field}: no JSON Schema is known for {kind}")

    def _struct(self, cls: type) -> dict[str, Any]:
        reference = {"$ref": f"#/$defs/{cls.__name__}"}
        if cls.__name__ in self.definitions:
            return reference
        self.definitions[cls.__name__] = {}
        info = types.type_info(cls)
        assert isinstance(info, types.StructType), "the caller saw one"
        said = {name: text for base in reversed(_bases(cls)) for name, text in _descriptions(base).items()}
        properties, required = {}, []
        unset = {each.encode_name for each in msgspec.structs.fields(cls) if each.default is msgspec.UNSET}
        for member in info.fields:
            name = member.encode_name
            description = MORE.get(f"{cls.__name__}.{name}") or said.get(name) or COMMON.get(name)
            if description is not None and is_moment(name):
                description = re.sub(r"^UTC epoch seconds[^;]*|\s*\(UTC epoch seconds[^)]*\)", "", description).lstrip(
                    "; "
                )
            if not description:
                raise LookupError(f"{cls.__name__}.{name} has no description")
            properties[name] = {**self.of(member.type, name), "description": description}
            if name not in unset:
                required.append(name)
        self.definitions[cls.__name__] = {
            "type": "object",
            "description": " ".join((cls.__doc__ or "").partition("\n\n")[0].split()),
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }
        return reference


def _is_unset(kind: types.Type) -> bool:
    return isinstance(kind, types.CustomType) and kind.cls is msgspec.UnsetType


def _bases(cls: type) -> list[type]:
    """Return a class and those of its bases that have fields: their descriptions of these hold for the class."""
    return [base for base in cls.__mro__ if isinstance(getattr(base, "__struct_fields__", None), tuple)]


def _descriptions(cls: type) -> dict[str, str]:
    """Return what the part `Attributes:` of a docstring says of each field; several may share a text, or a
    paragraph."""
    names = "|".join(map(re.escape, cls.__struct_fields__))  # type: ignore[attr-defined]
    text = (cls.__doc__ or "").partition("Attributes:")[2]
    found: dict[str, str] = {}
    heads = list(re.finditer(rf"(?:(?<=^)|(?<=\n)|(?<=; )|(?<=\. ))[ ]*((?:(?:{names}), )*(?:{names})): ", text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    for head, end in zip(heads, ends, strict=False):
        said = " ".join(text[head.end() : end].split()).rstrip(".; ")
        for name in head[1].split(", "):
            found[name] = said.replace("None", "null")
    return found


def main() -> None:
    """Write the files: `python -m bulk.cli.catalog.json_schemas FOLDER`."""
    folder = Path(sys.argv[1])
    for name in OUTPUTS:
        (folder / f"{name}.schema.json").write_text(as_text(name))


if __name__ == "__main__":
    main()
