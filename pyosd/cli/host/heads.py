# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd obj heads``, ``osd target heads``, ``osd target drain-ssd``: objects' first bytes on the SSD."""

from __future__ import annotations

import time

import click

from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.params import OBJECT, SIZE
from pyosd.cli.frame.verb import Failure, Listing, Settings, Verb
from pyosd.cli.output.progress import byte_bar
from pyosd.cli.output.tables import Column, JsonRow, format_bytes, print_json, print_records
from pyosd.commands import Commands
from pyosd.types import ROOT, AttributeId, AttributeValue, ObjectRef
from pyosd.wire.attributes import ALL, Page

__all__ = ["drain_ssd", "figures_of", "obj_heads", "target_heads"]

SIZE_NUMBER = 1
PLACES = ("-", "ssd", "hdd")
OBJECT_KEYS = {1: "head_bytes", 2: "head_on", 3: "ssd_bytes", 4: "hdd_bytes"}
# Of page B000_0003h: number -> key
ROOT_KEYS = {
    1: "head_bytes",
    2: "policy",
    3: "high_water_percent",
    4: "low_water_percent",
    5: "rate_bytes",
    6: "drain",
    7: "ssd_total_bytes",
    8: "ssd_free_bytes",
    9: "hdd_total_bytes",
    10: "hdd_free_bytes",
    11: "heads_on_ssd_bytes",
    12: "heads_on_hdd_bytes",
    13: "moved_to_ssd",
    14: "moved_to_hdd",
    15: "moved_to_ssd_bytes",
    16: "moved_to_hdd_bytes",
    17: "passed_over",
}
NUMBERS = {key: number for number, key in ROOT_KEYS.items()}
WIDTHS = {"head_bytes": 8, "rate_bytes": 8}  # of what may be set; others: 1
POLICIES = ("first", "small-only", "off")
DRAIN = ("no", "under way", "done")
WORDS = {"policy": POLICIES, "drain": DRAIN}
POLL_LEAST_S, POLL_MOST_S = 0.05, 1.0

COLUMNS = (
    Column("OBJECT", lambda row: row["id"]),
    Column("HEAD", lambda row: format_bytes(row["head_bytes"]), right=True),
    Column("ON", lambda row: row["head_on"]),
    Column("SSD", lambda row: str(row["ssd_bytes"]), right=True),
    Column("HDD", lambda row: str(row["hdd_bytes"]), right=True),
)
PAIR = (Column("", lambda row: row["key"]), Column("", lambda row: row["value"], shrink=True))


def no_ssd() -> Failure:
    """The message if the store has no heads."""
    return Failure(Exit.FAILED, "this target has no SSD: 'osd target serve --ssd' gives it one")


# ---- of objects ----


def head_of(commands: Commands, address: ObjectRef) -> JsonRow:
    """Head size of an object, where the head is, and how many bytes are where."""
    values = commands.get_attributes(address, [AttributeId(Page.HEAD, ALL)])
    found = {OBJECT_KEYS[each.number]: each.uint for each in values if each.number in OBJECT_KEYS}
    if len(found) < len(OBJECT_KEYS):
        raise no_ssd()
    place = PLACES[found["head_on"]]
    return {"schema": "iosd.head/1", "id": str(address), **found, "head_on": place}


@click.command("heads", cls=Listing)
@click.argument("addresses", metavar="ADDRESS...", type=OBJECT, nargs=-1, required=True)
@click.option(
    "--set", "size", type=SIZE, help="Set the head size.  Possible until the first byte is written."
)
@click.pass_obj
def obj_heads(settings: Settings, addresses: tuple[ObjectRef, ...], size: int | None) -> None:
    """Show how many bytes of objects are on the SSD (heads) and on disk.

    --set 0 keeps an object off the SSD. The head size of an object cannot change after its first
    write.
    """
    with settings.connect() as target:
        if size is not None:
            value = AttributeValue(Page.HEAD, SIZE_NUMBER, size.to_bytes(8, "big"))
            for address in addresses:
                target.set_attributes(address, [value])
        records = [head_of(target, address) for address in addresses]
    settings.show(records, COLUMNS, "iosd.heads/1", "heads")


# ---- of the target ----


def figures_of(commands: Commands) -> dict[str, int]:
    """The root's attributes about heads and about the space on both devices."""
    values = commands.get_attributes(ROOT, [AttributeId(Page.HEADS_ROOT, ALL)])
    return {ROOT_KEYS[each.number]: each.uint for each in values if each.number in ROOT_KEYS}


def change(commands: Commands, **wanted: int) -> None:
    """Set what the root has of heads."""
    commands.set_attributes(
        ROOT,
        [
            AttributeValue(Page.HEADS_ROOT, NUMBERS[key], value.to_bytes(WIDTHS.get(key, 1), "big"))
            for key, value in wanted.items()
        ],
    )


