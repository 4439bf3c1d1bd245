# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes the manual pages.  ``python -m tools.manpages FOLDER`` writes man1/, man5/, man7/ and man8/ there.

osd(1) and one page for each noun and plain verb come from the commands themselves, as --help and
docs/cli.md do.  iosd-reasons(7) comes from pyosd/jobs/reasons.py, iosd(7) and iosd-security(7) from docs/.
The pages of sections 5 and 8 are in manpages_host.py.  Examples of the pages of section 1 are below,
in an order in which a test runs them all.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from pyosd.cli import main
from pyosd.cli.frame.codes import MEANING
from pyosd.cli.frame.verb import common_options
from pyosd.jobs.reasons import BLOCKS, REASONS
from tools.clidoc import INTRODUCTION
from tools.manpage import entry, manual_page, option_rows, plain, prose, usage
from tools.manpages_host import host_pages

__all__ = ["EXAMPLES", "pages", "write"]

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
SEE = "osd(1), iosd(7), iosd-reasons(7), iosd-security(7)"

# Page -> (command line, its effect).  $job is the last submitted job.
EXAMPLES: dict[str, list[tuple[str, str]]] = {
    "doctor": [("osd doctor", "Show what this host supports, layer by layer.")],
    "target": [
        ("osd target ping --wait 30s", "Wait until the target answers, at most 30 s."),
        ("osd target info", "Show the target's identity, methods and features."),
    ],
    "pool": [
        ("osd pool ls", "List the pools of sandboxes and their load."),
        ("osd pool show default", "Show one pool and its limits."),
        (
            "osd pool set default queue=500 --why 'a busy day'",
            "Change the length of the queue without a restart.",
        ),
        (
            "osd pool drain default --wait",
            "Accept no more jobs, and wait for the end of those that run.",
        ),
        ("osd pool resume default", "Accept jobs again."),
        ("osd pool reset default", "Return to the configured values."),
        ("osd pool usage --sort cpu", "List principals, those with the most processor time first."),
    ],
    "manager": [
        (
            "osd manager status",
            "List the targets it manages, and explain the present sizes of pools.",
        ),
        ("osd manager changes -n 5", "Show the last five changes, their authors and reasons."),
        ("osd manager keys ls", "List the keys that may send requests."),
    ],
    "config": [
        ("osd config check", "Check the configuration, and show what a reload would change."),
        ("osd config show --origin", "Show each value and its source."),
    ],
    "part": [
        ("osd part create 0x10000", "Create a partition with this id."),
        ("osd part ls", "List partitions."),
        ("osd part check 0x10000", "Have the target check the partition's structures."),
    ],
    "fn": [
        (
            "echo 'def main(args): return len(args)' >count.py; osd fn put count.py",
            "Store a function, and permit calls of it.",
        ),
        ("osd fn ls", "List the functions."),
        ("osd fn call count -- one two", "Call it, and print its result: 2."),
    ],
    "obj": [
        (
            "echo 'hello world' | osd obj write 0x10000",
            "Store standard input as a new object, and print its id.",
        ),
        ("osd obj read 0x10000/0x10000", "Print the object's data."),
        ("osd obj attr set 0x10000/0x10000 0x10000/1 --int 42", "Set an attribute."),
        ("osd obj find 0x10000 '0x10000/1 >= 40' -o id", "Find objects by their attributes."),
    ],
    "attach": [
        ("osd fn stock lines", "Store a function that comes with iosd."),
        (
            "osd attach 0x10000/0x10000 lines:contains=world",
            "Let readers of an object see its lines with this text.",
        ),
    ],
    "attached": [("osd attached 0x10000/0x10000", "List the functions of an object.")],
    "detach": [("osd detach 0x10000/0x10000", "Let readers see the stored bytes again.")],
    "hook": [
        ("osd fn stock worm", "Store a function that comes with iosd."),
        (
            "osd hook add 0x10000 worm:append=1 --check write --check remove",
            "Let nobody change or remove the objects of a partition once they have data.",
        ),
        (
            "osd hook add 0x10000 count --after 0x10000",
            "Keep the number of lines of each object in attribute 0x10000/3.",
        ),
        ("osd hook ls 0x10000", "List the hooks of the partition."),
        ("osd hook rm 0x10000 1", "Remove the first one."),
    ],
    "view": [
        (
            "osd view create 0x20000 --of 0x10000 lines:contains=world",
            "Make a partition that shows some lines of each object of another one.",
        ),
        ("osd view refresh 0x20000", "Show the objects that have come since."),
        ("osd view stats", "Show how many READs were answered from kept results."),
        ("osd view rm 0x20000 --yes", "Remove the view. The objects that it showed stay."),
    ],
    "why": [
        ("osd attach 0x10000/0x10000 lines:contains=world", "Attach a function."),
        ("osd obj read 0x10000/0x10000", "Read them."),
        ("osd why 0x10000/0x10000", "Explain how the data that were read came about."),
        ("osd detach 0x10000/0x10000", "Let readers see the stored bytes again."),
    ],
    "col": [
        ("osd col create 0x10000/0x20000", "Create a collection."),
        ("osd col add 0x10000/0x20000 0x10000/0x10000", "Add an object to it."),
        ("osd col members 0x10000/0x20000", "List its members."),
    ],
    "exec": [
        (
            "printf 'import osd\\nprint(osd.zone.data.read())' >script.py",
            "Write a script. The page osd-module.md of the documentation describes its functions.",
        ),
        (
            "osd exec script.py --zone 0x10000/0x10000 --wait",
            "Run it next to an object, and wait for its end.",
        ),
        (
            "job=$(osd exec script.py --zone 0x10000/0x10000 --no-wait --key once)",
            "Submit it and return. A second submission with the same key returns the same job.",
        ),
        (
            "osd exec script.py --zone 0x10000/0x10000 --local",
            "Run it on this machine. It reads the object over the network.",
        ),
    ],
    "job": [
        ('osd job wait "$job"', "Wait for the job's end. The exit code says how it ended."),
        ('osd job logs "$job"', "Print the job's output."),
        ('osd job why "$job"', "Explain why the job waits or how it ended."),
        ('osd job rm "$job"', "Remove the job's record, output and result."),
    ],
    "run": [
        (
            "osd run script.py --zone 0x10000/0x10000",
            "Run a script, wait for its end, and print its output.",
        )
    ],
    "submit": [
        (
            "job=$(osd submit script.py --zone 0x10000/0x10000)",
            "Submit a script, print the job's id, and return.",
        )
    ],
    "wait": [('osd wait "$job"', "Wait for the job's end. The exit code says how it ended.")],
    "logs": [('osd logs -f "$job"', "Print the output while the job runs.")],
    "result": [('osd result "$job"', "Print the value that the script passed to osd.result().")],
    "kill": [('osd kill "$job"', "End a running job.")],
    "ps": [("osd ps --state running --state queued", "List the jobs that run or wait in a queue.")],
    "secmgr": [
        (
            "osd secmgr init --data secmgr",
            "Set up a security manager, with a token for its administrator.",
        ),
        ("osd secmgr serve --data secmgr", "Run it. It prints its URL, for IOSD_SECMGR."),
        ("osd secmgr status", "List the targets whose keys it has."),
        ("osd secmgr audit show -n 5", "Show the last five entries of its audit log."),
        (
            "osd secmgr audit verify",
            "Check that the audit log is complete, and print its head. Keep the head elsewhere.",
        ),
    ],
    "key": [
        (
            "osd key import master.key",
            "Take over a target with the file that its first start made.",
        ),
        ("osd key ls", "List the target's keys."),
        ("osd key rotate", "Set new working keys. Credentials stay valid."),
        ("osd key freeze 0x10000", "Void all credentials for a partition."),
    ],
    "acl": [
        ("osd acl user add alice", "Add a user, who has no permissions yet."),
        (
            "osd acl token add alice --save alice.token",
            "Save a token with which alice logs in.",
        ),
        ("osd acl add alice READ,GET_ATTR 0x10000/0x10000", "Permit alice to read this object."),
        (
            "osd acl add alice READ,WRITE,EXEC '0x10000/*' --for 1h",
            "Permit more on all objects of the partition, for an hour.",
        ),
        (
            "osd acl check WRITE 0x10000/0x10001 --user alice",
            "Check whether alice may write, and by which rule.",
        ),
        ("osd acl revoke 0x10000/0x10000", "Revoke the credentials for this object."),
    ],
    "cred": [
        (
            "osd cred get READ 0x10000/0x10000 --save credentials",
            "Save a credential to a file, for another user.",
        ),
        ("osd cred show credentials", "Show the permissions and the end of each credential."),
        ("osd cred ls -n 5", "List the last five credentials that were issued."),
    ],
    "reasons": [("osd reasons 301", "Explain a job's reason number.")],
    "completion": [("osd completion bash >osd.bash", "Write the completion script for bash.")],
    "version": [("osd version", "Show the version.")],
    "mkdir": [("osd mkdir -p /0x10000/logs/2026", "Make a directory and those above it.")],
    "cp": [
        ("osd cp script.py osd:/0x10000/logs/a.txt", "Store a file under a path."),
        ("osd cp -r osd:/0x10000/logs logs", "Fetch a directory."),
        ("date | osd cp - osd:/0x10000/logs/now", "Store what another program prints."),
    ],
    "mount": [("osd mount /0x10000 /mnt", "Make the files of a partition a file system.")],
    "reductionist": [("osd reductionist", "Serve reductions of arrays at 127.0.0.1:8080.")],
    "sync": [("osd sync --delete logs osd:/0x10000/logs", "Make a directory equal to a folder.")],
    "ls": [("osd ls '/0x10000/logs/*.txt'", "List files that match a pattern.")],
    "stat": [("osd stat /0x10000/logs/a.txt", "Show a file's object, length and times.")],
    "find": [("osd find /0x10000 --name '*.txt' --newer 1h", "Find files that changed lately.")],
    "du": [("osd du -s /0x10000", "Sum up the lengths of all files.")],
    "cat": [("osd cat /0x10000/logs/a.txt", "Print a file.")],
    "mv": [("osd mv /0x10000/logs/a.txt /0x10000/logs/2026", "Move a file into a directory.")],
    "rm": [("osd rm -r -f /0x10000/logs", "Remove a directory and everything below it.")],
    "put": [
        (
            "osd put script.py 0x10000",
            "Store a file as an object. The object gets the file's name.",
        ),
        (
            "osd put . 0x10000 --if-exists skip",
            "Store the files below a folder, except those that exist already.",
        ),
    ],
    "get": [
        (
            "osd get 0x10000 copy --name '*.py'",
            "Fetch the objects with matching names into a folder.",
        ),
        (
            "osd get 0x10000 copy",
            "Fetch all objects of a partition. Files of the same name are replaced.",
        ),
    ],
    "cluster": [
        (
            'printf \'[targets]\\nhere = "%s"\\n\' "$IOSD_TARGET" >targets.toml',
            "Write the file that names the targets; here it names one.",
        ),
        (
            "osd cluster put script.py 0x10000 --copies 1 --targets targets.toml",
            "Store a file with one copy.",
        ),
        ("osd cluster ls 0x10000 --targets targets.toml", "List objects and their targets."),
        ("osd cluster check 0x10000 --targets targets.toml", "Compare the copies."),
        ("osd cluster repair 0x10000 --targets targets.toml --rate 50MiB", "Restore copies."),
        (
            "osd cluster rebalance 0x10000 --targets targets.toml",
            "Move copies to where they belong after the list of targets has changed.",
        ),
    ],
}
# Those of these nouns need a security manager: tests/secmgr runs them.
WITH_SECMGR = ("secmgr", "key", "acl", "cred")
ENVIRONMENT = (
    ("IOSD_TARGET", "URL of the target: iscsi://HOST[:PORT]/NAME/LUN"),
    ("IOSD_TARGETS", "File with the names and URLs of several targets, for osd cluster."),
    ("IOSD_PROFILE", "Profile of the configuration file."),
    ("IOSD_CHAP_USER, IOSD_CHAP_SECRET", "Name and secret for the login, if the target asks."),
    ("NO_COLOR", "Print without colours if this variable is set."),
)
REASONS_HEAD = """\
## DESCRIPTION

A job's reason is a number that says why it waits or why it ended. It is in attribute 4 of page
2000_0001h of its surrogate, in the sense data of an EXEC that waited, and in the output of osd.
**osd job why** explains the reason of a job. **osd reasons** prints what is here.
"""


