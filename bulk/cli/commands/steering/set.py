"""`bulk set`: change limits of a run while it goes on."""

from pathlib import Path

import click

from bulk.cli import output
from bulk.cli.commands.cluster import stored, stored_steering
from bulk.cli.logs import Command
from bulk.cli.options import Assignment, RunDirectory, as_json
from bulk.control.settable import LIMITS, PRIORITY, SETTABLE
from bulk.errors import UsageError


@click.command("set", cls=Command)
@click.argument("run_dir", metavar="RUN", type=RunDirectory())
@click.argument(
    "changes", metavar="NAME=VALUE…", nargs=-1, required=True, type=Assignment("name=value", lambda: LIMITS)
)
@stored.in_store
@as_json
def set_(run_dir: Path, *, changes: tuple[str, ...], store: str | None, as_json: bool) -> int:
    """Change limits of RUN, and print all that are in force.

    concurrency (1 to what the run was started with), reserve (500 or 10%), failures (50, 5% or none), max_duration
    (90s, 2h or none), priority.JOB (higher goes first). All of them or none. A resume begins with the old ones again;
    of a run in a store they stay, and reserve and priority can't be set there.
    """
    import msgspec

    from bulk.cli.commands.steering import asking
    from bulk.control.protocol import InForce

    wanted = _parsed(changes)
    if store is None:
        found = asking.ask(run_dir, "set", wanted).in_force
    else:
        found = stored_steering.set_limits(str(run_dir), store, wanted)
    limits = msgspec.convert(found, InForce)
    if as_json:
        output.out_json(limits)
    else:
        rows = [(name, "none" if (value := getattr(limits, name)) is None else str(value)) for name in LIMITS]
        asked = {change.partition("=")[0].strip() for change in changes}
        for job, priority in limits.priority.items():
            if priority or f"{PRIORITY}{job}" in asked:
                rows.append((f"{PRIORITY}{job}", str(priority)))
        output.out_table(("limit", "in force"), rows)
    return 0


def _parsed(changes: tuple[str, ...]) -> dict[str, str]:
    from bulk.flaws import name_shown, unknown_name

    found: dict[str, str] = {}
    for change in changes:
        name, equals, value = change.partition("=")
        name = name.strip()
        if not name.startswith(PRIORITY):
            name = name.replace("-", "_")
        if not equals or not value:
            raise UsageError(f"{change!r}: write NAME=VALUE, the name being one of {', '.join(SETTABLE)}")
        if name not in LIMITS and not name.startswith(PRIORITY):
            raise UsageError(f"{name_shown(name)} can't be set: {unknown_name(name, SETTABLE, 'limit')}")
        if name in found:
            raise UsageError(f"{name} is given twice")
        found[name] = value
    return found
