# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd target calibrate`: how fast the two devices are, and how large the heads of objects should be."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from iosd_host.cli.host_verb import Settings
from iosd_host.cli.store import StoreVerb, store_options
from iosd_host.cli.target_config import default_data
from iosd_host.common.exit_codes import EXIT_NO_INPUT, EXIT_WRONG_STATE
from iosd_host.config.schema import show_size
from iosd_host.store_tools.format.file_names import FileName
from iosd_host.store_tools.format.records import FormatError
from iosd_host.store_tools.format.superblock import RootRole
from iosd_host.store_tools.head_size import THESIS, HeadSizeCost, Proposal, Tally, propose
from iosd_host.store_tools.measure import MeasuredDevice, measure
from iosd_host.store_tools.opening.folders import Refused, as_owner, is_store, lock
from pyosd.cli.frame.params import DurationParam, SizeParam
from pyosd.cli.output.tables import print_lines
from pyosd.cli.output.terminal import output_option

__all__ = ["calibrate"]

SCHEMA = "iosd.calibrate/1"
CITED_BYTES = 1 << 40
"""For an empty store the table assumes 1 TiB of objects."""


@dataclass(frozen=True)
class Calibration:
    """All there is to print."""

    data: MeasuredDevice
    ssd: MeasuredDevice | None
    proposal: Proposal | None
    needs: Sequence[HeadSizeCost]
    objects: int
    stored_bytes: int
    notes: Sequence[str]


# ---- the store ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def held(folders: Sequence[tuple[Path, RootRole]]) -> Iterator[bool]:
    """Keep targets from opening these stores meanwhile.  Yields: whether one is served already."""
    served = False
    with contextlib.ExitStack() as stack:
        for path, role in folders:
            if not is_store(path, role):
                continue
            try:
                stack.callback(os.close, lock(path))
            except Refused as error:
                if error.code != EXIT_WRONG_STATE:
                    raise
                served = True
        yield served


def sizes_of(roots: Sequence[Path]) -> Iterator[int]:
    """Lengths of all objects that have data, from their files: a head and its tail are one object.

    Memory for one folder of files at a time; what is removed meanwhile is left out.
    """
    folders: dict[str, None] = {}
    for root in roots:
        with contextlib.suppress(FileNotFoundError):
            folders |= dict.fromkeys(sorted(each.name for each in (root / "data").iterdir()))
    for partition in folders:
        for number in range(256):
            lengths: dict[tuple[int, int], int] = {}
            for root in roots:
                for name, length in files_in(root / "data", f"{partition}/{number:02x}"):
                    key = name.place.object_id, name.generation
                    lengths[key] = lengths.get(key, 0) + length
            yield from lengths.values()


def files_in(data: Path, folder: str) -> Iterator[tuple[FileName, int]]:
    """Data files of one folder, and their lengths."""
    try:
        entries = os.scandir(data / folder)
    except (FileNotFoundError, NotADirectoryError):
        return
    with entries:
        for entry in entries:
            with contextlib.suppress(FormatError, FileNotFoundError):
                name = FileName.parse(f"{folder}/{entry.name}")
                yield name, entry.stat(follow_symlinks=False).st_size


# ---- all of it ---------------------------------------------------------------------------------------


def examine(data: Path, ssd: Path | None, seconds: float, space: int) -> Calibration:
    """Measure, and look at the sizes.  Raises: Refused."""
    roots = [data] if ssd is None else [data, ssd]
    for path in roots:
        if not path.is_dir():
            raise Refused(EXIT_NO_INPUT, f"'{path}' is no folder: make it, or give another")
    roles = [(data, RootRole.MAIN)] + ([(ssd, RootRole.HEADS)] if ssd is not None else [])
    with as_owner(data), held(roles) as served:
        devices = [measure(path, seconds, space) for path in roots]
        tally = Tally()
        for length in sizes_of(roots):
            tally.add(length)
    notes = list(notes_on(devices, served))
    if tally.stored_bytes:
        needs, objects, stored = tally.needs(), tally.objects, tally.stored_bytes
    else:
        needs, objects, stored = THESIS.needs(CITED_BYTES), 0, CITED_BYTES
    faster = devices[1] if ssd is not None else None
    proposal = propose(devices[0].access_s, faster.best_write.write_bytes_s) if faster else None
    return Calibration(devices[0], faster, proposal, needs, objects, stored, notes)


def notes_on(devices: Sequence[MeasuredDevice], served: bool) -> Iterator[str]:
    """Notes about the figures."""
    if served:
        yield "a target serves this store: its commands shared the devices with the measurement"
    if len(devices) == 1:
        yield "no --ssd: nothing to propose"
    elif devices[0].number == devices[1].number:
        yield "both folders are on one file system: the figures are of one device, measured twice"
    elif devices[0].access_s < 2 * devices[1].access_s:
        yield "the device of --data is about as quick as that of --ssd: heads gain little"


