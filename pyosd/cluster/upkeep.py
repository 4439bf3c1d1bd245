# SPDX-License-Identifier: GPL-2.0-or-later
"""Upkeep: checks the copies of a partition, restores them, and moves them to where they belong.

Nothing is remembered between two calls: each asks the targets how things stand and does what is
left. So a call that was killed is continued by calling it again.

Not here: how copies stand and what an object needs (survey.py).
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from pyosd import requests
from pyosd.cluster.at_once import at_once
from pyosd.cluster.many import Many
from pyosd.cluster.map_object import ClusterMap, MapConflict, read_map, write_map
from pyosd.cluster.placement import (
    COPIES,
    PAGE,
    SEEN,
    UNFINISHED,
    Seal,
    check_copies,
    encode_copies,
    said_of,
)
from pyosd.cluster.survey import (
    CopyFault,
    CopyFinding,
    KnownCopy,
    ObjectNeeds,
    Prefer,
    judge,
    survey,
)
from pyosd.cluster.throttle import Throttle
from pyosd.errors import NotFound, OSDError, StorageError, Unreachable
from pyosd.target import Target
from pyosd.types import AttributeId, AttributeValue, Buffer, ObjectRef, PartitionId
from pyosd.wire.attributes import ALL, DATA_VERSION, LOGICAL_LENGTH, Page
from pyosd.wire.cdb import lists_of

__all__ = ["ClusterReport", "Upkeep"]

_PIECE = (
    4 << 20
)  # bytes of one READ and one WRITE; an object up to this size is copied by one command
_AT_ONCE = 4
_MARK_BYTES = 8  # of a client that writes a copy, or removes an unfinished one
_SERIAL_NUMBER = 0x80  # page of vital product data: the store's id, wherever it is served
_APPLICATION = range(0x1_0000, 0x2000_0000)  # attribute pages that belong to applications
_USERNAME = AttributeId(Page.USER_INFORMATION, 9)


class _ChangedError(Exception):
    """An object changed while it was worked on."""


class _DamagedError(Exception):
    """The data of a source are not those that were checked, though no command has changed them."""

    def __init__(self, target: str, why: str) -> None:
        super().__init__(f"{why}; repair --all-data replaces it if there is another copy")
        self.target = target


class _EndedError(Exception):
    """The work on other objects has ended early: the user or an error stopped it."""


@dataclass
class ClusterReport:
    """The result of check(), repair() or rebalance().

    objects, copies: how many there are.  findings: the faults that are left.
    maps: the map of each target; None: it has none.
    other_targets: how a map differs from the targets of this handle; "": it does not, or this is no
    check().
    written, removed: number of copies.  bytes: of the written copies.
    """

    objects: int = 0
    copies: int = 0
    findings: list[CopyFinding] = field(default_factory=list)
    maps: dict[str, ClusterMap | None] = field(default_factory=dict)
    other_targets: str = ""
    written: int = 0
    removed: int = 0
    bytes: int = 0

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings


class Upkeep:
    """Checks and restores the copies of one partition.

    Args:
        cluster: the targets over which the objects are to be placed.
        partition_id: the partition, which each target has.
        without: names of targets that are known to be lost; their copies belong to others meanwhile.
        rate: most bytes to copy per second; 0: no limit.
        at_once: objects that are worked on at a time.
        all_data: compute the hashes of all data, instead of those that have changed since the last
            repair.
        progress: called with "compared" or "restored", the number of copies or objects that are, and
            the number of all. It is called by one thread at a time.
    """

    def __init__(
        self,
        cluster: Many,
        partition_id: int,
        *,
        without: Iterable[str] = (),
        rate: float = 0,
        at_once: int = _AT_ONCE,
        all_data: bool = False,
        progress: Callable[[str, int, int], None] = lambda step, done, total: None,
    ) -> None:
        self._cluster, self._partition = cluster, partition_id
        self._asked = self._known(cluster.names, without)
        self._members = self._asked
        if at_once < 1:
            raise ValueError("at_once is at least 1")
        self._at_once, self._all_data = at_once, all_data
        self._ended = threading.Event()
        self._throttle = Throttle(rate, sleep=self._ended.wait)
        self._progress = progress
        self._lock = threading.Lock()

    # ---- what people ask for --------------------------------------------------------------------

    def check(self) -> ClusterReport:
        """Report the faults; nothing is changed.

        Raises: Unreachable, NotFound: a target does not answer, or has no such partition.
        """
        report = ClusterReport(maps=self._maps())
        report.other_targets = self._other_targets(report.maps)
        for verdict in self._verdicts(report, None, None):
            report.findings += verdict.findings
        return report

    def repair(self, *, prefer: Prefer | None = None) -> ClusterReport:
        """Write the copies that are missing, and replace those that cannot be used.

        Only copies that are replaced are removed.

        Args: prefer: the copy that counts where copies differ; None: report such an object and leave it.
        Raises: as check(); MapConflict: the map names other targets than this handle.
        """
        report = ClusterReport(maps=self._maps())
        if differs := self._other_targets(report.maps):
            raise MapConflict(differs)
        return self._apply(report, None, prefer, drop=False)

    def rebalance(
        self,
        *,
        copies: int | None = None,
        prefer: Prefer | None = None,
        leaving: Iterable[str] = (),
    ) -> ClusterReport:
        """Make the targets of this handle those of the partition, and move copies accordingly.

        A copy is removed after all targets that belong to its object have theirs.

        Args:
            copies: how many each object shall have; None: as many as it has now.
            prefer: as for repair().
            leaving: names of targets whose copies all move to the others.

        Raises: as check(); MapConflict: another client changes the map, too.
        """
        if self._asked != [*self._cluster.names]:
            raise ValueError("rebalancing needs all targets: leave lost ones out of the handle")
        self._members = self._known(self._asked, leaving)
        if copies is not None:
            check_copies(copies, len(self._members))
        report = ClusterReport(maps=self._maps())
        known = [each for each in report.maps.values() if each]
        last = max(known, key=lambda each: each.version, default=ClusterMap(0, ()))
        lasting = all(
            {*each.targets} == {*self._members} for each in known if each.version == last.version
        )
        new = last if known and lasting else last.after(self._members)
        for name in self._asked:
            write_map(self._cluster.target(name), self._partition, new)
            report.maps[name] = new
        return self._apply(report, copies, prefer, drop=True)

    # ---- how ------------------------------------------------------------------------------------

    @staticmethod
    def _known(names: Iterable[str], without: Iterable[str]) -> list[str]:
        """The names but some.  Raises: ValueError: one is not known, or none is left."""
        known, absent = [*names], {*without}
        if unknown := absent - {*known}:
            raise ValueError(
                f"no target is named {', '.join(sorted(unknown))}; there are {', '.join(known)}"
            )
        if not (left := [name for name in known if name not in absent]):
            raise ValueError("no target is left")
        return left

    def _maps(self) -> dict[str, ClusterMap | None]:
        """The map of each target.

        Raises: ValueError: two names mean one target. Its only copy would count as two.
        """
        asked = at_once(
            lambda name: self._cluster.target(name).inquiry(_SERIAL_NUMBER), self._asked
        )
        stores: dict[bytes, str] = {}
        for name, end in asked.items():
            if (other := stores.setdefault(end.result(), name)) != name:
                raise ValueError(
                    f"{other} and {name} are the same target: correct the list of targets"
                )

        def read(name: str) -> ClusterMap | None:
            with said_of(name):
                return read_map(self._cluster.target(name), self._partition)

        ends = at_once(read, self._asked)
        return {name: end.result() for name, end in ends.items()}

    def _other_targets(self, maps: dict[str, ClusterMap | None]) -> str:
        for name, found in maps.items():
            if found is not None and {*found.targets} != {*self._cluster.names}:
                return (
                    f"the map of {name}, version {found.version}, names {', '.join(found.targets)}; "
                    f"these targets are {', '.join(self._cluster.names)}: rebalance first, or "
                    "correct the list of targets"
                )
        return ""

    def _verdicts(
        self, report: ClusterReport, copies: int | None, prefer: Prefer | None
    ) -> list[ObjectNeeds]:
        states = survey(
            *(self._cluster, self._partition, self._asked),
            all_data=self._all_data,
            progress=partial(self._progress, "compared"),
        )
        report.objects = len(states)
        report.copies = sum(map(len, states.values()))
        return [
            judge(obj, each, self._members, copies=copies, prefer=prefer)
            for obj, each in sorted(states.items())
        ]

    def _apply(
        self, report: ClusterReport, copies: int | None, prefer: Prefer | None, *, drop: bool
    ) -> ClusterReport:
        """Do what the verdicts say, several objects at a time."""
        verdicts = self._verdicts(report, copies, prefer)
        self._ended.clear()
        pool = ThreadPoolExecutor(self._at_once)
        try:
            work = [pool.submit(self._restore, report, each, drop) for each in verdicts]
            for number, each in enumerate(as_completed(work), 1):
                each.result()
                self._progress("restored", number, len(work))
        finally:
            self._ended.set()  # a large copy, or a low rate, would keep its thread for hours
            pool.shutdown(cancel_futures=True)
        return report

    def _restore(self, report: ClusterReport, verdict: ObjectNeeds, drop: bool) -> None:
        """One object.  Raises: Unreachable: a target is lost; all other errors become findings."""
        source, at = verdict.source, ""
        if source is None:
            self._say(report, verdict.findings)
            return
        try:
            if any(not source.equals(each) for each in verdict.replace.values() if each.usable):
                at = source.target
                source = self._hold(verdict, source)
            for at in verdict.write:
                self._copy(verdict, source, at)
                with self._lock:
                    report.written += 1
                    report.bytes += source.length
            for at in verdict.label:
                self._label(verdict, source, at)
            left = [each for each in verdict.findings if each.fault is CopyFault.TOO_FEW]
            if drop:
                for extra in verdict.drop:
                    at = extra.target
                    self._claim(extra, verdict)
                for extra in verdict.drop:
                    at = extra.target
                    self._remove(extra, verdict.object)
                    with self._lock:
                        report.removed += 1
            else:
                left += [each for each in verdict.findings if each.fault is CopyFault.MISPLACED]
            self._say(report, left)
        except Unreachable:
            raise
        except _DamagedError as error:
            found = CopyFinding(verdict.object, error.target, CopyFault.UNREADABLE, str(error))
            self._say(report, [found])
        except (OSDError, _ChangedError) as error:
            self._say(report, [CopyFinding(verdict.object, at, CopyFault.FAILED, str(error))])

    def _say(self, report: ClusterReport, findings: Iterable[CopyFinding]) -> None:
        with self._lock:
            report.findings += findings

    def _hold(self, verdict: ObjectNeeds, source: KnownCopy) -> KnownCopy:
        """Give the data of the source a new version, so that no other client removes it.

        Two clients that prefer different copies would each remove the other one's source.  Each does this
        first, and removes only the version that it has seen: one of them at least stops.

        Returns: the source as it is then.  Raises: VersionMismatch: its data have changed; OSDError.
        """
        obj, target = verdict.object, self._cluster.target(source.target)
        same = AttributeValue(*LOGICAL_LENGTH, source.length.to_bytes(8))
        (version,) = target.set_attributes(obj, [same], [DATA_VERSION], if_version=source.version)
        held = replace(source, version=bytes(version.value))
        if source.as_written:
            target.set_attributes(obj, [AttributeValue(*SEEN, held.version)])
        verdict.versions[source.target] = held.version
        verdict.drop = [held if each is source else each for each in verdict.drop]
        return held

    def _copy(self, verdict: ObjectNeeds, source: KnownCopy, name: str) -> None:
        """Write a copy to a target, by one command or as unfinished until its end.

        A copy that it replaces is removed after the data of the source were read and are right.

        Raises: _DamagedError, _EndedError, _ChangedError, OSDError.
        """
        obj, origin, target = (
            verdict.object,
            self._cluster.target(source.target),
            self._cluster.target(name),
        )
        seal, replaced = Seal(source.digest, source.length), verdict.replace.get(name)
        said = [encode_copies(verdict.named), seal.encode(), *_own_attributes(origin, obj)]
        partition = PartitionId(obj.partition_id)
        if source.length <= _PIECE:
            self._wait_turn(source.length)
            data = self._read(source, obj, 0, source.length)
            _require(seal, Seal.of(data), source.target)
            if replaced:
                self._remove(replaced, obj)
            self._create(target, obj, data, said)
            return
        if replaced and not replaced.unfinished:
            self._read_pieces(verdict, source, lambda at, data: None)
        if replaced:
            self._remove(replaced, obj)
        mark = secrets.token_bytes(_MARK_BYTES)
        target.create(partition, obj.object_id, attributes=[AttributeValue(*UNFINISHED, mark)])
        try:
            self._read_pieces(verdict, source, partial(target.write, obj))
            _swap_mark(target, obj, mark, b"", said)
        except Unreachable:
            raise
        except (OSDError, _ChangedError, _DamagedError):  # on a full target, others need the space
            with suppress(OSDError, _ChangedError):
                _swap_mark(target, obj, mark, secrets.token_bytes(_MARK_BYTES))
                target.remove(obj)
            raise

    def _read_pieces(
        self, verdict: ObjectNeeds, source: KnownCopy, use: Callable[[int, Buffer], None]
    ) -> None:
        """Call use(offset, data) with all data of the source, and check them.  Raises: as _copy()."""
        digest, at = hashlib.sha256(), 0
        while at < source.length:
            size = min(_PIECE, source.length - at)
            self._wait_turn(size)
            data = self._read(source, verdict.object, at, size)
            digest.update(data)
            if len(data) != size:
                break
            use(at, data)
            at += size
        found = Seal(digest.digest(), at)
        _require(Seal(source.digest, source.length), found, source.target)

    def _read(self, source: KnownCopy, obj: ObjectRef, start: int, length: int) -> Buffer:
        """Read the version of the data that was checked.  Raises: _DamagedError, OSDError."""
        origin = self._cluster.target(source.target)
        try:
            return origin.read(obj, start, length, if_version=source.version)
        except StorageError as error:
            raise _DamagedError(source.target, str(error)) from None

    def _wait_turn(self, count: int) -> None:
        """Wait until so many bytes may be copied.  Raises: _EndedError."""
        self._throttle.take(count)
        if self._ended.is_set():
            raise _EndedError

    def _create(
        self, target: Target, obj: ObjectRef, data: Buffer, said: list[AttributeValue]
    ) -> None:
        """CREATE AND WRITE; then record at which version of the data they fit the seal."""
        request = requests.create_and_write(
            PartitionId(obj.partition_id),
            obj.object_id,
            0,
            data,
            attributes=lists_of([DATA_VERSION], said),
        )
        version = target.call(request).attribute(DATA_VERSION).value
        target.set_attributes(obj, [AttributeValue(*SEEN, bytes(version))])

    def _label(self, verdict: ObjectNeeds, source: KnownCopy, name: str) -> None:
        """Bring the attributes of a good copy up to date."""
        values = [
            encode_copies(verdict.named),
            Seal(source.digest, source.length).encode(),
        ]
        values.append(AttributeValue(*SEEN, verdict.versions[name]))
        self._cluster.target(name).set_attributes(verdict.object, values)

    def _claim(self, extra: KnownCopy, verdict: ObjectNeeds) -> None:
        """Say at a surplus copy where the others are, and see that these are not claimed themselves.

        Two clients whose targets differ can each take the other one's copy for surplus.  Each writes
        before it reads, so at least one of them finds the other's claim.

        Raises: _ChangedError: another client moves the copies.
        """
        names = encode_copies(verdict.named)
        with suppress(NotFound):
            self._cluster.target(extra.target).set_attributes(verdict.object, [names])
        for name in verdict.wanted:
            target = self._cluster.target(name)
            found = target.get_attributes(verdict.object, [COPIES, UNFINISHED])
            if {each.id: bytes(each.value) for each in found if each.value} != {
                COPIES: bytes(names.value)
            }:
                raise _ChangedError(f"another client moves the copy at {name}")

    def _remove(self, state: KnownCopy, obj: ObjectRef) -> None:
        """Remove a copy.

        Raises: VersionMismatch: its data have changed since they were checked; _ChangedError: another
            client has finished it.
        """
        target = self._cluster.target(state.target)
        with suppress(NotFound):
            if state.unfinished:
                mark = target.get_attribute(obj, *UNFINISHED)
                if not mark:
                    raise _ChangedError("another client has finished the copy")
                _swap_mark(target, obj, mark, secrets.token_bytes(_MARK_BYTES))
            target.remove(obj, if_version=state.version)


def _swap_mark(
    target: Target,
    obj: ObjectRef,
    before: bytes,
    after: bytes,
    others: Iterable[AttributeValue] = (),
) -> None:
    """Change the mark of an unfinished copy, so that no other client finishes or removes it.

    Raises: _ChangedError: another client has changed it.
    """
    if target.swap_attribute(obj, UNFINISHED, before, after, others) != before:
        raise _ChangedError("another client works on the copy")


def _own_attributes(target: Target, obj: ObjectRef) -> list[AttributeValue]:
    """The attributes that applications have set, and the object's username."""
    asked = [_USERNAME, AttributeId(ALL, ALL)]
    found = {each.id: each for each in target.get_attributes(obj, asked)}
    return [
        each
        for key, each in found.items()
        if each.value and (key == _USERNAME or (key.page in _APPLICATION and key.page != PAGE))
    ]


def _require(expected: Seal, found: Seal, name: str) -> None:
    if found != expected:
        raise _DamagedError(name, "the data are not those that were checked")
