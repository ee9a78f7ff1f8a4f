"""`bulk --version`: which version it is, which Python runs it, and whether the code of every request is compiled."""

from importlib.machinery import EXTENSION_SUFFIXES, PathFinder

import click

import bulk
from bulk.cli import output

ONE_OF_THEM = "bulk.urls"
"""One of the modules that are compiled, all of them or none: the list stands in pyproject.toml."""


def show(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    """Print the version and end the command; the callback of the option."""
    if not value or ctx.resilient_parsing:
        return
    import platform
    from importlib.metadata import version

    how = "compiled" if is_compiled() else "interpreted"
    python = f"{platform.python_implementation()} {platform.python_version()}"
    output.out(f"bulk {version('bulkops')} ({how}, {python})")
    ctx.exit()


def is_compiled() -> bool:
    """Return whether an extension module would be imported for `ONE_OF_THEM`; nothing is imported to find out."""
    found = PathFinder.find_spec(ONE_OF_THEM, bulk.__path__)
    return found is not None and (found.origin or "").endswith(tuple(EXTENSION_SUFFIXES))
