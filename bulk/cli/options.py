"""Options that several commands share, and the kinds of argument that a shell can complete.

Their texts go to the stage that knows what they mean (`bulk.manifest.reading.Overrides`); nothing is interpreted here.
"""

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from bulk.errors import UsageError
from bulk.storage.names import is_text

if TYPE_CHECKING:
    from bulk.manifest.reading import Overrides


F = TypeVar("F", bound=Callable[..., Any])

VENDORS = ("service", "github")
DISPLAYS = ("auto", "rich", "plain", "json", "none")
RUNS, AUDITS = Path("runs"), Path("audits")
"""Where run directories are made when none is named."""


ANY_PATH = click.Path(path_type=Path, readable=False)
"""A path whose command says itself why it can't be read, with the exit code that belongs to that and the way out."""


class RunDirectory(click.Path):
    """A run directory; those below `runs/` and the current folder, and the nights of audits, complete.

    Args:
        or_history: whether the history of an audit may be named, too.
    """

    def __init__(self, *, or_history: bool = False) -> None:
        super().__init__(path_type=Path, readable=False)
        self._or_history = or_history

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the folders that hold a ledger, newest first; any folder where none fits."""
        folders = (RUNS, Path(), *AUDITS.glob("*/runs"))
        found = [ledger.parent for folder in folders for ledger in folder.glob("*/ledger.db")]
        found += (history.parent for history in AUDITS.glob("*/audit.json") if self._or_history)
        fitting = [run for run in found if str(run).startswith(incomplete) and is_text(str(run))]
        fitting.sort(key=lambda run: run.stat().st_mtime, reverse=True)
        return [CompletionItem(str(run)) for run in fitting] or [CompletionItem(incomplete, type="dir")]


class OperationName(click.types.StringParamType):
    """The name of an installed operation."""

    name = "operation"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the installed operations."""
        from bulk import operation

        return [CompletionItem(name) for name in operation.names() if name.startswith(incomplete)]


class Assignment(click.types.StringParamType):
    """`NAME=VALUE` with one of a few names, which complete; the code behind the option checks the value."""

    def __init__(self, name: str, names: Callable[[], tuple[str, ...]]) -> None:
        self.name, self._names = name, names

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the names, each with its equals sign."""
        return [CompletionItem(f"{name}=") for name in self._names() if name.startswith(incomplete)]


class JobName(click.types.StringParamType):
    """The name of a job of the manifest on the command line."""

    name = "job"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the jobs of that manifest."""
        return [CompletionItem(name) for name in _names_in(ctx, "jobs") if name.startswith(incomplete)]


class Variable(click.types.StringParamType):
    """`NAME=VALUE` of a variable of the manifest on the command line."""

    name = "variable"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the variables of that manifest, each with its equals sign."""
        return [CompletionItem(f"{name}=") for name in _names_in(ctx, "vars") if name.startswith(incomplete)]


def _names_in(ctx: click.Context, section: str) -> list[str]:
    """Return the names in a section of the manifest; none where the manifest can't be read."""
    from bulk.items.lines import SourceFlaw
    from bulk.items.yaml_text import read_document

    # where an option lacks its value, as the option that is being completed, click leaves the words in `ctx.args`
    path = ctx.params.get("manifest") or next(iter(ctx.args), None)
    try:
        with open(path or "", "rb") as file:
            root, _ = read_document(file.read)
    except (OSError, SourceFlaw):
        return []
    node = root.value.get(section) if root is not None and isinstance(root.value, dict) else None
    return list(node.value) if node is not None and isinstance(node.value, dict) else []


PLATFORM = (
    click.option("--base-url", metavar="URL", help="The platform: http(s)://HOST/api/v3. Also BULK_BASE_URL."),
    click.option("--vendor", type=click.Choice(VENDORS), help="Name inside headers and media types. Also BULK_VENDOR."),
    click.option(
        "--credential",
        "credentials",
        metavar="[NAME=]SOURCE",
        multiple=True,
        help="Where a token is: env:NAME, file:PATH or command:PROGRAM. Repeatable. Default: env:BULK_TOKEN.",
    ),
)
LIMITS = (
    click.option("--concurrency", metavar="N", help="Most requests in flight."),
    click.option("--reserve", metavar="N|SHARE", help="Part of every bucket left for other users: 500 or 10%."),
    click.option("--failures", metavar="N|SHARE", help="Stop when more items fail than this: 50 or 5%."),
    click.option(
        "--max-duration", metavar="DURATION", help="Stop after this time: 90s, 15m, 2h. A resume has its own."
    ),
    click.option("--limit", metavar="N", help="Only the first N items of each job."),
)


def _one_cache(context: click.Context, option: click.Parameter, value: Any) -> Any:
    """Return `value`; refuse a cache beside none."""
    given = {**context.params, str(option.name): value}
    if given.get("cache") is not None and given.get("no_cache"):
        raise click.UsageError("--cache names a cache, and --no-cache wants none: leave one of them out", context)
    return value


CACHE = (
    click.option(
        "--cache",
        metavar="DIR",
        type=ANY_PATH,
        callback=_one_cache,
        help="Where reads are remembered.",
    ),
    click.option("--no-cache", is_flag=True, callback=_one_cache, help="Remember no reads."),
)
CREDENTIALS_FILE = click.option(
    "--credentials",
    "credentials_file",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="A YAML file with the part `credentials`.",
)
MANIFEST = (
    click.option(
        "--var",
        "variables",
        metavar="NAME=VALUE",
        type=Variable(),
        multiple=True,
        help="Value of ${NAME} in the manifest. Repeatable.",
    ),
    CREDENTIALS_FILE,
    click.option("--job", "jobs", metavar="NAME", type=JobName(), multiple=True, help="Only this job. Repeatable."),
    click.option("--with-needs", is_flag=True, help="With --job: also the jobs that those need."),
)

