# SPDX-License-Identifier: GPL-2.0-or-later
"""Find the copies of a partition's objects, and decide what each object needs.

survey() asks the targets.  judge() decides about one object and sends nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from pyosd.cluster import near
from pyosd.cluster.at_once import at_once
from pyosd.cluster.board import ObjectOutcome
from pyosd.cluster.many import Many
from pyosd.cluster.map_object import MAP
from pyosd.cluster.placement import (
    COPIES,
    SEAL,
    SEEN,
    UNFINISHED,
    Copies,
    Seal,
    decode_copies,
    place,
    said_of,
)
from pyosd.errors import Unreachable
from pyosd.types import AttributeId, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import DATA_VERSION, LOGICAL_LENGTH, Page, Timestamp
from pyosd.wire.exec_params import Limits

__all__ = ["CopyFault", "CopyFinding", "KnownCopy", "ObjectNeeds", "Prefer", "judge", "survey"]

_MODIFIED = AttributeId(Page.USER_TIMESTAMPS, Timestamp.DATA_MODIFIED)
_WANTED = (COPIES, SEAL, SEEN, UNFINISHED, DATA_VERSION, LOGICAL_LENGTH, _MODIFIED)
_LIMITS = Limits(wall=3600.0, cpu=3600.0)  # of a job that computes hashes
_SHOWN = 12  # hexadecimal digits of a hash in a sentence


class CopyFault(StrEnum):
    """A fault of an object or of one of its copies."""

    MISSING = "missing"
    UNFINISHED = "unfinished"
    UNREADABLE = "unreadable"
    DIFFERS = "differs"
    MISPLACED = "misplaced"
    UNNAMED = "unnamed"
    TOO_FEW = "too few targets"
    FAILED = "failed"


class Prefer(StrEnum):
    """The copy that counts where copies differ."""

    NEWEST = "newest"
    UNCHANGED = "unchanged"


@dataclass(frozen=True)
class CopyFinding:
    """One fault.  target: the one that has the copy or should have it; "": the fault is the object's."""

    object: ObjectRef
    target: str
    fault: CopyFault
    detail: str = ""


@dataclass(frozen=True)
class KnownCopy:
    """One copy as its target describes it.

    names: the targets that the copy's attribute names.
    length, version: of its data.
    modified: when the data changed, in ms since 1970 by the target's clock.
    seal: hash and length of the data as they were written; None: not recorded.
    checked: the data of this version were compared with the seal and are equal.
    unfinished: the copy is still being written, or was abandoned.
    digest: SHA-256 of the data; b"": not known yet.
    unreadable: why the target cannot read the data; "": it can.
    unchecked: why the data could not be compared; "": they could.
    """

    target: str
    names: tuple[str, ...]
    length: int
    version: bytes
    modified: int
    seal: Seal | None = None
    checked: bool = False
    unfinished: bool = False
    digest: bytes = b""
    unreadable: str = ""
    unchecked: str = ""

    @property
    def usable(self) -> bool:
        """Whether the copy is whole and its data are known."""
        return not self.unfinished and not self.unreadable and bool(self.digest)

    def equals(self, other: KnownCopy) -> bool:
        """Whether both copies have the same data."""
        return (self.digest, self.length) == (other.digest, other.length)

    @property
    def as_written(self) -> bool:
        """Whether the data are those that the seal describes."""
        return self.seal == Seal(self.digest, self.length)


@dataclass
class ObjectNeeds:
    """The repairs that an object needs.

    wanted: the targets that belong to it.
    named: the names for the attribute of its copies: wanted, and while there are too few targets also
    names of earlier ones, so that the number of copies is not forgotten.
    source: a copy to read from; None: there is none, or the copies differ.  Then nothing is written.
    write: the targets that need a copy.  replace: the bad copies that some of them have.
    label: the targets whose copy is good, but not its attributes.
    versions: of the data of the good copies, by target.
    drop: copies at targets that do not belong to the object.
    """

    object: ObjectRef
    wanted: tuple[str, ...]
    named: tuple[str, ...]
    source: KnownCopy | None = None
    write: list[str] = field(default_factory=list)
    replace: dict[str, KnownCopy] = field(default_factory=dict)
    label: list[str] = field(default_factory=list)
    versions: dict[str, bytes] = field(default_factory=dict)
    drop: list[KnownCopy] = field(default_factory=list)
    findings: list[CopyFinding] = field(default_factory=list)

    def report(self, target: str, fault: CopyFault, detail: str = "") -> None:
        """Add a finding."""
        self.findings.append(CopyFinding(self.object, target, fault, detail))


