"""What `bulk operations` shows, and that it is true of every operation that ships."""

import re
from typing import Annotated, ClassVar, Literal

import msgspec
import pytest
from msgspec import Meta
from ruamel.yaml import YAML

from bulk import operation
from bulk.capabilities import DecidesState, HoldsSecrets
from bulk.cli.catalog import documentation
from bulk.operation import Item, UnknownOperation
from bulk_jobs.contents import DeleteContents, GetContents, PutContents
from bulk_jobs.organizations import CreateOrganization, RenameOrganization
from bulk_jobs.rate_limit import GetRateLimit
from bulk_jobs.readmes import GetReadme
from bulk_jobs.snapshots import CreateSnapshot

SHIPPED = (
    CreateOrganization(),
    CreateSnapshot(),
    DeleteContents(),
    GetContents(),
    GetRateLimit(),
    GetReadme(),
    PutContents(),
    RenameOrganization(),
)
EACH = pytest.mark.parametrize("shipped", SHIPPED, ids=lambda shipped: shipped.name)


class Config(msgspec.Struct, frozen=True):
    """Where it goes.

    Attributes:
        url: the address,
            over two lines.
    """

    url: str
    secret: str | None = None


class HookItem(Item, frozen=True, kw_only=True):
    """An item of an operation that somebody else wrote, with little documentation.

    Attributes:
        org: whose it is.
    """

    org: str
    config: Config
    events: Annotated[list[Annotated[str, Meta(min_length=1)]], Meta(min_length=1, max_length=10)] = msgspec.field(
        default_factory=list
    )
    size: Annotated[int, Meta(ge=1, le=5)] | None = None
    share: Annotated[float, Meta(ge=0.5)] = 0.5
    target: int | str | None = None
    kind: Literal["a", "b"] = "a"
    entries: list[Config] | None = None
    named: dict[str, Config] | None = None


class CreateHook(HoldsSecrets[HookItem]):
    """Create a hook."""

    name = "hook.create"
    Item = HookItem
    is_read = False
    least_requests = 1
    most_requests = 3
    secret_fields = frozenset({"config.secret"})
    settled_by = "The hooks are listed."
    example: ClassVar = {"org": "acme", "config": {"url": "https://x"}}

    def lanes(self, item: HookItem) -> tuple[str, ...]:
        return (item.org,)


@EACH
def test_every_operation_says_everything(shipped):
    """What it does, costs, writes, returns, how a lost answer is settled, and the source; no part is empty."""
    told = documentation.documentation(shipped)
    for part in (told.summary, told.requests, told.category, told.lane, told.settled_by, told.result, told.source):
        assert part
    assert told.summary.endswith(".")
    assert told.least_requests <= told.most_requests
    assert (told.lane == "none") == shipped.is_read == (not told.lane_of_example)


@EACH
def test_every_field_is_described(shipped):
    """Each field, also the inner ones, has a type and says what it is; the user's own id comes last."""
    fields = documentation.documentation(shipped).fields
    assert all(field.type and field.type != "any" for field in fields)
    assert [field.name for field in fields if not field.description] == []
    assert fields[-1].name == "id"
    assert len({field.name for field in fields}) == len(fields)


@EACH
def test_every_example_can_be_sent(shipped):
    """The example is an item without a flaw, and the manifest around it is YAML that holds exactly this item."""
    item = msgspec.convert(shipped.example, shipped.Item, strict=True)
    assert not list(shipped.check(item))
    told = documentation.documentation(shipped)
    manifest = YAML(typ="safe").load(documentation.example_manifest(told))
    assert manifest["version"] == 1
    assert manifest["jobs"]["example"] == {"operation": shipped.name, "items": [dict(shipped.example)]}


@EACH
def test_every_schema_is_whole(shipped):
    """Each reference leads to a definition, nothing unknown is allowed, and the example fits."""
    schema = documentation.schema(shipped)
    text = msgspec.json.encode(schema).decode()
    for name in re.findall(r'"\$ref":"#/\$defs/(\w+)"', text):
        assert name in schema["$defs"]
    top = schema["$defs"][shipped.Item.__name__]
    assert top["additionalProperties"] is False
    assert set(shipped.example) <= set(top["properties"])
    assert set(top.get("required", ())) <= set(shipped.example)
    assert schema["title"] == shipped.name


@EACH
def test_the_text_names_every_field(shipped):
    """Nothing that the data has is missing in the text, and no line but those of the example is longer than 100."""
    told = documentation.documentation(shipped)
    text = documentation.as_text(told)
    for field in told.fields:
        assert f"  {field.name}  (" in text
    head = text.partition("Example: a manifest")[0]
    assert max(map(len, head.splitlines())) <= documentation.WIDTH
    assert documentation.example_manifest(told).splitlines()[-1].strip() in text


