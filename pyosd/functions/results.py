# SPDX-License-Identifier: GPL-2.0-or-later
"""Results of functions that a target keeps, and how the data of an object came about.

Methods of Functions, as dialogues.  docs/views.md, "Kept results" and "How data came about".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyosd import errors
from pyosd.commands.attributes import get_attribute, get_attributes
from pyosd.commands.dialogue import Dialogue
from pyosd.types import ROOT, AttributeId, ObjectRef
from pyosd.wire.attributes import ALL, Page

__all__ = ["DataOrigin", "KeptResults", "LastRead", "OriginStage", "origin", "results"]

WHY = 18
FIRST_FIGURE = 9  # of page B000_0005h


@dataclass(frozen=True)
class KeptResults:
    """Results of functions that a target keeps for later READs.

    quota, kept: bytes that the target can keep, and keeps now; quota 0: it keeps none.
    hits: READs of kept data.  computed: READs that computed.
    shared: READs that waited for another one to compute the same.
    evicted: units that were removed to make room.  failed: units that could not be written or read.
    computing: seconds of the READs that computed.  Counts begin when the target starts.
    """

    quota: int
    kept: int
    hits: int
    computed: int
    shared: int
    evicted: int
    failed: int
    computing: float


@dataclass(frozen=True)
class OriginStage:
    """A function that data passed through.

    name: its alias; "": none.  sha256: of its code.  signer: "": it is not signed.
    """

    function: ObjectRef
    name: str
    method: str
    engine: str
    sha256: str
    signer: str


@dataclass(frozen=True)
class LastRead:
    """The last READ of an object.

    version: of the stored data, as data_version() of the source returns it.
    kept: the data were kept results.  seconds: the time it took.  ended_ms: its end, in ms since 1970.
    """

    version: bytes
    kept: bool
    seconds: float
    ended_ms: int


@dataclass(frozen=True)
class DataOrigin:
    """The origin of an object's data at a READ.

    source: the object with the stored bytes.  stages: in the order of a READ.
    deterministic: the target can keep the results.  current: a READ now passes the same stages.
    read: the last READ that passed them; None: it has not ended yet.
    """

    source: ObjectRef
    stages: tuple[OriginStage, ...]
    deterministic: bool
    current: bool
    read: LastRead | None


def results(table: Any) -> Dialogue[KeptResults]:
    """The kept results of functions, and figures since the target started.

    Raises: OSDError: the target runs no functions, or is of an earlier release.
    """
    found = yield from get_attributes(ROOT, [AttributeId(Page.FUNCTIONS_ROOT, ALL)])
    numbers = {each.number: each for each in found if each.page == Page.FUNCTIONS_ROOT}
    try:
        figures = [numbers[FIRST_FIGURE + place].uint for place in range(8)]
    except KeyError:
        raise errors.OSDError(0, 0, 0, "this target keeps no results of functions") from None
    quota, kept, hits, computed, shared, evicted, failed, usec = figures
    return KeptResults(quota, kept, hits, computed, shared, evicted, failed, usec / 1e6)


def stage_of(found: Mapping[str, Any]) -> OriginStage:
    """A stage of the attribute."""
    return OriginStage(
        ObjectRef.parse(str(found["function"])),
        name=str(found["name"]),
        method=str(found["method"]),
        engine=str(found["engine"]),
        sha256=str(found["sha256"]),
        signer=str(found["signer"]),
    )


def decode(value: bytes) -> DataOrigin:
    """The attribute.  Raises: ProtocolError: it cannot be read."""
    try:
        found = json.loads(value)
        read = found.get("read")
        return DataOrigin(
            ObjectRef.parse(str(found["source"])),
            tuple(stage_of(each) for each in found["stages"]),
            deterministic=bool(found["deterministic"]),
            current=bool(found["current"]),
            read=read
            and LastRead(
                bytes.fromhex(read["version"]),
                kept=bool(read["kept"]),
                seconds=int(read["usec"]) / 1e6,
                ended_ms=int(read["ended_msec"]),
            ),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise errors.ProtocolError(f"how data came about cannot be read: {error}") from None


def origin(table: Any, obj: ObjectRef) -> Dialogue[DataOrigin | None]:
    """The origin of an object's data at its last READ: functions, source, time.

    The target has this in memory for about 1,000 objects that were read through functions.  None: it
    knows no such READ since it started.
    """
    value = bytes((yield from get_attribute(obj, Page.STACK, WHY)))
    return decode(value) if value else None