States = dict[ObjectRef, dict[str, KnownCopy]]


def _listed(cluster: Many, name: str, partition_id: int) -> dict[ObjectRef, KnownCopy]:
    found = {}
    for each in cluster.target(name).list_attributes(PartitionId(partition_id), _WANTED):
        has = {attribute.id: bytes(attribute.value) for attribute in each.attributes}
        with said_of(f"{ref(partition_id, each.object_id)} at {name}"):
            names, unfinished = decode_copies(has.get(COPIES, b"")), bool(has.get(UNFINISHED))
            if each.object_id == MAP or not (names or unfinished):
                continue
            seal, version = Seal.decode(has.get(SEAL, b"")), has.get(DATA_VERSION, b"")
        checked = seal is not None and bool(version) and has.get(SEEN) == version
        found[ref(partition_id, each.object_id)] = KnownCopy(
            name,
            names,
            int.from_bytes(has.get(LOGICAL_LENGTH, b""), "big"),
            version,
            int.from_bytes(has.get(_MODIFIED, b""), "big"),
            seal,
            checked,
            unfinished,
            seal.digest if checked and seal else b"",
        )
    return found


def survey(
    cluster: Many,
    partition_id: int,
    names: Iterable[str],
    *,
    all_data: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> States:
    """Ask targets for their copies of the objects that put() wrote.

    Jobs at the targets compute the hashes of data that have changed since they were last checked.

    Args:
        names: the targets to ask.
        all_data: compute the hashes of all data.
        progress: called with the number of copies that were compared, and of all to compare.

    Raises: Unreachable, NotFound: a target does not answer, or has no such partition.
        ValueError: an attribute of a copy has no valid value.
    """
    asked = list(names)
    found: States = {}
    for end in at_once(lambda name: _listed(cluster, name, partition_id), asked).values():
        for obj, state in end.result().items():
            found.setdefault(obj, {})[state.target] = state
    runs, total, done = {}, 0, 0
    for name in asked:
        unknown = [
            Copies(obj, (name,))
            for obj, states in found.items()
            if name in states and not states[name].unfinished
            if all_data or not states[name].digest
        ]
        if unknown:
            total += len(unknown)
            runs[name] = cluster.map_objects(
                near.digest_of, unknown, speculate=False, limits=_LIMITS
            )
    try:
        for name, run in runs.items():
            for outcome in run:
                if name in run.lost:
                    raise Unreachable(f"{name}: {run.lost[name]}")
                done += 1
                progress(done, total)
                if outcome.error.startswith("NotFound:"):  # removed since the list was made
                    del found[outcome.object][name]
                else:
                    found[outcome.object][name] = _read(found[outcome.object][name], outcome)
    finally:
        for run in runs.values():
            run.close()
    return {obj: states for obj, states in found.items() if states}


def _read(state: KnownCopy, outcome: ObjectOutcome) -> KnownCopy:
    """The state of a copy after a job has read its data, or has failed to."""
    seen, state = state, replace(state, digest=b"", checked=False)
    if outcome.error.startswith("StorageError:"):
        return replace(state, unreadable=outcome.error)
    if not outcome.ok:
        return replace(state, unchecked=outcome.error)
    try:
        digest, before, after = (bytes.fromhex(each) for each in outcome.value)
    except (TypeError, ValueError):
        digest = before = after = b""
    if len(digest) != hashlib.sha256().digest_size:
        return replace(state, unchecked="the target answered with no hash")
    if before != after:
        return replace(state, unchecked="the data changed while they were read")
    if seen.checked and seen.digest != digest and seen.version == before:
        return replace(
            state, unreadable="the data have changed without a command: they are damaged"
        )
    return replace(state, digest=digest, version=before)


def _source(
    usable: Sequence[KnownCopy], prefer: Prefer | None
) -> tuple[KnownCopy | None, list[KnownCopy]]:
    """The copy that counts; if there is none because copies differ, these copies."""
    contents = {(state.digest, state.length) for state in usable}
    if len(contents) <= 1:
        return (usable[0] if usable else None), []
    if prefer is Prefer.NEWEST:
        last = max(state.modified for state in usable)
        chosen = [state for state in usable if state.modified == last]
    elif prefer is Prefer.UNCHANGED:
        chosen = [state for state in usable if state.as_written]
    else:
        chosen = []
    if len({(state.digest, state.length) for state in chosen}) == 1:
        return chosen[0], []
    return None, [*usable]


def judge(
    obj: ObjectRef,
    states: Mapping[str, KnownCopy],
    members: Sequence[str],
    *,
    copies: int | None = None,
    prefer: Prefer | None = None,
) -> ObjectNeeds:
    """Decide what an object needs.

    Args:
        states: its copies, by target.
        members: the targets over which objects are placed.
        copies: how many the object shall have; None: as many as its copies name.
        prefer: the copy that counts where copies differ; None: differing copies are a fault, and
            nothing is written.
    """
    longest = max((state.names for state in states.values()), key=len)
    count = copies or len(longest) or 1
    wanted = place(obj, members, min(count, len(members)))
    absent = [name for name in dict.fromkeys(longest) if name not in wanted]
    needs = ObjectNeeds(obj, wanted, (*wanted, *absent[: count - len(wanted)]))
    if count > len(members):
        needs.report("", CopyFault.TOO_FEW, f"{count} copies, {len(members)} targets")
    usable = [state for state in states.values() if state.usable]
    source, differing = _source(usable, prefer)
    for state in differing:
        how = "as written" if state.as_written else "changed since it was written"
        text = f"{state.length} bytes, SHA-256 {state.digest.hex()[:_SHOWN]}, {how}"
        needs.report(state.target, CopyFault.DIFFERS, text)
    for name in wanted:
        if name not in states:
            needs.report(name, CopyFault.MISSING)
    for state in states.values():
        _report_faults(needs, state)
    if source and not any(state.unchecked for state in states.values()):
        _plan(needs, states, source)
    return needs


def _report_faults(needs: ObjectNeeds, state: KnownCopy) -> None:
    """Report what is wrong with one copy."""
    name, belongs = state.target, ", ".join(needs.wanted)
    if state.unfinished:
        needs.report(name, CopyFault.UNFINISHED)
    elif state.unreadable:
        needs.report(name, CopyFault.UNREADABLE, state.unreadable)
    elif {*state.names} != {*needs.named}:
        needs.report(name, CopyFault.UNNAMED, f"names {', '.join(state.names)}")
    if name not in needs.wanted:
        needs.report(name, CopyFault.MISPLACED, f"belongs to {belongs}")
    if state.unchecked:
        needs.report(name, CopyFault.FAILED, state.unchecked)


def _plan(needs: ObjectNeeds, states: Mapping[str, KnownCopy], source: KnownCopy) -> None:
    """Set what has to be written, labelled and dropped, if source is the copy that counts."""
    wanted = needs.wanted
    good = {name: state for name, state in states.items() if state.usable and state.equals(source)}
    stays = {name for name, state in good.items() if name in state.names}
    if stays:  # a copy that names only others can be about to be removed: a new one takes its place
        source = source if source.target in stays else good[min(stays)]
        good = {name: state for name, state in good.items() if name in stays or name not in wanted}
    needs.source = source
    needs.write = [name for name in wanted if name not in good]
    needs.replace = {name: states[name] for name in needs.write if name in states}
    needs.versions = {name: state.version for name, state in good.items()}
    needs.label = [
        name
        for name in wanted
        if name in good
        and not (good[name].names == needs.named and good[name].as_written and good[name].checked)
    ]
    needs.drop = [state for name, state in states.items() if name not in wanted]
