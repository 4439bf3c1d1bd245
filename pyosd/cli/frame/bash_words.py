# SPDX-License-Identifier: GPL-2.0-or-later
"""Completion of osd:/PATH in bash, which ends words at colons: it gives the parts osd, : and /PATH."""

from __future__ import annotations

from click.shell_completion import BashComplete, CompletionItem

__all__ = ["BashWords"]


class BashWords(BashComplete):
    """Joins the parts, and gives bash the words without what it has of them already.

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
