# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd obj``: user objects, their bytes and their attributes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from itertools import chain
from typing import BinaryIO, cast

import click

from pyosd import errors
from pyosd.cli.frame.group import Group
from pyosd.cli.frame.params import ADDRESS, OBJECT, SIZE
from pyosd.cli.frame.verb import Listing, Settings, Verb
from pyosd.cli.host.heads import obj_heads
from pyosd.cli.objects.attr import attr
from pyosd.cli.objects.find import find, index
from pyosd.cli.objects.layout import copy, map_
from pyosd.cli.objects.object_table import COLUMNS, describe, show_partition
from pyosd.cli.objects.transfer import Watched, size_of
from pyosd.cli.output.progress import byte_bar
from pyosd.cli.output.tables import print_lines
from pyosd.cli.output.terminal import RAW, output_to
from pyosd.commands.data import CHUNK
from pyosd.files import pieces
from pyosd.target import Target
from pyosd.types import ObjectRef

__all__ = ["obj"]


@click.group(cls=Group)
def obj() -> None:
    """Manage objects: numbered byte strings with attributes."""


for command in (attr, copy, map_, find, index, obj_heads):
    obj.add_command(command)


@obj.command(cls=Verb)
@click.argument("address", type=ADDRESS)
@click.option(
    "-n",
    "--count",
    type=click.IntRange(1, 4096),
    metavar="N",
    default=1,
    help="Number of objects to create.  [1]",
)
@click.pass_obj
def create(settings: Settings, address: ObjectRef, count: int) -> None:
    """Create empty objects and print their ids.

    ADDRESS is PID/OID with the new id, or a partition: then the target chooses the id.
    """
    if count > 1 and address.object_id:
        raise click.UsageError("--count goes with a partition, not with a wanted id")
    with settings.connect() as target:
        if count == 1:
            made = [target.create(address.partition_id, address.object_id)]
        else:
            made = target.create_many(address.partition_id, count)
    print_lines(map(str, made))


@obj.command(cls=Verb)
@click.argument("address", type=OBJECT)
@click.option("--offset", type=SIZE, default=0, help="First byte to read.  [0]")
@click.option("--length", type=SIZE, help="Number of bytes to read.  [to the end]")
@click.option(
    "-O",
    "--to",
    "file",
    type=click.Path(dir_okay=False),
    default="-",
    help="File to write the data to.  [stdout]",
)
@RAW
@click.pass_obj
def read(
    settings: Settings, address: ObjectRef, offset: int, length: int | None, file: str, raw: bool
) -> None:
    """Read an object's data to stdout or to a file."""
    with settings.connect() as target:
        known, wanted = target.known_length(address), length
        if known is not None:
            there = max(known - offset, 0)
            wanted = there if length is None else min(there, length)
        quiet = settings.quiet or (file == "-" and sys.stdout.isatty())
        parts = pieces(target, address, offset, wanted)
        first = next(parts, b"")  # a command that fails leaves an existing file as it is
        with (
            click.open_file(file, "wb") as out,
            byte_bar(f"read {address}", wanted, quiet) as progress,
        ):
            to = output_to(sys.stdout, raw) if file == "-" else out
            for piece in chain([first], parts):
                to.write(piece)
                progress(len(piece))
            out.flush()


@contextmanager
def new_object(target: Target, partition: ObjectRef) -> Iterator[ObjectRef]:
    """A new object to fill; it is removed again where that fails or is interrupted."""
    made = target.create(partition.partition_id)
    try:
        yield made
    except BaseException:
        with suppress(errors.OSDError):
            target.remove(made)
        raise


@obj.command(cls=Verb)
@click.argument("address", type=ADDRESS)
@click.argument("file", default="-", required=False)
@click.option("--offset", type=SIZE, default=0, help="Position of the first byte to write.  [0]")
@click.pass_obj
def write(settings: Settings, address: ObjectRef, file: str, offset: int) -> None:
    """Write FILE (or stdin) to an object.

    ADDRESS is PID/OID of an existing object, or a partition: then a new object is created and its
    id printed. Bytes of an existing object behind the last one written stay as they are.
    """
    with click.open_file(file, "rb") as source, settings.connect() as target:
        made = not address.object_id
        with (
            new_object(target, address) if made else nullcontext(address) as whole,
            byte_bar(f"write {whole}", size_of(source), settings.quiet) as progress,
        ):
            # A BinaryIO has many methods; write_from() needs read().
            watched = cast(BinaryIO, Watched(source, progress))
            written = target.write_from(whole, watched, offset)
    if made:
        click.echo(whole)
    settings.say(f"wrote {written} bytes to {whole}")


@obj.command(cls=Verb)
@click.argument("address", type=OBJECT)
@click.argument("file", default="-", required=False)
@click.pass_obj
def append(settings: Settings, address: ObjectRef, file: str) -> None:
    """Append FILE (or stdin) to an object."""
    with (
        click.open_file(file, "rb") as source,
        settings.connect() as target,
        byte_bar(f"append {address}", size_of(source), settings.quiet) as progress,
    ):
        watched = Watched(source, progress)
        # One after the other, since their order matters.
        while piece := watched.read(CHUNK):
            target.append(address, piece)
    settings.say(f"appended {watched.total} bytes to {address}")


@obj.command(cls=Verb)
@click.argument("addresses", metavar="ADDRESS...", type=OBJECT, nargs=-1, required=True)
@click.pass_obj
def rm(settings: Settings, addresses: tuple[ObjectRef, ...]) -> None:
    """Remove objects."""
    settings.confirm(f"Remove {', '.join(map(str, addresses))}?")
    with settings.connect() as target:
        for address in addresses:
            target.remove(address)


@obj.command("ls", cls=Listing)
@click.argument("address", metavar="PID", type=ADDRESS)
@click.pass_obj
def list_(settings: Settings, address: ObjectRef) -> None:
    """List the objects of a partition."""
    if not address.partition_id:
        raise click.UsageError("objects are listed by partition; see 'osd part ls'")
    with settings.connect() as target:
        show_partition(settings, target, address.partition_id)


@obj.command(cls=Listing)
@click.argument("address", type=OBJECT)
@click.pass_obj
def stat(settings: Settings, address: ObjectRef) -> None:
    """Show one object."""
    with settings.connect() as target:
        record = describe(target, address)
    settings.show_one(record, COLUMNS, wide=True)
