"""`bulk completion`: what makes a shell complete commands."""

import click
from click.shell_completion import get_completion_class

from bulk.cli import output
from bulk.cli.logs import Command
from bulk.errors import UsageError

SHELLS = ("bash", "zsh", "fish")


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> int:
    """Print what makes a shell complete commands.

    Commands, options, formats, operations and run directories are completed.

    \b
    bash: eval "$(bulk completion bash)"   in ~/.bashrc
    zsh:  eval "$(bulk completion zsh)"    in ~/.zshrc
    fish: bulk completion fish | source    in ~/.config/fish/config.fish
    """
    found = get_completion_class(shell)
    if found is None:
        raise UsageError(f"no completion for {shell}: expected {', '.join(SHELLS)}")
    commands = click.get_current_context().find_root().command
    output.out(found(commands, {}, "bulk", "_BULK_COMPLETE").source())
    return 0
