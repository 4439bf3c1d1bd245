# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd completion``: what a shell needs to complete the words of ``osd``."""

from __future__ import annotations

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    get_completion_class,
)

from pyosd.cli.frame.verb import LocalVerb

__all__ = ["BashWords", "completion"]


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


class BashWords(BashComplete):
    """Completes osd:/PATH in bash, which ends words at colons: it gives the parts osd, : and /PATH.

    Joins the parts, and gives bash the words without what it has of them already.
    Behind a directory there is no space: more of the path follows.
    """

    given = ""
    source_template = BashComplete.source_template.replace(
        "COMPREPLY+=($value)",
        "COMPREPLY+=($value)\n            [[ $value == */ ]] && compopt -o nospace",
    )

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the incomplete one, and that one."""
        args, last = super().get_completion_args()
        joined = (
            "\0".join([*args, last]).replace("\0osd\0:", "\0osd:").replace("\0osd:\0/", "\0osd:/")
        )
        *args, incomplete = joined.split("\0")
        if incomplete.startswith("osd:") and not last.startswith("osd:"):
            self.given = "osd:"
        return args, incomplete

    def format_completion(self, item: CompletionItem) -> str:
        """A line for the script of the shell."""
        item.value = item.value.removeprefix(self.given)
        return super().format_completion(item)