def verbs(command: click.Command, context: click.Context) -> Iterator[click.Context]:
    """The command, or all verbs below it, each with the context that knows its full name."""
    if not isinstance(command, click.Group):
        yield context
        return
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        yield from verbs(inner, click.Context(inner, parent=context, info_name=name))


def options(command: click.Command, context: click.Context) -> Iterator[str]:
    """The options a command has beside those of every verb, with their words."""
    return option_rows(command, context, {option.name for option in common_options()})


def synopsis(context: click.Context) -> str:
    """How a verb is called."""
    return usage(context.command_path, " ".join(context.command.collect_usage_pieces(context)))


def examples(name: str) -> list[str]:
    """Section EXAMPLES, where the page has any."""
    body = [entry(line, plain(text)) for line, text in EXAMPLES.get(name, [])]
    return ["## EXAMPLES", *body] if body else []


def exit_status() -> list[str]:
    """Section EXIT STATUS, from the table of codes."""
    rows = [entry(str(code.value), plain(text)) for code, text in MEANING.items()]
    return ["## EXIT STATUS", *rows]


def command_page(name: str, command: click.Command, root: click.Context) -> str:
    """The page of a noun or a plain verb."""
    context = click.Context(command, parent=root, info_name=name)
    short = command.get_short_help_str(100).rstrip(".")
    parts = [f"## NAME\n\nosd-{name} - {plain(short)}", *examples(name)]
    found = list(verbs(command, context))
    parts += ["## SYNOPSIS", "\\\n".join(synopsis(each) for each in found)]
    single = not isinstance(command, click.Group)
    parts += ["## DESCRIPTION", prose(command.help or "")]
    for each in found:
        if not single:
            parts += [f"## `{each.command_path}`", synopsis(each), prose(each.command.help or "")]
        mine = list(options(each.command, each))
        parts += (["## OPTIONS"] if single and mine else []) + mine
    parts += ["## COMMON FLAGS", "The flags of every verb are in **osd**(1)."]
    parts += [*exit_status(), "## SEE ALSO", SEE]
    return manual_page(f"OSD-{name.upper()}", 1, parts)


