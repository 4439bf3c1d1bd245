# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd target scrub``: all data compared with its checksums, in the background."""

from __future__ import annotations

import time

import click

from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.params import SIZE
from pyosd.cli.frame.verb import Failure, Listing, Settings
from pyosd.cli.output.progress import byte_bar
from pyosd.cli.output.tables import (
    Column,
    JsonRow,
    format_bytes,
    local_time,
    print_json,
    print_records,
)
from pyosd.commands import Commands
from pyosd.types import ROOT, AttributeId, AttributeValue, ref
from pyosd.wire.attributes import ALL, Page

__all__ = ["scrub"]

BLOCK = 4096
# Of page B000_0004h: number -> key
KEYS = {
    1: "checksums",
    2: "state",
    3: "rate_bytes",
    4: "interval_ms",
    5: "began_ms",
    6: "ended_ms",
    7: "objects",
    8: "blocks",
    9: "made",
    10: "damaged",
    11: "unreadable",
    14: "damaged_blocks",
}
LIST_NUMBER, ENTRY = 15, 24
STATES = ("idle", "running", "stopped")
STATE, RATE = 2, 3
POLL_LEAST_S, POLL_MOST_S = 0.05, 1.0
PAIR = (Column("", lambda row: row["key"]), Column("", lambda row: row["value"], shrink=True))


def damage_of(value: bytes) -> list[JsonRow]:
    """The blocks that are remembered as damaged: object, first byte, bytes."""
    found = []
    for at in range(0, len(value), ENTRY):
        words = [int.from_bytes(value[at + n : at + n + 8], "big") for n in (0, 8, 16)]
        found.append({"id": str(ref(*words[:2])), "offset": words[2], "length": BLOCK})
    return sorted(found, key=lambda each: (each["id"], each["offset"]))


def status_of(commands: Commands) -> JsonRow:
    """Everything that the root says of checksums.  Raises: Failure: the store keeps none."""
    values = commands.get_attributes(ROOT, [AttributeId(Page.SUMS_ROOT, ALL)])
    found: JsonRow = {KEYS[each.number]: each.uint for each in values if each.number in KEYS}
    if not found.get("checksums"):
        text = "this store keeps no checksums: 'osd target serve --checksums on' begins with it"
        raise Failure(Exit.FAILED, text)
    lists = [each.value for each in values if each.number == LIST_NUMBER]
    del found["checksums"]
    found["state"] = STATES[found["state"]]
    return found | {"damage": damage_of(b"".join(lists))}


def set_number(commands: Commands, number: int, value: int, width: int) -> None:
    """Change a setting of the page."""
    wanted = AttributeValue(Page.SUMS_ROOT, number, value.to_bytes(width, "big"))
    commands.set_attributes(ROOT, [wanted])


def follow(settings: Settings, commands: Commands, ended_before: int) -> JsonRow:
    """Wait for the end of a pass."""
    pause = POLL_LEAST_S
    status = status_of(commands)
    with byte_bar("scrub", 0, settings.quiet) as progress:
        while status["state"] == "running" or status["ended_ms"] == ended_before:
            progress(status["blocks"] * BLOCK)
            time.sleep(pause)
            pause = min(pause * 1.5, POLL_MOST_S)
            status = status_of(commands)
    return status


def moment(milliseconds: int) -> str:
    """A time of the target's clock, or that there is none."""
    if not milliseconds:
        return "never"
    return local_time(milliseconds).isoformat(" ", "seconds")


def rows_of(status: JsonRow) -> list[JsonRow]:
    """For people."""
    values = {
        "state": status["state"],
        "rate": f"{format_bytes(status['rate_bytes'])} a second at most",
        "began": moment(status["began_ms"]),
        "ended": moment(status["ended_ms"]),
        "objects": str(status["objects"]),
        "compared": format_bytes(status["blocks"] * BLOCK),
        "had no checksum": f"{status['made']} blocks",
        "damaged": f"{status['damaged']} blocks",
        "unreadable": f"{status['unreadable']} objects",
    }
    rows: list[JsonRow] = [{"key": key, "value": value} for key, value in values.items()]
    for each in status["damage"]:
        last = each["offset"] + each["length"] - 1
        rows.append({"key": "damage", "value": f"{each['id']} bytes {each['offset']} to {last}"})
    return rows


@click.command("scrub", cls=Listing)
@click.argument("action", type=click.Choice(["status", "start", "stop"]), default="status")
@click.option(
    "--rate",
    type=SIZE,
    help="Set the most bytes per second that the scrub reads, until the target ends.",
)
@click.option("--wait", is_flag=True, help="With start: wait until the scrub is done.")
@click.pass_obj
def scrub(settings: Settings, action: str, rate: int | None, wait: bool) -> None:
    """Compare all data with its checksums in the background.

    The target starts a scrub every --scrub-days days. A scrub pauses while commands wait, and
    continues after a restart. 'start' also continues a scrub that was stopped.  Damage is shown
    until a later scrub no longer finds it. To repair it, write the bytes again, or restore the
    object.

    Exit 0: no damage is known; 65: some is.
    """
    if wait and action != "start":
        raise click.UsageError("--wait goes with start")
    with settings.connect() as target:
        status = status_of(target)
        if rate is not None:
            set_number(target, RATE, rate, 8)
        if action != "status":
            set_number(target, STATE, int(action == "start"), 1)
        status = follow(settings, target, status["ended_ms"]) if wait else status_of(target)
    if settings.output in ("json", "jsonl"):
        print_json({"schema": "iosd.scrub/1", **status})
    else:
        rows = rows_of(status)
        print_records(rows, PAIR, output="table", schema="", name="", header=False)
    if status["damage"]:
        raise SystemExit(Exit.STORE_DAMAGED)
