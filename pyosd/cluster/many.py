# SPDX-License-Identifier: GPL-2.0-or-later
"""Many: one handle over several targets.

Not here: one function over objects of all of them (run.py), where copies belong (placement.py).
"""

from __future__ import annotations

import operator
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self
from urllib.parse import urlsplit

from pyosd.cluster import near
from pyosd.cluster.at_once import at_once, naming
from pyosd.cluster.board import Board
from pyosd.cluster.map_object import MAP
from pyosd.cluster.placement import (
    COPIES,
    UNFINISHED,
    Copies,
    Seal,
    decode_copies,
    encode_copies,
    place,
    said_of,
)
from pyosd.cluster.run import Run
from pyosd.errors import LoginRejected, NotFound, OSDError, Unreachable
from pyosd.forks import after_fork
from pyosd.iscsi.session import STARTING
from pyosd.jobs.source import module_source
from pyosd.target import Target, connect
from pyosd.types import ObjectRef, PartitionId, ref
from pyosd.wire.exec_params import Limits

__all__ = ["Many", "many"]

Combine = str | Callable[..., Any]
Weights = Callable[[Any], float]

_SLICES = 16  # of a target, at least, so that what one loses is little
_SLICE_MOST = 256  # objects
_RETRY = 0.1  # seconds between two attempts to reach a target
_ID_BITS = 62
_NAMED: dict[str, tuple[Callable[..., Any], bool]] = {
    "sum": (operator.add, False),
    "min": (min, False),
    "max": (max, False),
    "mean": (near.mean, True),
}