def program_page(root: click.Context) -> str:
    """osd(1)."""
    short = " ".join((main.help or "").split(".")[0].split())
    parts = [
        f"## NAME\n\nosd - {plain(short)}",
        *examples("part"),
        "## SYNOPSIS",
        "**osd** *NOUN VERB* [OPTIONS] [ARGS]",
        "## DESCRIPTION",
        INTRODUCTION.split("\n", 2)[2],
        "## COMMANDS",
    ]
    for name in main.list_commands(root):
        command = main.get_command(root, name)
        assert command is not None
        parts.append(entry(f"osd-{name}(1)", plain(command.get_short_help_str(100))))
    everywhere = click.Command("osd", params=common_options(), add_help_option=False)
    parts += ["## FLAGS OF EVERY VERB", *option_rows(everywhere, click.Context(everywhere))]
    parts += ["## ENVIRONMENT", *(entry(name, plain(text)) for name, text in ENVIRONMENT)]
    parts += ["## FILES", entry("~/.config/iosd/config.toml", "Profiles; see DESCRIPTION.")]
    parts += [*exit_status(), "## SEE ALSO", "iosd(7), iosd-reasons(7), iosd-security(7)"]
    return manual_page("OSD", 1, parts)


def reasons_page() -> str:
    """iosd-reasons(7)."""
    name = "iosd-reasons - reasons why jobs of an iosd target wait or end"
    parts = [f"## NAME\n\n{name}", REASONS_HEAD]
    for block, words in BLOCKS.items():
        parts.append(f"## `{block}xx:` {plain(words)}")
        for number, reason in REASONS.items():
            if number // 100 == block:
                head, *lines = reason.paragraph()
                parts += [f"### {plain(head)}", "\\\n".join(plain(line) for line in lines)]
    parts += ["## SEE ALSO", "osd-job(1), osd-reasons(1), iosd(7)"]
    return manual_page("IOSD-REASONS", 7, parts)


