"""`replispec completion`: the script that lets a shell complete commands and options."""

from __future__ import annotations

from typing import Final

import click

SHELLS: Final = ("bash", "zsh", "fish")
VARIABLE: Final = "_REPLISPEC_COMPLETE"
EXAMPLES = """\b
Examples:
  replispec completion bash > ~/.local/share/bash-completion/completions/replispec
  replispec completion zsh > ~/.zfunc/_replispec
  replispec completion fish > ~/.config/fish/completions/replispec.fish
"""


@click.command("completion", epilog=EXAMPLES, short_help="The completion script of a shell.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that lets a shell complete commands and options."""
    from click.shell_completion import get_completion_class

    root = context.find_root()
    name = root.info_name or "replispec"
    made = get_completion_class(shell)
    assert made is not None
    script = made(root.command, {}, name, VARIABLE)
    click.echo(script.source_template % script.source_vars())
