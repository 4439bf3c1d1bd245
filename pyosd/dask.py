# SPDX-License-Identifier: GPL-2.0-or-later
"""Collections of Dask whose leaves are jobs near the data, on several targets.

    near = Near({"a": "iscsi://a.example/...", "b": "iscsi://b.example/..."})
    counts = near.bag(words, near.copies(0x10000))     # a dask.bag of what words(obj) returns
    total = near.reduce(words, near.copies(0x10000), "sum").compute()

A leaf is a coroutine: on a worker of `distributed` it waits for its job on the worker's event loop and
holds no thread.  Its objects have the same preferred target.  If that is lost, the leaf works at the
targets that have the other copies.  Needs dask, and distributed for workers: the extra `dask`.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

import dask
import dask.bag
from dask._task_spec import Task
from dask.delayed import Delayed, delayed
from dask.highlevelgraph import HighLevelGraph
from dask.utils import funcname

from pyosd.cluster import near as travelling
from pyosd.cluster.leaf import NearError, Sites, Work, close_sessions, run_leaf
from pyosd.cluster.many import Combine, Many, combining_of
from pyosd.cluster.placement import Copies
from pyosd.jobs.source import module_source
from pyosd.wire.exec_params import Limits

if TYPE_CHECKING:
    import dask.bag as bags
    import dask.dataframe as frames

__all__ = ["Near", "NearError"]


class _Leaf(Task):  # type: ignore[misc,unused-ignore]
    """A task that is a coroutine; it is not fused with others, which are none."""

    __slots__ = ()

    @property
    def block_fusion(self) -> bool:
        return True


def _leaf(sites: Sites, work: Work, part: list[Copies]) -> Any:
    """The coroutine for an event loop's thread; in another thread run it to its end."""
    made = run_leaf(sites, work, part)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_alone(made))
    return made


# By this a worker of distributed knows a function whose value it awaits in its event loop.
vars(_leaf)["__tornado_coroutine__"] = True


async def _alone(made: Any) -> Any:
    try:
        return await made
    finally:
        await close_sessions()


def _first(pairs: list[Any]) -> Any:
    return pairs[0][0] if pairs else None


def _merged(parts: list[list[Any]], combine: Callable[..., Any], weighted: bool) -> list[Any]:
    return travelling.merged([pair for part in parts for pair in part], combine, weighted)


def _frame(rows: list[Any], meta: Any) -> Any:
    """Records of several objects as one DataFrame with the columns and types of meta."""
    import pandas

    records = [record for part in rows for record in part]
    columns = list(meta.columns)
    return pandas.DataFrame(records, columns=columns).astype(meta.dtypes.to_dict())


class Near:
    """Targets on which leaves work.

    Args: targets: URLs by name, as for pyosd.many().
        options: of connect(), for each target; they travel to the workers.
    """

    def __init__(self, targets: Mapping[str, str], **options: Any) -> None:
        if isinstance(targets, str) or not targets:
            raise ValueError("there are no targets: give a mapping of names to URLs")
        self._sites = Sites(dict(targets), options)

    def copies(self, partition_id: int, *, without: Iterable[str] = ()) -> list[Copies]:
        """The objects of a partition at all targets, as Many.objects() gives them."""
        with Many(self._sites.urls, **self._sites.options) as cluster:
            return cluster.objects(partition_id, without=without)

    def delayed(
        self,
        fn: Callable[..., Any],
        objects: Iterable[Copies],
        *,
        leaf: int = 64,
        limits: Limits | None = None,
        pool: str = "",
    ) -> list[Delayed]:
        """Lists of values of fn(object), as dask.delayed: one for each leaf.

        Args:
            fn: as for Many.map_objects(); it can run more than once for an object.
            leaf: most objects of a leaf, which is one job.
            limits, pool: of each job, as for Target.exec().

        Raises: ValueError, TypeError: fn cannot travel.
        """
        work = Work({"fn": module_source(fn)}, limits=limits, pool=pool, name=funcname(fn))
        return self._leaves(work, objects, leaf)

    def bag(self, fn: Callable[..., Any], objects: Iterable[Copies], **how: Any) -> bags.Bag:
        """The values of fn(object) as a bag with a partition for each leaf.  how: as for delayed()."""
        parts = self.delayed(fn, objects, **how)
        if not parts:
            return cast("bags.Bag", dask.bag.from_sequence([], npartitions=1))
        return cast("bags.Bag", dask.bag.from_delayed(parts))

    def dataframe(
        self, fn: Callable[..., Any], objects: Iterable[Copies], meta: Any, **how: Any
    ) -> frames.DataFrame:
        """A dask DataFrame of the records that fn(object) returns.

        Args:
            fn: returns a list of records, each a dict with the columns of meta.
            meta: a pandas DataFrame with these columns and their types; rows do not matter.
            how: as for delayed().

        Raises: ValueError: there are no objects.
        """
        import dask.dataframe

        parts = self.delayed(fn, objects, **how)
        if not parts:
            raise ValueError("a dataframe needs at least one object")
        shaped = [delayed(_frame)(each, meta) for each in parts]
        return cast("frames.DataFrame", dask.dataframe.from_delayed(shaped, meta=meta))

    def reduce(
        self,
        fn: Callable[..., Any],
        objects: Iterable[Copies],
        combine: Combine,
        *,
        weights: Callable[[Any], float] | None = None,
        leaf: int = 64,
        split_every: int = 8,
        limits: Limits | None = None,
        pool: str = "",
    ) -> Delayed:
        """The values of fn(object) combined: near the data first, then by a tree of tasks.

        Args:
            combine, weights: as for Many.map_objects().
            split_every: most results that one task of the tree combines.
            leaf, limits, pool: as for delayed().

        Returns: dask.delayed of the combined value; None of no objects.
        """
        found = combining_of(combine, weights is not None)
        if split_every < 2:
            raise ValueError("split_every is at least 2")
        if weights and combine in ("sum", "min", "max"):
            raise ValueError('weights need combine="mean" or a function of two values and weights')
        sources = {
            "fn": module_source(fn),
            "combine": module_source(found[0]),
            "merged": module_source(travelling.merged),
        }
        if weights:
            sources["weights"] = module_source(weights)
        work = Work(sources, found[1], True, limits, pool, funcname(fn))
        level: list[Any] = [*self._leaves(work, objects, leaf)]
        merge = delayed(_merged, pure=True)
        while len(level) > 1:
            level = [
                merge(level[at : at + split_every], *found)
                for at in range(0, len(level), split_every)
            ]
        return cast(Delayed, delayed(_first)(level[0] if level else []))

    def _leaves(self, work: Work, objects: Iterable[Copies], most: int) -> list[Delayed]:
        """A coroutine for each leaf, all in one graph."""
        if most < 1:
            raise ValueError("a leaf has at least one object")
        groups: dict[Any, list[Copies]] = defaultdict(list)
        for each in objects:
            groups[each.targets[:1], each.object.partition_id].append(each)
        parts = [
            group[at : at + most] for group in groups.values() for at in range(0, len(group), most)
        ]
        name = f"near-{work.name}-{dask.base.tokenize(self._sites, work, parts)}"
        keys = [(name, number) for number in range(len(parts))]
        tasks: dict[Any, Any] = {
            key: _Leaf(key, _leaf, self._sites, work, part)
            for key, part in zip(keys, parts, strict=True)
        }
        graph = HighLevelGraph.from_collections(name, tasks, dependencies=[])
        return [Delayed(key, graph, layer=name) for key in keys]
