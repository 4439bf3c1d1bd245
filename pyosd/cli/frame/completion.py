# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd completion``: what a shell needs to complete the words of ``osd``."""

from __future__ import annotations

import click
from click.shell_completion import add_completion_class, get_completion_class

from pyosd.cli.frame.bash_words import BashWords
from pyosd.cli.frame.verb import LocalVerb

__all__ = ["completion"]


@click.command(cls=LocalVerb)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    For bash: source <(osd completion bash)
    """
    add_completion_class(BashWords, "bash")
    kind = get_completion_class(shell)
    assert kind is not None
    root = ctx.find_root().command
    # `source` would have bash ask itself for its version; the text is the same for every version.
    instance = kind(root, {}, "osd", "_OSD_COMPLETE")
    click.echo(instance.source_template % instance.source_vars())