def test_limits_of_the_specification_are_told():
    """The lengths and counts that are checked are the ones that are shown."""
    fields = {field.name: field for field in documentation.documentation(CreateSnapshot()).fields}
    assert fields["sha"].limits == ("1 to 40 characters",)
    assert fields["metadata"].limits == ("at most 8 keys",)
    assert fields["manifests.*.resolved.*.metadata"].limits == ("at most 8 keys",)
    assert fields["manifests.*.resolved.*.relationship"].type == "direct | indirect"
    assert fields["version"].is_required
    assert not fields["manifests"].is_required


def test_irreversible_operations_say_so():
    """The one thing that a reader must not overlook."""
    assert "can't be undone" in documentation.as_text(documentation.documentation(CreateOrganization()))
    assert "can't be undone" not in documentation.as_text(documentation.documentation(RenameOrganization()))
    assert "changes nothing" in documentation.as_text(documentation.documentation(GetReadme()))


def test_an_operation_of_somebody_else():
    """Without labelled lines and annotations all that the class knows is still told."""
    told = documentation.documentation(CreateHook())
    assert told.requests == "1 to 3"
    assert told.lane_of_example == ("acme",)
    assert told.lane == "as the example's"
    fields = {field.name: field for field in told.fields}
    assert fields["org"].description == "whose it is"
    assert fields["config.url"].description == "the address, over two lines"
    assert fields["config.secret"].limits == (documentation.SECRET,)
    assert fields["events"].type == "array of string"
    assert fields["events"].limits == ("1 to 10 entries",)
    assert fields["size"].limits == ("1 to 5",)
    assert fields["share"].limits == ("at least 0.5",)
    assert fields["share"].default == 0.5
    assert set(fields["target"].type.split(" | ")) == {"integer", "string"}
    assert fields["kind"].type == "a | b"
    assert "entries[].url" in fields
    assert "named.*.url" in fields
    text = documentation.as_text(told)
    assert "  kind  (a | b, default a)" in text
    assert "result" not in text.partition("Fields of an item")[0]


def test_an_example_that_is_none_does_no_harm():
    """Documentation is shown also of an operation whose example is wrong or missing."""

    class Broken(CreateHook):
        """Create a broken hook."""

        example: ClassVar = {"org": 3}

    class Without(CreateHook):
        """Create a hook without an example."""

        example: ClassVar = {}

    class Harmless(Without):
        """Create a hook that writes nothing that others write."""

        lanes = operation.Operation.lanes

    for odd in (Broken(), Without()):
        assert documentation.documentation(odd).lane == "not described", "it has one"
    assert documentation.documentation(Harmless()).lane == "none"
    told = documentation.documentation(Without())
    assert "Example" not in documentation.as_text(told), "an item without its required fields is no example"
    assert "examples" not in told.schema
    assert "Example" in documentation.as_text(documentation.documentation(GetRateLimit())), "no field is required"


def test_every_shipped_operation_is_installed():
    """The list has all of them, by name, and each can be described by its name."""
    listed = [row.name for row in documentation.summaries()]
    assert listed == sorted(listed)
    assert {shipped.name for shipped in SHIPPED} <= set(listed)
    assert documentation.describe("contents.put") == documentation.documentation(operation.find("contents.put"))


def test_an_unknown_name_is_an_error_that_helps():
    """The message names what was probably meant."""
    with pytest.raises(UnknownOperation, match=r"did you mean .*contents\.put"):
        documentation.describe("content.put")


def test_the_summary_is_one_row():
    """Name, requests, category, what it does."""
    assert documentation.summary(PutContents()).cells() == (
        "contents.put",
        "1 to 2",
        "core",
        "Make one file of a repository hold the given content.",
    )
    assert documentation.summary(CreateSnapshot()).cells()[1:3] == ("1", "dependency_snapshots")


def test_it_can_be_printed_as_json():
    """The data goes through JSON as it is."""
    for shipped in SHIPPED:
        told = documentation.documentation(shipped)
        decoded = msgspec.json.decode(msgspec.json.encode(told))
        assert decoded["name"] == shipped.name
        assert len(decoded["fields"]) == len(told.fields)


def test_what_is_refused_to_protect_people_is_told():
    """An operation whose items can contradict each other says so, and names the field that insists, where one does."""
    told = {each.name: documentation.documentation(each).refused for each in map(operation.find, operation.names())}
    contradicting = {name for name in told if isinstance(operation.find(name), DecidesState)}
    insisting = {
        name: [
            field
            for field in operation.find(name).Item.__struct_fields__
            if field in ("drop_secret", "allow_insecure_ssl", "allow_unknown_events")
        ]
        for name in told
    }
    assert {name for name in told if told[name]} == contradicting | {name for name in told if insisting[name]}
    assert all(f"`{field}`" in told[name] for name in told for field in insisting[name])
    overwriting = {name for name in contradicting if not name.startswith("organization.")}
    assert {name for name in contradicting if "`allow_overwrites`" in told[name]} == overwriting
    text = documentation.as_text(documentation.describe("snapshot.create"))
    assert "  refused      one that was scanned before an earlier item" in text