ACCEPT_WAVE = click.option(
    "--accept-wave",
    "accepted",
    metavar="N",
    type=click.IntRange(min=1),
    multiple=True,
    help="Go on with this wave although it is over a budget. Repeatable.",
)

PLATFORM_AND_LIMITS = (
    "base_url",
    "vendor",
    "credentials",
    "concurrency",
    "reserve",
    "failures",
    "max_duration",
    "limit",
)
"""Names of the parameters of `PLATFORM` and `LIMITS`."""

OF_ITS_PROCESS = ("cache", "no_cache", "exact", "metrics")
"""Names of the parameters that matter in the process alone that does a run."""

as_json = click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")


def first_given(*names: str) -> str | None:
    """Return the first of these options (names of parameters) that stands on the command line; None where none does."""
    context = click.get_current_context()
    options = {option.name: option for option in context.command.params}
    given = (name for name in names if context.get_parameter_source(name) is ParameterSource.COMMANDLINE)
    return next((max(options[name].opts, key=len) for name in given), None)


def refuse_without(other: str, *names: str) -> None:
    """Refuse options of the present command that do something only beside another one, which is not given.

    Args:
        names: names of their parameters.

    Raises:
        UsageError: one of them is given; the message says which.
    """
    option = first_given(*names)
    if option is not None:
        raise UsageError(f"{option} goes with {other}: leave it out, or add {other}")


def refuse_for_workers(other: str, *names: str) -> None:
    """Refuse options of the present command that do not reach the workers which do the run.

    Args:
        other: option that leaves the run to workers. names: names of the parameters.

    Raises:
        UsageError: one of them is given; the message says which.
    """
    option = first_given(*names)
    if option is not None:
        raise UsageError(f"{option} does not reach the workers of {other}: leave one of them out")


def refuse_empty(command: click.Command, context: click.Context, arguments: Sequence[str]) -> None:
    """Refuse options and arguments whose value is an empty text, as of a shell's variable that is not set.

    An empty text is not a path, address or name; it would pass for the default, or for the current folder.

    Raises:
        UsageError: a value is empty; the message says which.
    """
    given, _, parameters = command.make_parser(context).parse_args(list(arguments))
    for parameter in parameters:
        value = given.get(parameter.name or "")
        if value == "" or (isinstance(value, Sequence) and "" in value and not isinstance(value, str)):
            is_option = isinstance(parameter, click.Option)
            name = max(parameter.opts, key=len) if is_option else parameter.make_metavar(context).strip("[].…")
            way_out = "write a value" + (", or leave it out" if is_option and not parameter.required else "")
            raise UsageError(f"{name} is given an empty text: {way_out}")


def overriding(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Give a command `options`, which reach it as one argument, `overrides: Overrides`."""

    def decorate(command: F) -> F:
        @functools.wraps(command)
        def collecting(**given: Any) -> Any:
            return command(overrides=_overrides(given), **given)

        decorated: Any = collecting
        for option in reversed(options):
            decorated = option(decorated)
        return decorated  # type: ignore[no-any-return]

    return decorate


def _overrides(given: dict[str, Any]) -> "Overrides":
    from bulk.manifest.reading import Overrides

    fields = ["base_url", "vendor", "concurrency", "reserve", "failures", "max_duration", "limit", "jobs", "with_needs"]
    fields += ("credentials_file", "exact")
    texts = {name: given.pop(name) for name in fields if name in given}
    sources = _credentials(given.pop("credentials", ()))
    return Overrides(
        credentials=sources,
        named=frozenset(sources),
        variables=_variables(given.pop("variables", ())),
        **texts,
    )


def _variables(texts: tuple[str, ...]) -> dict[str, str]:
    """Return the values of `NAME=VALUE` by name. No message holds the text itself: it may be a token."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isprintable() or not name:
            raise UsageError("--var: write NAME=VALUE, as in --var team=platform")
        if name in found:
            raise UsageError(f"--var: the variable {name!r} is given twice")
        found[name] = value
    return found


def _credentials(texts: tuple[str, ...]) -> dict[str, str]:
    """Return the sources of `[NAME=]SOURCE` by name. No message holds the text itself: it may be a token."""
    sources: dict[str, str] = {}
    for text in texts:
        name, equals, source = text.partition("=")
        if not equals or ":" in name:  # an equals sign may stand in a path or an argument of the source
            name, source = "default", text
        if not name or not source.partition(":")[1]:
            raise UsageError(
                "--credential: write [NAME=]SOURCE, the source being env:NAME, file:PATH or command:PROGRAM"
            )
        if name in sources:
            raise UsageError(f"--credential: the credential {name!r} is given twice")
        sources[name] = source
    return sources


def try_out(option: str, path: Path) -> None:
    """Try whether a file can be written in the place that `option` names; what is there stays as it is.

    Raises:
        UsageError: it can't: the message says why, and the way out.
    """
    from bulk.storage.private_files import try_replacing

    if path.is_dir():
        raise UsageError(f"{option} {path}: is a folder; name a file")
    if path.exists() and not path.is_file():
        raise UsageError(f"{option} {path}: is not a regular file; name another one")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{option} {path}: {path.parent} is not a folder; make it, or name another file")
    try:
        try_replacing(path)
    except OSError as error:
        raise UsageError(f"{option} {path}: can't be written: {error.strerror}; name another file") from None
