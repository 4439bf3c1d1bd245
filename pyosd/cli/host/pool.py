# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd pool``: what kinds of sandboxes a target has.

``osd pool build`` comes from the package that runs on the target's host, by entry point.
"""

from __future__ import annotations

from collections.abc import Iterator

import click

from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.nouns import Nouns
from pyosd.cli.frame.params import completing
from pyosd.cli.frame.verb import Failure, Listing, Settings
from pyosd.cli.output.tables import (
    Column,
    JsonRow,
    counted,
    format_bytes,
    format_seconds,
    print_prose,
)
from pyosd.cli.output.terminal import harmless
from pyosd.commands.pool_status import PoolStatus

__all__ = ["pool", "record_of_pool"]

SCHEMA = "iosd.pool/1"
COLOURS = {"serving": "green", "starting": "yellow", "paused": "yellow", "draining": "yellow"}
MODES = {
    "paused": "paused: it takes jobs and starts none",
    "draining": "draining: it takes no more jobs, and runs those it has",
}
SIZES, TIMES = ("memory", "output"), ("wall", "cpu")
WHOLE = 100  # percent of the processors


def state_of(record: JsonRow) -> str:
    """In a word: what an administrator has it do, where it serves."""
    stopped = record["state"] == "serving" and record["mode"] != "running"
    return str(record["mode"] if stopped else record["state"])


COLUMNS = (
    Column("POOL", lambda row: row["id"]),
    Column("STATE", state_of, colour=lambda row: COLOURS.get(state_of(row), "red")),
    Column("BUSY", lambda row: f"{row['busy']}/{row['active']}", right=True),
    Column("READY", lambda row: str(row["ready"]), right=True, drop=2),
    Column("QUEUED", lambda row: str(row["queued"]), right=True),
    Column("SLOTS", lambda row: f"{row['min']}-{row['max']}", right=True, wide=True),
    Column("QUEUE", lambda row: str(row["queue"]), right=True, wide=True),
    Column("REUSE", lambda row: row["reuse"], wide=True),
    Column("PACKAGES", lambda row: row["package_set"] or "-", drop=3),
    Column("WHY", lambda row: row["why"] or "-", shrink=True, drop=1),
)


@click.group(
    cls=Nouns,
    prefix="pool.",
    table={
        "ls": ("pyosd.cli.host.pool", "ls", "List the target's pools."),
        "show": (
            "pyosd.cli.host.pool",
            "show",
            "Show a pool with its limits, and why it is out of service.",
        ),
    },
)
def pool() -> None:
    """Manage pools of sandboxes: slots, limits and package sets."""


def limit_words(key: str, value: float | None) -> str:
    """A limit for people."""
    if value is None:
        return "no bound"
    if key in SIZES:
        return format_bytes(int(value))
    if key in TIMES:
        return format_seconds(value) if value else "as wall"
    return str(int(value))


def record_of_pool(found: PoolStatus) -> JsonRow:
    """The fields of "iosd.pool/1".

    Times are in seconds, memory, output and bandwidth in bytes, share.cpu in percent.
    """
    return {
        "schema": SCHEMA,
        "id": found.name,
        "state": found.state,
        "mode": found.mode,
        "why": found.why,
        "min": found.min,
        "max": found.max,
        "active": found.active,
        "warm_spare": found.warm_spare,
        "idle_timeout": found.idle_timeout,
        "busy": found.busy,
        "ready": found.ready,
        "queued": found.queued,
        "queue": found.queue,
        "reuse": found.reuse,
        "engine": found.engine,
        "package_set": found.set or None,
        "share": {
            "cpu": found.cpu_share,
            "bandwidth": found.bandwidth or None,
            "deadline": found.deadline or None,
        },
        "pushed_back": {"sooner": found.pushed, "deadline": found.late},
        "held": found.held,
        "limits": {key: limit for key, (limit, _) in found.limits.items()},
        "maximum": {key: most for key, (_, most) in found.limits.items()},
    }


@click.command(cls=Listing)
@click.pass_obj
def ls(settings: Settings) -> None:
    """List pools with their slots, ready sandboxes and queued jobs."""
    with settings.connect() as target:
        records = [record_of_pool(each) for each in target.pools()]
    settings.show(records, COLUMNS, SCHEMA, "pools")


def share_lines(record: JsonRow) -> Iterator[str]:
    """The share of the host that its jobs can use, if it is limited, and the effects on jobs."""
    share, pushed = record["share"], record["pushed_back"]
    if share["cpu"] != WHOLE:
        yield f"all jobs together use at most {share['cpu']} % of the processors"
    if share["bandwidth"]:
        held = format_seconds(record["held"]) if record["held"] else "0 s"
        yield (
            f"scripts read and write at most {format_bytes(share['bandwidth'])} a second; "
            f"they have waited {held} for it"
        )
    if share["deadline"]:
        yield f"a job ends within {format_seconds(share['deadline'])} of its submission"
    if any(pushed.values()):
        yield (
            f"given back: {counted(pushed['sooner'], 'job')} as the client was expected to be sooner, "
            f"{pushed['deadline']} as the deadline would have passed"
        )


def lines_of(record: JsonRow) -> Iterator[str]:
    """A pool on one screen."""
    why = f": {record['why']}" if record["why"] else ""
    mode = "" if record["mode"] == "running" else f", {MODES.get(record['mode'], record['mode'])}"
    yield f"{record['id']}: {record['state']}{mode}{why}"
    yield (
        f"slots {record['min']} to {record['max']}, {record['busy']} of {record['active']} busy; "
        f"{counted(record['ready'], 'sandbox', 'sandboxes')} ready, {record['warm_spare']} warm spare"
    )
    yield f"{record['queued']} of {record['queue']} places in the queue taken"
    yield f"engine {record['engine']}, package set {record['package_set'] or 'none'}"
    yield f"reuse of sandboxes: {record['reuse']}"
    if record["idle_timeout"]:
        idle = format_seconds(record["idle_timeout"])
        yield f"after {idle} without a job it keeps {counted(record['min'], 'sandbox', 'sandboxes')}"
    yield from share_lines(record)
    for key, limit in record["limits"].items():
        most = limit_words(key, record["maximum"][key])
        yield f"{key}: {limit_words(key, limit)}, at most {most}"


@click.command(cls=Listing)
@click.argument("name", default="default", shell_complete=completing("pools"))
@click.pass_obj
def show(settings: Settings, name: str) -> None:
    """Show a pool with its limits, and why it is out of service.  [default]"""
    with settings.connect() as target:
        found = {each.name: each for each in target.pools()}
    if name not in found:
        raise Failure(Exit.NO_INPUT, f"no pool '{name}'; there are: {', '.join(found) or 'none'}")
    record = record_of_pool(found[name])
    if settings.output == "table":
        print_prose(map(harmless, lines_of(record)))
    else:
        settings.show_one(record, COLUMNS, wide=True)
