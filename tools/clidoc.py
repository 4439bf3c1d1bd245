# SPDX-License-Identifier: GPL-2.0-or-later
"""Print docs/cli.md, made from the help texts and from the table of exit codes.

A test compares the file with this output. ``python -m tools.clidoc >docs/cli.md`` updates it.
"""

from __future__ import annotations

from collections.abc import Iterator

import click

from iosd_host.cli.verb import AdminVerb, admin_options
from pyosd.cli import main
from pyosd.cli.frame.codes import MEANING
from pyosd.cli.frame.verb import common_options

__all__ = ["manual"]

WIDTH = 88
INTRODUCTION = """\
# The program `osd`

Data goes to stdout, messages go to stderr. An ADDRESS is `root`, PID or PID/OID, decimal or 0x, or
a [path](names.md#paths). `osd` finds out the type of the object itself. A job's id is the PID/OID
of its surrogate object. `-o json` prints one JSON object with a `"schema"`. Later versions only add
fields to it. `-` as a file means stdin.

With `-o json`, `-o jsonl` or `--json` an error is one JSON object on stderr, on one line, with the
same exit code as the text:

```json
{"schema": "iosd.error/1",
 "error": {"code": 2, "name": "USAGE", "message": "No such option '--foo'.", "hint": "see: osd ps --help"}}
```

`hint` is absent if there is none. `name` is the name of an exit code below.

There are short words for longer ones: `osd run` is `osd exec --wait`, `osd submit` is `osd exec
--no-wait`, `osd ps` is `osd job ls`. `osd wait`, `osd logs`, `osd result` and `osd kill` are verbs
of `osd job`.

On a terminal, tables and sentences are wrapped at its width (`COLUMNS` names another). On a pipe
nothing is cut or wrapped, so a record stays on one line.

The option `--target` names the target, else `IOSD_TARGET`, else the profile in
`~/.config/iosd/config.toml`. This holds for all verbs, also for those of the resource manager:

```toml
[profile.default]
target = "iscsi://127.0.0.1:3260/iqn.2026-11.iosd:target/1"
targets = "~/.config/iosd/targets.toml"  # names several targets: osd cluster, osd ps --all
partition = 0x10000            # a lone number names a job here
chap-user = "me"               # the secret: IOSD_CHAP_SECRET, or a file
chap-secret-file = "~/.config/iosd/secret"
chap-target-user = "disk"      # the target must prove its name: IOSD_CHAP_TARGET_SECRET, or a file
chap-target-secret-file = "~/.config/iosd/target-secret"
secmgr = "https://secmgr.example:8471"  # issues credentials; or a file of them:
secmgr-token-file = "~/.config/iosd/token"
secmgr-ca = "~/.config/iosd/secmgr-ca.pem"
credentials = "~/.config/iosd/credentials"
```

Files with secrets must be readable by their owner only (`chmod 600`). `osd` refuses a URL with a
secret on the command line, because all users of the machine can read command lines.
"""


def leaves(group: click.Group, context: click.Context) -> Iterator[click.Context]:
    """Every verb below a group, with the context that knows its full name."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        inner = click.Context(command, parent=context, info_name=name)
        inner.terminal_width = inner.max_content_width = WIDTH
        if isinstance(command, click.Group):
            yield from leaves(command, inner)
        else:
            yield inner


def without_common(context: click.Context) -> str:
    """A verb's help without the flags that every verb has."""
    command = context.command
    options = admin_options() if isinstance(command, AdminVerb) else common_options()
    common = {option.name for option in options}
    command.params = [each for each in command.params if each.name not in common]
    return command.get_help(context)


def options_block(options: list[click.Parameter]) -> str:
    """Flags as --help shows them."""
    command = click.Command("osd", params=options, add_help_option=False)
    formatter = click.HelpFormatter(width=WIDTH)
    command.format_options(click.Context(command), formatter)
    return f"```\n{formatter.getvalue().strip()}\n```\n"


def manual() -> str:
    """The whole text."""
    root = click.Context(main, info_name="osd")
    root.terminal_width = root.max_content_width = WIDTH
    parts = [
        INTRODUCTION,
        *("## Flags of every verb\n", options_block(common_options())),
        "Verbs of administrators, which ask the resource manager, have these instead:\n",
        options_block(admin_options()),
    ]
    for context in leaves(main, root):
        parts.append(f"## `{context.command_path}`\n")
        parts.append(f"```\n{without_common(context).strip()}\n```\n")
    parts.append("## Exit codes\n")
    parts.append("| code | name | meaning |\n| --- | --- | --- |")
    parts += [f"| {code.value} | {code.name} | {meaning} |" for code, meaning in MEANING.items()]
    parts.append(
        "\n`osd exec --exit-code=script` passes the script's own code through instead, 128 + n for "
        "signal n."
    )
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    print(manual(), end="")
