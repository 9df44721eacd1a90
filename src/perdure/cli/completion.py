"""`perdure completion`: the script by which a shell completes commands, options, runs."""

from __future__ import annotations

import click

from perdure.cli.options import json_option
from perdure.cli.output import print_json
from perdure.cli.say import say

SHELLS = ("bash", "zsh", "fish")


@click.command(short_help="Print the script by which a shell completes.")
@click.argument("shell", type=click.Choice(SHELLS))
@json_option
def completion(shell: str, as_json: bool) -> None:
    """Print the script by which SHELL completes perdure's commands, and runs in the store.

    bash: `eval "$(perdure completion bash)"` in ~/.bashrc

    zsh: `eval "$(perdure completion zsh)"` in ~/.zshrc

    fish: `perdure completion fish | source` in ~/.config/fish/config.fish
    """
    from click.shell_completion import ShellComplete, get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    command = click.get_current_context().find_root().command
    # Not the class's own `source`: that of bash starts a bash to ask for its version.
    script = ShellComplete.source(kind(command, {}, "perdure", "_PERDURE_COMPLETE"))
    if as_json:
        print_json({"shell": shell, "script": script})
        return
    say(script)
