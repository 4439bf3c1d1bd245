# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd target``: what a target says about itself, and how fast it answers.

``osd target serve`` comes from the package that runs on the target's host, by entry point.
"""

from __future__ import annotations

import contextlib
import statistics
import time

import click

from pyosd.cli.frame.nouns import Nouns
from pyosd.cli.frame.params import DURATION
from pyosd.cli.frame.verb import Listing, Settings, Verb
from pyosd.cli.host.heads import figures_of
from pyosd.cli.output.tables import Column, JsonRow, format_bytes, print_json, print_records
from pyosd.cli.output.terminal import output_option
from pyosd.commands import Commands
from pyosd.errors import Unreachable
from pyosd.types import ROOT, AttributeId
from pyosd.wire.attributes import ALL, Information, Page
from pyosd.wire.capability import method_name

__all__ = ["target"]

RETRY_S = 0.1
ROOT_WANTED = {
    "system_id": Information.SYSTEM_ID,
    "serial_number": Information.PRODUCT_SERIAL_NUMBER,
    "name": Information.NAME,
    "capacity_bytes": Information.TOTAL_CAPACITY,
    "used_bytes": Information.USED_CAPACITY,
    "partitions": Information.NUMBER_OF_PARTITIONS,
}
TEXTS = ("serial_number", "name")
# Root page B000_0001h: number -> key
EXEC_PAGE = {
    1: "exec_service_action",
    2: "engines",
    3: "limits",
    4: "versions",
    5: "queue_depth",
    6: "retry_after_ms",
    7: "isolation",
}
# Of each device's file system; without an SSD there is one.
ROOM = ("ssd_total_bytes", "ssd_free_bytes", "hdd_total_bytes", "hdd_free_bytes")
# Root page 9000_0005h: number -> key
METHODS = {1: "security", 6: "partitions_security"}
EXEC_NUMBERS = ("exec_service_action", "queue_depth", "retry_after_ms")
EXEC_TEXTS = ("engines", "isolation")

COLUMNS = (Column("", lambda row: row["key"]), Column("", lambda row: row["value"], shrink=True))


@click.group(
    cls=Nouns,
    prefix="target.",
    table={
        "info": ("pyosd.cli.host.target", "info", "Show what the target says about itself."),
        "df": (
            "pyosd.cli.host.df",
            "df",
            "Show used and free space: of devices, of the store and of partitions.",
        ),
        "heads": (
            "pyosd.cli.host.heads",
            "target_heads",
            "Show or change how heads are placed on the SSD.",
        ),
        "drain-ssd": (
            "pyosd.cli.host.heads",
            "drain_ssd",
            "Move all heads off the SSD and place no new ones on it.",
        ),
        "scrub": (
            "pyosd.cli.host.scrub",
            "scrub",
            "Compare all data with its checksums, in the background; show what is damaged.",
        ),
        "ping": ("pyosd.cli.host.target", "ping", "Measure the round trip to the target."),
    },
)
def target() -> None:
    """Serve, inspect and maintain targets."""


def describe(commands: Commands) -> JsonRow:
    """Identity, room and abilities of a target."""
    inquiry = commands.inquiry()
    record: JsonRow = {
        "schema": "iosd.target-info/1",
        "vendor": inquiry[8:16].decode("ascii", "replace").strip(),
        "product": inquiry[16:32].decode("ascii", "replace").strip(),
        "revision": inquiry[32:36].decode("ascii", "replace").strip(),
    }
    wanted = [AttributeId(Page.ROOT_INFORMATION, number) for number in ROOT_WANTED.values()]
    found = {value.number: value for value in commands.get_attributes(ROOT, wanted)}
    for key, number in ROOT_WANTED.items():
        value = found.get(number)
        if key == "system_id":
            record[key] = value.value.hex() if value else ""
        elif key in TEXTS:
            record[key] = value.text if value else ""
        else:
            record[key] = value.uint if value else 0
    room = figures_of(commands)
    record |= {key: room[key] for key in ROOM if key in room}
    methods = [AttributeId(Page.ROOT_SECURITY, number) for number in METHODS]
    for value in commands.get_attributes(ROOT, methods):
        record[METHODS[value.number]] = method_name(value.uint)
    for value in commands.get_attributes(ROOT, [AttributeId(Page.EXEC_ROOT, ALL)]):
        key = EXEC_PAGE.get(value.number, "")
        if key in EXEC_NUMBERS:
            record[key] = value.uint
        elif key in EXEC_TEXTS:
            record[key] = value.text
    return record


def words(key: str, value: object) -> str:
    """One value of the record for people."""
    if key.endswith("_bytes") and isinstance(value, int):
        return f"{value} ({format_bytes(value)})"
    if key in METHODS.values() and value == "nosec":
        return "nosec (no credential needed: all who can connect are administrators)"
    return f"{value:#06x}" if key == "exec_service_action" else str(value)


@click.command(cls=Listing)
@click.pass_obj
def info(settings: Settings) -> None:
    """Show the target's identity, capacity and abilities."""
    with settings.connect() as session:
        record = describe(session)
    if settings.output in ("json", "jsonl"):
        print_json(record)
        return
    rows = [
        {"key": key.removesuffix("_bytes").replace("_", " "), "value": words(key, value)}
        for key, value in record.items()
        if key != "schema" and value != ""
    ]
    print_records(rows, COLUMNS, output="table", schema="", name="", header=False)


def await_target(settings: Settings, patience: float) -> None:
    """Return when the target takes a session, or after so many seconds."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        with contextlib.suppress(Unreachable), settings.connect():
            return
        time.sleep(RETRY_S)


@click.command(cls=Verb)
@click.option(
    "-n",
    "--count",
    type=click.IntRange(1),
    metavar="N",
    default=5,
    help="Number of round trips.  [5]",
)
@click.option(
    "--wait", type=DURATION, default=0, help="Keep trying for this time until the target answers."
)
@output_option("text", "json")
@click.pass_obj
def ping(settings: Settings, count: int, wait: float) -> None:
    """Measure the response time of the target (TEST UNIT READY)."""
    await_target(settings, wait)
    times = []
    with settings.connect() as session:
        for _ in range(count):
            start = time.perf_counter()
            session.test_unit_ready()
            times.append((time.perf_counter() - start) * 1e6)
    low, middle, high = min(times), statistics.median(times), max(times)
    if settings.output == "json":
        figures = {"min_us": low, "median_us": middle, "max_us": high}
        rounded = {key: round(value, 1) for key, value in figures.items()}
        print_json({"schema": "iosd.ping/1", "count": count, **rounded})
    else:
        click.echo(f"{count} answers: min {low:.0f} us, median {middle:.0f} us, max {high:.0f} us")