class Many:
    """Several targets as one.  A context manager that logs out of all.

    Args: targets: URLs, or a name for each URL.  Copies are placed and found by these names.  The
        name of a URL alone is the URL without user, secret and query.
        login: called with a URL in place of connect(), where each target needs options of its own.
        options: of connect(), for each target.
    """

    def __init__(
        self,
        targets: Iterable[str] | Mapping[str, str],
        *,
        login: Callable[[str], Target] | None = None,
        **options: Any,
    ) -> None:
        if isinstance(targets, str):
            raise TypeError("targets is a list of URLs, not one URL")
        if not isinstance(targets, Mapping):
            urls = list(targets)
            if other := next((each for each in urls if not isinstance(each, str)), None):
                raise TypeError(f"targets are URLs, not {type(other).__name__}: give its url")
            targets = {_name_of(url): url for url in urls}
            if len(targets) != len(urls):
                raise ValueError("a target is named twice")
        if not targets:
            raise ValueError("there are no targets: give at least one URL")
        self._urls, self._login = dict(targets), login
        self._options = options
        self._locks = {name: threading.Lock() for name in self._urls}
        self._targets: dict[str, Target] = {}
        after_fork(self, Many._renew)

    def _renew(self) -> None:
        """Have locks that no thread of the parent holds (pyosd.forks)."""
        self._locks = {name: threading.Lock() for name in self._urls}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Log out of all targets; jobs continue.  Can be called again."""
        at_once(lambda name: self._targets[name].close(), [*self._targets])

    @property
    def names(self) -> tuple[str, ...]:
        """The targets' names."""
        return tuple(self._urls)

    def target(self, name: str) -> Target:
        """The target of that name, logged in at the first use.

        Raises: KeyError: no such name; as connect().
        """
        with self._locks[name]:
            if name not in self._targets:
                self._targets[name] = self._connect(name)
            return self._targets[name]

    def _connect(self, name: str) -> Target:
        url = self._urls[name]
        return self._login(url) if self._login else connect(url, **self._options)

    @property
    def patience(self) -> float:
        """Seconds after which a target that does not answer, or runs no jobs, counts as lost."""
        return float(self._options.get("reconnect_timeout", 10.0))

    def gone(self, name: str) -> str:
        """Ask a target on a session of its own whether it answers.

        A target that refuses is asked again for reconnect_timeout.

        Returns: why it cannot be used; "" if it answers.
        """
        end = time.monotonic() + self.patience
        while True:
            try:
                with self._connect(name) as probe:
                    probe.test_unit_ready()
                return ""
            except Exception as error:  # whatever it is, the target cannot be used
                passing = isinstance(error, Unreachable) and (
                    not isinstance(error, LoginRejected) or error.status in STARTING
                )
                if not passing or time.monotonic() >= end:
                    return str(error) or type(error).__name__
            time.sleep(_RETRY)

    def put(self, partition_id: int, data: bytes, *, copies: int = 2) -> Copies:
        """Write an object to several targets: to all of them, or the call fails.

        Each target must have the partition. The object has the same ids everywhere. One command
        writes a copy, so data has at most 64 MiB.

        Raises: OSDError: a target refused or is not reachable; a note has its name. Copies made before
            were removed where their targets answered.  ValueError: as place().
        """
        obj = ref(partition_id, (1 << _ID_BITS) | secrets.randbits(_ID_BITS))
        chosen = place(obj, self.names, copies)
        said = [encode_copies(chosen), Seal.of(data).encode()]
        tried: list[str] = []
        try:
            for name in chosen:
                with naming(name):
                    target = self.target(name)
                    tried.append(name)
                    target.create_and_write(
                        PartitionId(partition_id), data, 0, obj.object_id, attributes=said
                    )
        except BaseException as error:  # also Ctrl-C: nobody would know the object
            for name in tried:
                try:
                    self.target(name).remove(obj)
                except NotFound:
                    pass
                except OSDError as stays:
                    error.add_note(f"a copy may be left at {name}: {stays}")
            raise
        return Copies(obj, chosen)

    def objects(self, partition_id: int, *, without: Iterable[str] = ()) -> list[Copies]:
        """The objects of a partition at all targets, each once, with the targets that have copies.

        Args: without: names of targets that are known to be lost.  Objects that have no other copy are
            missing then.
        Raises: Unreachable, NotFound: a target does not answer, or has no such partition. ValueError: an
            attribute of a copy has no valid value.
        """
        found: dict[ObjectRef, Copies] = {}
        lost = {*without}
        for name in self.names:
            if name in lost:
                continue
            with naming(name):
                wanted = [COPIES, UNFINISHED]
                listed = [*self.target(name).list_attributes(PartitionId(partition_id), wanted)]
            for each in listed:
                has = {attribute.id: attribute.value for attribute in each.attributes}
                if each.object_id == MAP or has.get(UNFINISHED):
                    continue
                obj = ref(partition_id, each.object_id)
                known = found[obj].targets if obj in found else ()
                with said_of(f"{obj} at {name}"):
                    says = decode_copies(bytes(has.get(COPIES, b""))) or (name,)
                found[obj] = Copies(obj, tuple(dict.fromkeys((*known, *says))))
        return list(found.values())

    def map_objects(
        self,
        fn: Callable[..., Any],
        objects: Iterable[Copies],
        combine: Combine | None = None,
        *,
        weights: Weights | None = None,
        at_once: int = 0,
        retries: int = 2,
        speculate: bool = True,
        limits: Limits | None = None,
        pool: str = "",
    ) -> Run:
        """Call fn(object) beside the data for each object, in few arrays of jobs for each target.

        The functions are sent as source, as by Target.exec(). They can run more than once for an object,
        at the same or another target.  Their writes must not depend on that.

        Args:
            fn: is called with an object of the module osd; its value is sent as JSON.
            objects: as objects() and put() return them.
            combine: "sum", "min", "max" or "mean", or a function combine(a, b), associative and
                commutative. Values are combined at each target first, then here.
            weights: function that returns the weight of an object, for "mean"; None: each is 1.  A function
                combine is then called as combine(a, weight_a, b, weight_b).
            at_once: most jobs that run at a time at one target; 0: no such limit.
            retries: how often an object is tried again after a fault of a target or a job.
            speculate: run the slowest slices also at another target that has the objects.
            limits, pool: of each job, as for Target.exec().

        Raises: ValueError, TypeError: a function cannot be sent; an object is named twice.
        """
        copies = list(objects)
        for each in copies:
            if not isinstance(each, Copies):
                raise TypeError(
                    f"an object is pyosd.Copies, as of objects() or put(), not {each!r}"
                )
        order = [each.object for each in copies]
        if len({*order}) != len(order):
            raise ValueError("an object is named twice")
        if retries < 0:
            raise ValueError("retries must not be negative")
        if weights and (combine is None or combine in ("sum", "min", "max")):
            raise ValueError('weights need combine="mean" or a function of two values and weights')
        combining = None if combine is None else combining_of(combine, weights is not None)
        sources = {"fn": module_source(fn)}
        if combining:
            sources |= {
                "combine": module_source(combining[0]),
                "merged": module_source(near.merged),
            }
        if weights:
            sources["weights"] = module_source(weights)
        size = -(-len(copies) // (len(self._urls) * _SLICES))
        size = min(max(size, 1), _SLICE_MOST)
        name = getattr(fn, "__name__", "")
        job = {"at_once": at_once, "limits": limits, "pool": pool, "name": name}
        board = Board(copies, self.names, size, retries, speculate)
        return Run(self, board, order, combining, {"sources": sources, "size": size, "job": job})


def combining_of(combine: Combine, weighted: bool) -> tuple[Callable[..., Any], bool]:
    """The function that combines, and whether it takes weights.

    Raises: ValueError: a name that means none.
    """
    if not isinstance(combine, str):
        return combine, weighted
    if combine not in _NAMED:
        raise ValueError(f"combine is a function or one of {', '.join(_NAMED)}, not {combine!r}")
    return _NAMED[combine]


def _name_of(url: str) -> str:
    """A URL without what is secret or says how to connect."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def many(
    targets: Iterable[str] | Mapping[str, str],
    *,
    login: Callable[[str], Target] | None = None,
    **options: Any,
) -> Many:
    """Join several targets in one handle, which logs in to each at its first use.

    Args:
        targets: URLs, or a mapping of names to URLs.
        login: called with a URL in place of connect(), where each target needs options of its own.
        options: of connect(), for each target.

    Raises: ValueError: there are no targets, or one is named twice.
    """
    return Many(targets, login=login, **options)
