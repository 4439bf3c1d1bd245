# SPDX-License-Identifier: GPL-2.0-or-later
"""Every metric there is: a row each, with what it means and where a SNAPSHOT (docs/control.md) has it.

Pure.  What a target does not say is absent, never 0; what it says that is no number is absent, too, for
a target's word is not trusted.  Not here: text (exporter.py), HTTP (console/).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["METRICS", "Histogram", "Metric", "Reading", "Sample", "number", "samples"]

PARTITIONS_MOST = 16  # as many as a target lists: the largest
SERIES_MOST = 2000  # of one metric; a target that says more is not believed


@dataclass(frozen=True)
class Histogram:
    """Counts up to each bound, those of smaller bounds included; the last is of all.

    Attributes:
        bounds: seconds.
        total: of all that was counted, seconds.
    """

    bounds: tuple[float, ...]
    counts: tuple[float, ...]
    total: float


@dataclass(frozen=True)
class Sample:
    """A value, with a text for each label of its metric."""

    labels: tuple[str, ...]
    value: float | Histogram


@dataclass(frozen=True)
class Reading:
    """What the figures of one moment come from.

    Attributes:
        snapshot: the target's answer.
        decisions: of the policy since the manager started, by pool and direction.
        up: whether the manager is connected to the target and its snapshot is recent; None: not known.
    """

    snapshot: Mapping[str, Any]
    decisions: Mapping[tuple[str, str], int] = field(default_factory=dict)
    up: bool | None = None


Read = Callable[[Reading], Iterator[Sample]]


@dataclass(frozen=True)
class Metric:
    """A row.

    Attributes:
        kind: gauge, counter or histogram.
        help: for people; one sentence without a stop.
    """

    name: str
    kind: str
    labels: tuple[str, ...]
    help: str
    read: Read


# ---- of what a target says -----------------------------------------------------------------------


def number(value: object) -> float | None:
    """A finite number that is not negative; None: it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    found = float(value) if abs(value) < 2**63 else math.inf
    return found if math.isfinite(found) and found >= 0 else None


def table(value: object) -> Mapping[str, Any]:
    """An object; anything else is an empty one."""
    return value if isinstance(value, dict) else {}


def rows(value: object) -> Iterator[Mapping[str, Any]]:
    """The objects of an array."""
    return (row for row in value if isinstance(row, dict)) if isinstance(value, list) else iter(())


def at(snapshot: Mapping[str, Any], path: str) -> Any:
    """What stands at a path, words with dots between; None: nothing."""
    for word in path.split("."):
        snapshot = table(snapshot).get(word)  # type: ignore[assignment]
    return snapshot


def histogram(value: object, bounds: object) -> Histogram | None:
    """Of {"counts": [a step each, and those beyond], "sum": seconds}; None: it is none."""
    if not isinstance(bounds, list) or not isinstance(table(value).get("counts"), list):
        return None
    limits = [number(bound) for bound in bounds]
    counts = [number(count) for count in table(value)["counts"]]
    total = number(table(value).get("sum"))
    if total is None or None in limits or None in counts or len(counts) != len(limits) + 1:
        return None
    upper = tuple(limit for limit in limits if limit is not None)
    if list(upper) != sorted(set(upper)):
        return None
    return Histogram(upper, tuple(itertools.accumulate(c for c in counts if c is not None)), total)


def named(row: Mapping[str, Any], keys: Sequence[str]) -> tuple[str, ...] | None:
    """Texts for labels; None: one is missing."""
    found = [row.get(key) for key in keys]
    if any(isinstance(word, bool) or not isinstance(word, str | int) for word in found):
        return None
    return tuple(str(word)[:64] for word in found)


# ---- where it stands -----------------------------------------------------------------------------


def one(path: str, factor: float = 1) -> Read:
    """A number."""

    def read(reading: Reading) -> Iterator[Sample]:
        value = number(at(reading.snapshot, path))
        if value is not None:
            yield Sample((), value * factor)

    return read


def parts(path: str, labels: Mapping[str, str]) -> Read:
    """Numbers of an object, each under its label."""

    def read(reading: Reading) -> Iterator[Sample]:
        found = table(at(reading.snapshot, path))
        for key, label in labels.items():
            value = number(found.get(key))
            if value is not None:
                yield Sample((label,), value)

    return read


def flag(path: str) -> Read:
    """Whether it is so."""

    def read(reading: Reading) -> Iterator[Sample]:
        value = at(reading.snapshot, path)
        if isinstance(value, bool):
            yield Sample((), float(value))

    return read