def as_json(outcome: Calibration) -> dict[str, Any]:
    """One object of schema iosd.calibrate/1."""
    devices = {"data": outcome.data, "ssd": outcome.ssd}
    shown = {
        name: {
            "path": str(device.path),
            "file_system": device.file_system,
            "access_s": device.access_s,
            "accesses": device.accesses,
            "file_bytes": device.file_bytes,
            "rates": [asdict(rate) for rate in device.rates],
        }
        for name, device in devices.items()
        if device is not None
    }
    needs = [
        {**asdict(need), "share_of_bytes": need.ssd_bytes / outcome.stored_bytes}
        for need in outcome.needs
    ]
    return {
        "schema": SCHEMA,
        "devices": shown,
        "proposal": asdict(outcome.proposal) if outcome.proposal else None,
        "sizes": {
            "from": "store" if outcome.objects else "thesis",
            "objects": outcome.objects,
            "stored_bytes": outcome.stored_bytes,
        },
        "needs": needs,
        "notes": list(outcome.notes),
    }


# ---- for people ----------------------------------------------------------------------------------------


def seconds_text(seconds: float) -> str:
    """Milliseconds as a person would say them."""
    return f"{seconds * 1e3:.3g} ms"


def rate_text(bytes_s: float) -> str:
    """Megabytes a second, as devices are sold."""
    return f"{bytes_s / 1e6:.3g} MB/s" if bytes_s < 1e9 else f"{bytes_s / 1e6:.0f} MB/s"


def bytes_text(count: float) -> str:
    """With a unit, three digits."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} TiB"


def device_lines(outcome: Calibration) -> Iterator[str]:
    """Access times, then rates side by side."""
    devices = {"data": outcome.data} | ({"ssd": outcome.ssd} if outcome.ssd else {})
    for name, device in devices.items():
        yield (
            f"--{name:<5}{device.path} ({device.file_system}): {seconds_text(device.access_s)} to read "
            f"4 KiB anywhere in {show_size(device.file_bytes)} (median of {device.accesses})"
        )
    yield ""
    yield f"{'block':<10}" + "".join(f"{f'{n} read':>14}{f'{n} write':>14}" for n in devices)
    for rates in zip(*(device.rates for device in devices.values()), strict=True):
        figures = (rate_text(f) for r in rates for f in (r.read_bytes_s, r.write_bytes_s))
        yield f"{show_size(rates[0].block_bytes):<10}" + "".join(f"{text:>14}" for text in figures)


def proposal_lines(proposal: Proposal, ssd: MeasuredDevice) -> Iterator[str]:
    """The arithmetic of the rule."""
    block = show_size(ssd.best_write.block_bytes)
    yield "head size = access time of --data x rate of writes to --ssd"
    yield (
        f"          = {seconds_text(proposal.access_s)} x {rate_text(proposal.write_bytes_s)} "
        f"(blocks of {block}) = {proposal.exact_bytes / 1e6:.3g} MB"
    )
    head = show_size(proposal.head_bytes)
    yield f"          -> {head}, the power of two below (64KiB to 16MiB)"
    yield f"New objects get it from a target that is served with --head-size {head}."


def need_lines(outcome: Calibration) -> Iterator[str]:
    """The space for each head size, with a mark at the proposed one."""
    if outcome.objects:
        stored = bytes_text(outcome.stored_bytes)
        yield f"For the objects of this store that have data ({outcome.objects}, {stored}):"
    else:
        yield "For 1 TiB of objects of the sizes that Runde's thesis cites (no object here has data):"
    yield f"{'head size':<12}{'SSD needed':>12}{'of all bytes':>14}{'objects wholly on SSD':>24}"
    for need in outcome.needs:
        chosen = outcome.proposal is not None and need.head_bytes == outcome.proposal.head_bytes
        yield (
            f"{show_size(need.head_bytes):<12}{bytes_text(need.ssd_bytes):>12}"
            f"{need.ssd_bytes / outcome.stored_bytes:>14.1%}{need.whole:>24.1%}"
            + ("  <- proposed" if chosen else "")
        )


def lines(outcome: Calibration) -> Iterator[str]:
    """The report."""
    yield from device_lines(outcome)
    yield ""
    if outcome.proposal and outcome.ssd:
        yield from proposal_lines(outcome.proposal, outcome.ssd)
        yield ""
    yield from need_lines(outcome)
    for note in outcome.notes:
        yield f"note: {note}"


@click.command(cls=StoreVerb)
@store_options
@click.option(
    "--seconds",
    type=DurationParam(0.5, 3600),
    default="10s",
    help="Approximate time to measure each device, 500ms to 1h.  [10s]",
)
@click.option(
    "--space",
    type=SizeParam("16MiB", "1TiB"),
    default="256MiB",
    show_default=True,
    help="Disk space to use for the measurement, at most a quarter of the free space.",
)
@output_option("text", "json")
@click.pass_obj
def calibrate(
    settings: Settings, /, *, data: Path | None, ssd: Path | None, seconds: float, space: int
) -> None:
    """Measure the two devices of a store and propose a head size.

    The command measures with direct I/O on a temporary file in each folder: access time by random
    reads of 4 KiB, throughput by transfers of 4 KiB to 16 MiB. The folders need not contain a
    store.  The head size is the access time of --data x the rate of writes to --ssd: what the SSD
    can move before a hard disk begins.

    For each head size a table has its space on the SSD and the share of objects that fit there
    completely. It uses the sizes of the store's data files, or without files a published study.

    A target can serve the store meanwhile; then both are slower. A folder without direct I/O (for
    example in memory) is refused.

    Exit 0: measured; 1: the folders cannot be measured; 66: no such folder.
    """
    outcome = examine(data or default_data(), ssd, seconds, space)
    if settings.output == "json":
        click.echo(json.dumps(as_json(outcome)))
        return
    print_lines(lines(outcome))
