"""`perdure demo`: the command."""

from __future__ import annotations

import click


@click.command()
def demo() -> None:
    """Show a workflow survive a kill."""