def each(path: str) -> Read:
    """A number a name: {"deadlock": 3}."""

    def read(reading: Reading) -> Iterator[Sample]:
        for name, found in table(at(reading.snapshot, path)).items():
            value = number(found)
            if value is not None:
                yield Sample((str(name)[:64],), value)

    return read


def listed(path: str, keys: Sequence[str], value_key: str = "count") -> Read:
    """An array of rows with words and a number: [{"command": "READ", "status": "good", "count": 5}]."""

    def read(reading: Reading) -> Iterator[Sample]:
        for row in rows(at(reading.snapshot, path)):
            words, value = named(row, keys), number(row.get(value_key))
            if words is not None and value is not None:
                yield Sample(words, value)

    return read


def pooled(within: Read) -> Read:
    """The same of each pool, its name in front."""

    def read(reading: Reading) -> Iterator[Sample]:
        bounds = reading.snapshot.get("bounds")
        for pool in rows(reading.snapshot.get("pools")):
            name = named(pool, ("name",))
            if name is not None:
                for sample in within(Reading({**pool, "bounds": bounds})):
                    yield Sample(name + sample.labels, sample.value)

    return read


def summed(within: Read) -> Read:
    """The same of all pools together."""

    def read(reading: Reading) -> Iterator[Sample]:
        sums: dict[tuple[str, ...], float] = {}
        for pool in rows(reading.snapshot.get("pools")):
            for sample in within(Reading(pool)):
                if isinstance(sample.value, float):
                    sums[sample.labels] = sums.get(sample.labels, 0.0) + sample.value
        for labels, value in sums.items():
            yield Sample(labels, value)

    return read


def timed(path: str) -> Read:
    """A histogram."""

    def read(reading: Reading) -> Iterator[Sample]:
        found = histogram(at(reading.snapshot, path), reading.snapshot.get("bounds"))
        if found is not None:
            yield Sample((), found)

    return read


def timed_each(path: str) -> Read:
    """A histogram a name."""

    def read(reading: Reading) -> Iterator[Sample]:
        for name, value in table(at(reading.snapshot, path)).items():
            found = histogram(value, reading.snapshot.get("bounds"))
            if found is not None:
                yield Sample((str(name)[:64],), found)

    return read


def build(reading: Reading) -> Iterator[Sample]:
    """The release that the target runs."""
    version = named(table(at(reading.snapshot, "target")), ("version",))
    if version is not None:
        yield Sample(version, 1.0)


def alive(reading: Reading) -> Iterator[Sample]:
    """Jobs of a pool that have not ended."""
    for state, key in (("QUEUED", "queued"), ("RUNNING", "busy")):
        for sample in one(key)(reading):
            yield Sample((state,), sample.value)


def decided(reading: Reading) -> Iterator[Sample]:
    """What the policy did."""
    for words, count in reading.decisions.items():
        yield Sample(words, float(count))


# ---- the table -----------------------------------------------------------------------------------


def connected(reading: Reading) -> Iterator[Sample]:
    """Whether the figures are of a target that answers."""
    if reading.up is not None:
        yield Sample((), float(reading.up))


def devices(reading: Reading) -> Iterator[Sample]:
    """Space on each device."""
    for row in rows(reading.snapshot.get("heads")):
        tier = named(row, ("tier",))
        total, free, data = (number(row.get(key)) for key in ("total", "free", "data"))
        if tier is None:
            continue
        if total is not None and free is not None:
            yield Sample((*tier, "total"), total)
            yield Sample((*tier, "free"), free)
            yield Sample((*tier, "used"), max(0.0, total - free))
        if data is not None:
            yield Sample((*tier, "data"), data)


def capacity(reading: Reading) -> Iterator[Sample]:
    """What the store may hold, and holds."""
    store = table(reading.snapshot.get("store"))
    for kind, key in (
        ("total", "capacity_bytes"),
        ("used", "charged_bytes"),
        ("free", "free_bytes"),
        ("data", "used_bytes"),
    ):
        value = number(store.get(key))
        if value is not None:
            yield Sample((kind,), value)


def largest(kinds: Sequence[tuple[str, str]]) -> Read:
    """The partitions with most data, each of these keys by kind; "": without a label for the kind."""

    def read(reading: Reading) -> Iterator[Sample]:
        found = itertools.islice(rows(at(reading.snapshot, "store.largest")), PARTITIONS_MOST)
        for row in found:
            name = named(row, ("partition",))
            for kind, key in kinds if name is not None else ():
                value = number(row.get(key))
                if name is not None and value is not None:
                    yield Sample((*name, kind) if kind else name, value)

    return read


