# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd obj attr``: attributes of any object."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from pyosd import errors
from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.group import Group
from pyosd.cli.frame.params import ADDRESS, ATTRIBUTE, NUMBER
from pyosd.cli.frame.verb import Failure, Listing, Settings, Verb
from pyosd.cli.objects.attribute_names import NAMES
from pyosd.cli.output.tables import Column, JsonRow, format_time
from pyosd.types import AttributeId, AttributeValue, ObjectRef
from pyosd.wire.attributes import ALL, Page, encode_value

__all__ = ["attr", "record_of", "takes_value"]

SCHEMA = "iosd.attribute/1"
TIMESTAMPS, QUOTAS = 0x3, 0x2  # pages of every type of object
TIME_BYTES = 6
NUMBER_WIDTHS = (1, 2, 4, 6, 8)  # bytes of the standard's numbers

COLUMNS = (
    Column("ATTRIBUTE", lambda row: row["id"]),
    Column("BYTES", lambda row: str(row["bytes"]), right=True),
    Column("VALUE", lambda row: row["words"], shrink=True),
    Column("NAME", lambda row: row["name"] or "-", shrink=True, drop=1),
    Column("PAGE", lambda row: row["page_name"], wide=True),
    Column("HEX", lambda row: row["hex"], shrink=True, wide=True),
)


def text_of(value: bytes) -> str:
    """A value for people: text if it is printable, a number if it is as wide as one, else hex."""
    try:
        text = value.rstrip(b"\0").decode()
    except UnicodeDecodeError:
        text = ""
    if text and text.isprintable():
        return text
    if len(value) in NUMBER_WIDTHS:
        return str(int.from_bytes(value))
    return value.hex()


def words_of(attribute: AttributeValue) -> str:
    """The same, with points in time as dates, and "none" for a quota that does not limit."""
    name, value = name_of(attribute), attribute.value
    if relative(attribute.page) == TIMESTAMPS and name and len(value) == TIME_BYTES:
        return format_time(int.from_bytes(value))
    if relative(attribute.page) == QUOTAS and name and value and not value.strip(b"\xff"):
        return "none"
    return text_of(value)


def relative(page: int) -> int:
    """The number of a page among those of its type of object."""
    return page & 0x0FFF_FFFF


def name_of(attribute: AttributeValue) -> str:
    """Its name in the standard, or empty."""
    return NAMES.get(attribute.page, {}).get(attribute.number, "")


def page_name(page: int) -> str:
    """Its name in `Page`, such as `user-information`, or empty."""
    names = {each.value: each.name for each in Page}
    return names.get(page, "").lower().replace("_", "-")


def record_of(attribute: AttributeValue) -> JsonRow:
    """One attribute's record."""
    return {
        "schema": SCHEMA,
        "id": str(attribute.id),
        "page": attribute.page,
        "page_name": page_name(attribute.page),
        "number": attribute.number,
        "bytes": len(attribute.value),
        "name": name_of(attribute),
        "text": text_of(attribute.value),
        "words": words_of(attribute),
        "hex": attribute.value.hex(),
    }


def value_from(value: str, *, as_int: bool, as_hex: bool) -> bytes:
    """The bytes of a value as typed: UTF-8 text unless a flag says otherwise."""
    if as_int:
        return encode_value(NUMBER.convert(value, None, None))
    if not as_hex:
        return encode_value(value)
    try:
        return bytes.fromhex(value)
    except ValueError:
        raise click.UsageError(
            f"--hex: '{value}' is not hexadecimal: two digits for each byte, such as 00ff"
        ) from None


def takes_value(verb: Callable[..., None]) -> Callable[..., None]:
    """Arguments and options for one attribute to set; verb gets them as `value`, an AttributeValue.

    Its own flag `from_stdin` goes before what was typed.
    """

    @click.argument("attribute", type=ATTRIBUTE)
    @click.argument("value", default="", required=False)
    @click.option(
        "--int",
        "as_int",
        is_flag=True,
        help="Read VALUE as a number and store it in 8 bytes, big-endian.",
    )
    @click.option("--hex", "as_hex", is_flag=True, help="Read VALUE as hexadecimal bytes.")
    @wraps(verb)
    def run(
        *args: Any,
        attribute: tuple[int, int],
        value: str,
        as_int: bool,
        as_hex: bool,
        from_stdin: bool = False,
        **others: Any,
    ) -> None:
        if ALL in attribute:
            raise click.UsageError("set one attribute: PAGE/NUMBER")
        if from_stdin:
            encoded = encode_value(sys.stdin.buffer.read())
        else:
            encoded = value_from(value, as_int=as_int, as_hex=as_hex)
        verb(*args, value=AttributeValue(*attribute, encoded), **others)

    return run


def show(settings: Settings, attributes: tuple[AttributeValue, ...]) -> None:
    """Print attributes in the format asked for."""
    settings.show(
        [record_of(each) for each in attributes], COLUMNS, "iosd.attributes/1", "attributes"
    )


@click.group(cls=Group)
def attr() -> None:
    """Read and set attributes of objects."""


@attr.command(cls=Listing)
@click.argument("address", type=ADDRESS)
@click.argument("attribute", type=ATTRIBUTE)
@click.option("--raw", is_flag=True, help="Write only the bytes of the value, unchanged.")
@click.pass_obj
def get(settings: Settings, address: ObjectRef, attribute: tuple[int, int], raw: bool) -> None:
    """Read an attribute."""
    with settings.connect() as target:
        found = target.get_attributes(address, [AttributeId(*attribute)])
    if ALL not in attribute and not any(each.value for each in found):
        raise Failure(Exit.NO_INPUT, f"{address} has no attribute {AttributeId(*attribute)}")
    if raw:
        sys.stdout.buffer.write(b"".join(each.value for each in found))
        sys.stdout.buffer.flush()
    else:
        show(settings, found)


@attr.command("set", cls=Verb)
@click.argument("address", type=ADDRESS)
@takes_value
@click.option("--stdin", "from_stdin", is_flag=True, help="Read the value from stdin.")
@click.pass_obj
def set_(settings: Settings, address: ObjectRef, value: AttributeValue) -> None:
    """Set an attribute to VALUE (UTF-8 text); without one it becomes undefined."""
    with settings.connect() as target:
        try:
            target.set_attributes(address, [value])
        except errors.Invalid as error:
            if not value.value.isdigit():  # such as a quota, whose value has 8 bytes
                raise
            raise Failure(
                Exit.FAILED, f"{error}\n  --int stores {value.text} as a number, not as a text"
            ) from None


@attr.command("ls", cls=Listing)
@click.argument("address", type=ADDRESS)
@click.argument("page", type=NUMBER, required=False)
@click.pass_obj
def list_(settings: Settings, address: ObjectRef, page: int | None) -> None:
    """List an object's attributes, of all pages or of one."""
    with settings.connect() as target:
        wanted = AttributeId(ALL if page is None else page, ALL)
        found = target.get_attributes(address, [wanted])
    kept = (each for each in found if each.page != Page.CURRENT_COMMAND)
    show(settings, tuple(each for each in kept if each.value))