def shown(key: str, value: int) -> str:
    """One figure for people."""
    if key in WORDS:
        return WORDS[key][value]
    return f"{value} ({format_bytes(value)})" if key.endswith("_bytes") else str(value)


@click.command("heads", cls=Listing)
@click.option("--size", type=SIZE, help="Set the head size of new objects.")
@click.option(
    "--policy", type=click.Choice(POLICIES), help="Set which new objects begin on the SSD."
)
@click.option(
    "--high-water",
    type=click.IntRange(1, 99),
    metavar="N",
    help="Set the per cent of the SSD above which new heads are stored on the data disk.",
)
@click.option(
    "--low-water",
    type=click.IntRange(1, 99),
    metavar="N",
    help="Set the per cent of the SSD below which heads move back to it.",
)
@click.option(
    "--rate",
    type=SIZE,
    help="Set the most bytes per second that move between the SSD and the data disk.",
)
@click.pass_obj
def target_heads(
    settings: Settings,
    size: int | None,
    policy: str | None,
    high_water: int | None,
    low_water: int | None,
    rate: int | None,
) -> None:
    """Show or change how heads are placed on the SSD.

    A change is lost when the target ends. To keep it, put it into [heads] of the target's
    configuration.
    """
    given = {
        "head_bytes": size,
        "policy": None if policy is None else POLICIES.index(policy),
        "high_water_percent": high_water,
        "low_water_percent": low_water,
        "rate_bytes": rate,
    }
    wanted = {key: value for key, value in given.items() if value is not None}
    with settings.connect() as target:
        if wanted:
            change(target, **wanted)
        found = figures_of(target)
    if "policy" not in found:
        raise no_ssd()
    if settings.output in ("json", "jsonl"):
        words = {key: names[found[key]] for key, names in WORDS.items()}
        print_json({"schema": "iosd.target-heads/1", **found, **words})
        return
    rows: list[JsonRow] = [
        {"key": key.removesuffix("_bytes").replace("_", " "), "value": shown(key, value)}
        for key, value in found.items()
    ]
    print_records(rows, PAIR, output="table", schema="", name="", header=False)


def follow(settings: Settings, commands: Commands, figures: dict[str, int]) -> dict[str, int]:
    """Show how the drain goes on, until it is done or ended by somebody."""
    pause, waits = POLL_LEAST_S, 0
    left = figures["heads_on_ssd_bytes"]
    with byte_bar("drain the SSD", left, settings.quiet) as progress:
        while figures["drain"] == DRAIN.index("under way"):
            time.sleep(pause)
            pause = min(pause * 1.5, POLL_MOST_S)
            figures = figures_of(commands)
            progress(max(left - figures["heads_on_ssd_bytes"], 0))
            left = min(left, figures["heads_on_ssd_bytes"])
            if figures["passed_over"] != waits:
                waits = figures["passed_over"]
                if waits:
                    settings.say(f"{waits} heads must wait: jobs read them, or they cannot be read")
    return figures


@click.command("drain-ssd", cls=Verb)
@click.option(
    "--undo",
    is_flag=True,
    help="End the drain: store new heads on the SSD again and move the others back.",
)
@click.option("--wait/--no-wait", default=True, help="Wait until no head is on the SSD.  [wait]")
@click.pass_obj
def drain_ssd(settings: Settings, undo: bool, wait: bool) -> None:
    """Move all heads off the SSD and place no new ones on it.

    The target stores the drain and continues it after a restart. Repeat the command to see the
    progress.  It is slower than what clients do at the same time; 'osd target heads --rate' changes
    that.
    """
    with settings.connect() as target:
        before = figures_of(target)
        if "drain" not in before:
            raise no_ssd()
        if undo or not before["drain"]:
            change(target, drain=not undo)
        figures = figures_of(target)
        if undo:
            away = figures["heads_on_hdd_bytes"]
            settings.say(
                f"not drained any more; {format_bytes(away)} of heads are on the hard disk"
            )
            return
        if wait:
            try:
                figures = follow(settings, target, figures)
            except KeyboardInterrupt:
                settings.say("the drain continues; 'osd target drain-ssd --undo' ends it")
                raise
    if figures["drain"] == DRAIN.index("done"):
        moved = figures["moved_to_hdd"]
        settings.say(f"no head is on the SSD ({moved} moved since the target started)")
    elif figures["drain"]:
        left = format_bytes(figures["heads_on_ssd_bytes"])
        settings.say(f"{left} of heads are on the SSD; 'osd target heads' shows how many are left")
    else:
        raise Failure(Exit.FAILED, "somebody has ended the drain")