POOL = ("pool",)
METRICS = (
    Metric(
        "iosd_target_up",
        "gauge",
        (),
        "1: the manager is connected to the target, and its figures are at most 5 s old; else 0",
        connected,
    ),
    Metric("iosd_build_info", "gauge", ("version",), "1; the target's release", build),
    Metric(
        "iosd_jobs",
        "gauge",
        ("pool", "state"),
        "Jobs that wait and could run, and those that have a slot",
        pooled(alive),
    ),
    Metric(
        "iosd_jobs_finished_total",
        "counter",
        ("pool", "state", "reason"),
        "Jobs that have ended, by state and reason number (0: COMPLETED)",
        pooled(listed("finished", ("state", "reason"))),
    ),
    Metric(
        "iosd_job_queue_seconds",
        "histogram",
        POOL,
        "Time from acceptance to a slot",
        pooled(timed("seconds.queue")),
    ),
    Metric(
        "iosd_job_start_seconds",
        "histogram",
        POOL,
        "Time from a slot to the script's start",
        pooled(timed("seconds.start")),
    ),
    Metric(
        "iosd_job_run_seconds",
        "histogram",
        POOL,
        "Time from the script's start to the job's end",
        pooled(timed("seconds.run")),
    ),
    Metric(
        "iosd_job_cancel_seconds",
        "histogram",
        POOL,
        "Time from a kill or a limit to the end of a job that ran",
        pooled(timed("seconds.cancel")),
    ),
    Metric(
        "iosd_jobs_refused_total",
        "counter",
        ("reason",),
        "EXEC commands that were refused for want of room, by what was short",
        each("jobs.refused"),
    ),
    Metric(
        "iosd_jobs_retried_total",
        "counter",
        ("reason",),
        "Attempts after the first, by the reason number of the one before",
        listed("jobs.retried", ("reason",)),
    ),
    Metric(
        "iosd_queue_depth",
        "gauge",
        POOL,
        "Jobs that wait and could run",
        pooled(one("queued")),
    ),
    Metric(
        "iosd_queue_oldest_age_seconds",
        "gauge",
        POOL,
        "How long the first of the jobs that could run has waited; 0: there is none",
        pooled(one("oldest")),
    ),
    Metric(
        "iosd_sandboxes",
        "gauge",
        ("pool", "state"),
        "Sandboxes by state",
        pooled(each("sandboxes")),
    ),
    Metric(
        "iosd_sandbox_starts_total",
        "counter",
        (),
        "Sandboxes that came up",
        summed(one("sandbox_starts")),
    ),
    Metric(
        "iosd_sandbox_exits_total",
        "counter",
        ("reason",),
        "Sandboxes that ended, by how",
        summed(each("sandbox_exits")),
    ),
    Metric(
        "iosd_sandbox_recycled_total",
        "counter",
        ("reason",),
        "Sandboxes that were replaced although they could have gone on, by why",
        summed(each("sandbox_recycled")),
    ),
    Metric(
        "iosd_sandbox_cpu_seconds_total",
        "counter",
        (),
        "Processor time of jobs that have ended",
        summed(one("cpu_seconds")),
    ),
    Metric(
        "iosd_sandbox_memory_bytes",
        "gauge",
        (),
        "Memory that sandboxes have used at most, as they say themselves, all together",
        summed(one("memory_used")),
    ),
    Metric(
        "iosd_sandbox_memory_reserved_bytes",
        "gauge",
        (),
        "Memory that the pools' jobs may have together",
        summed(one("memory_reserved")),
    ),
    Metric(
        "iosd_pool_target_size",
        "gauge",
        POOL,
        "Slots that may work now, as set by the policy or an administrator",
        pooled(one("active")),
    ),
    Metric(
        "iosd_scale_decisions_total",
        "counter",
        ("pool", "direction"),
        "Changes of a pool's size by the policy, since the manager started",
        decided,
    ),
    Metric(
        "iosd_proxy_calls_total",
        "counter",
        ("command", "status"),
        "Calls of scripts, by call and outcome",
        listed("proxy_calls", ("command", "status")),
    ),
    Metric(
        "iosd_proxy_call_seconds",
        "histogram",
        ("command",),
        "Time that scripts' calls took, by kind",
        timed_each("proxy_call_seconds"),
    ),
    Metric(
        "iosd_osd_commands_total",
        "counter",
        ("command", "status"),
        "Commands of initiators, by service action and outcome",
        listed("commands", ("command", "status")),
    ),
    Metric(
        "iosd_osd_command_seconds",
        "histogram",
        ("command",),
        "Time that initiators' commands took, by kind",
        timed_each("command_seconds"),
    ),
    Metric(
        "iosd_workers", "gauge", (), "Threads that run initiators' commands", one("workers.count")
    ),
    Metric(
        "iosd_pdu_rejected_total",
        "counter",
        ("reason",),
        "Commands that were refused before they were queued, by what was wrong",
        each("rejected"),
    ),
    Metric(
        "iosd_attr_txn_seconds",
        "histogram",
        (),
        "Time that transactions on the attribute database took",
        timed("transactions.seconds"),
    ),
    Metric(
        "iosd_attr_txn_aborts_total",
        "counter",
        ("reason",),
        "Transactions on the attribute database that were done over, by why",
        each("transactions.aborted"),
    ),
    Metric(
        "iosd_attr_recovery_seconds",
        "gauge",
        (),
        "Time that recovery took at the target's start",
        one("store.recovery"),
    ),
    Metric(
        "iosd_capacity_bytes",
        "gauge",
        ("kind",),
        "What the store may hold (total), holds (used, of it data) and can still take (free)",
        capacity,
    ),
    Metric("iosd_objects", "gauge", (), "User objects and collections", one("store.objects")),
    Metric("iosd_partitions", "gauge", (), "Partitions", one("store.partitions")),
    Metric(
        "iosd_store_bytes",
        "gauge",
        ("tier", "kind"),
        "Each device's file system (total, used, free), and objects' data there (data)",
        devices,
    ),
    Metric(
        "iosd_partition_bytes",
        "gauge",
        ("partition", "kind"),
        "The 16 partitions with most data: data, what counts against the quota (used), the quota",
        largest((("data", "used_bytes"), ("used", "charged_bytes"), ("quota", "quota_bytes"))),
    ),
    Metric(
        "iosd_partition_objects",
        "gauge",
        ("partition",),
        "User objects and collections of the same partitions",
        largest((("", "objects"),)),
    ),
    Metric(
        "iosd_no_space_total",
        "counter",
        ("cause",),
        "Writes that found no space, by what was full: a device, or the store's capacity",
        each("store.no_space"),
    ),
    Metric(
        "iosd_head_bytes",
        "gauge",
        ("tier",),
        "Bytes of objects' heads, by where they are",
        listed("heads", ("tier",), "bytes"),
    ),
    Metric(
        "iosd_head_reads_total",
        "counter",
        ("tier",),
        "Reads of objects' files, by device: on the SSD they are heads",
        listed("heads", ("tier",), "reads"),
    ),
    Metric(
        "iosd_head_writes_total",
        "counter",
        ("tier",),
        "Writes of objects' files, by device: on the SSD they are heads",
        listed("heads", ("tier",), "writes"),
    ),
    Metric(
        "iosd_head_errors_total",
        "counter",
        ("tier",),
        "Reads and writes of objects' files that failed, by device",
        listed("heads", ("tier",), "errors"),
    ),
    Metric(
        "iosd_scrub_running",
        "gauge",
        (),
        "1 while all data is being compared with its checksums",
        flag("checksums.running"),
    ),
    Metric(
        "iosd_scrub_ended_timestamp_seconds",
        "gauge",
        (),
        "When the last scrub ended, 0: never",
        one("checksums.ended_ms", 1e-3),
    ),
    Metric(
        "iosd_scrub_unreadable_objects",
        "gauge",
        (),
        "Objects that the last scrub could not read",
        one("checksums.unreadable"),
    ),
    Metric(
        "iosd_scrub_damaged_blocks",
        "gauge",
        (),
        "Blocks of 4 KiB that are known to differ from their checksums",
        one("checksums.damaged_now"),
    ),
    Metric(
        "iosd_checksum_blocks_total",
        "counter",
        ("status",),
        "Blocks of 4 KiB by scrub and READ: compared, without a checksum and given one, found damaged",
        parts("checksums", {"checked": "compared", "made": "made", "damaged": "damaged"}),
    ),
    Metric(
        "iosd_fault_injection_enabled",
        "gauge",
        (),
        "1 where faults are injected on purpose: never in production",
        flag("faults"),
    ),
)


def samples(reading: Reading) -> Iterator[tuple[Metric, list[Sample]]]:
    """Every metric that the reading has something of; each combination of labels once."""
    for metric in METRICS:
        found = {sample.labels: sample for sample in metric.read(reading)}
        if 0 < len(found) <= SERIES_MOST:
            yield metric, list(found.values())