def section(text: str, *left_out: str) -> str:
    """A page of docs/ without its first heading and some of its sections."""
    _, *parts = text.split("\n## ")
    first = text.partition("\n## ")[0].partition("\n")[2]
    kept = [each for each in parts if not each.startswith(left_out)]
    return "\n## ".join([first, *kept])


def model_page() -> str:
    """iosd(7)."""
    parts = [
        "## NAME\n\niosd - jobs next to the data: their model and limits",
        "## DESCRIPTION",
        section((DOCS / "jobs.md").read_text(), "Reasons"),
        "## LIMITS",
        section((DOCS / "limits.md").read_text()),
        "## SEE ALSO",
        "osd(1), osd-exec(1), osd-job(1), iosd-reasons(7), iosd-security(7)",
    ]
    return manual_page("IOSD", 7, parts)


def security_page() -> str:
    """iosd-security(7)."""
    parts = [
        "## NAME\n\niosd-security - how a target is protected from the scripts it runs",
        "## DESCRIPTION",
        section((DOCS / "security.md").read_text()),
        "## SEE ALSO",
        "osd-doctor(1), iosd(7), iosd-reasons(7)",
    ]
    return manual_page("IOSD-SECURITY", 7, parts)


def pages() -> dict[str, str]:
    """File name below the manual's folder -> content."""
    root = click.Context(main, info_name="osd")
    made = {"man1/osd.1": program_page(root)}
    for name in main.list_commands(root):
        command = main.get_command(root, name)
        assert command is not None
        made[f"man1/osd-{name}.1"] = command_page(name, command, root)
    made |= host_pages()
    made["man7/iosd.7"] = model_page()
    made["man7/iosd-reasons.7"] = reasons_page()
    made["man7/iosd-security.7"] = security_page()
    return made


def write(folder: Path) -> None:
    """Write all pages below a folder."""
    for name, content in pages().items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m tools.manpages FOLDER")
    write(Path(sys.argv[1]))
