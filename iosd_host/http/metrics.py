# SPDX-License-Identifier: GPL-2.0-or-later
"""All metrics: a row each, with its meaning and its place in a SNAPSHOT (readings.py).

Not here: text (exporter.py), HTTP (console/).
"""

from __future__ import annotations

from collections.abc import Iterator

from iosd_host.http.readings import (
    Metric,
    Reading,
    Sample,
    alive,
    build,
    capacity,
    connected,
    decided,
    devices,
    each,
    flag,
    largest,
    listed,
    one,
    parts,
    pooled,
    summed,
    timed,
    timed_each,
)

__all__ = ["METRICS", "samples"]

SERIES_MOST = 2000  # of one metric; a target that says more is not believed
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
        "Jobs that are ready to run, and jobs that have a slot",
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
        "EXEC commands that were refused because a resource was short, by resource",
        each("jobs.refused"),
    ),
    Metric(
        "iosd_jobs_retried_total",
        "counter",
        ("reason",),
        "Attempts after the first, by the reason number of the previous attempt",
        listed("jobs.retried", ("reason",)),
    ),
    Metric(
        "iosd_queue_depth",
        "gauge",
        POOL,
        "Jobs that are ready to run and wait for a slot",
        pooled(one("queued")),
    ),
    Metric(
        "iosd_queue_oldest_age_seconds",
        "gauge",
        POOL,
        "Time that the oldest job in the queue has waited, 0 if there is none",
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
        "Sandboxes that started",
        summed(one("sandbox_starts")),
    ),
    Metric(
        "iosd_sandbox_exits_total",
        "counter",
        ("reason",),
        "Sandboxes that ended, by reason",
        summed(each("sandbox_exits")),
    ),
    Metric(
        "iosd_sandbox_recycled_total",
        "counter",
        ("reason",),
        "Working sandboxes that were replaced, by reason",
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
        "Sum of the peak memory of all sandboxes, as each reports it",
        summed(one("memory_used")),
    ),
    Metric(
        "iosd_sandbox_memory_reserved_bytes",
        "gauge",
        (),
        "Sum of the memory limits of all slots",
        summed(one("memory_reserved")),
    ),
    Metric(
        "iosd_pool_target_size",
        "gauge",
        POOL,
        "Slots in use by the pool, as set by the policy or an administrator",
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
        "Commands that were refused before they were queued, by fault",
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
        "Transactions on the attribute database that were repeated, by reason",
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
        "Capacity of the store: its limit (total), use (used, of which data), and free",
        capacity,
    ),
    Metric("iosd_objects", "gauge", (), "User objects and collections", one("store.objects")),
    Metric("iosd_partitions", "gauge", (), "Partitions", one("store.partitions")),
    Metric(
        "iosd_store_bytes",
        "gauge",
        ("tier", "kind"),
        "File system of each device (total, used, free), and data of objects on it (data)",
        devices,
    ),
    Metric(
        "iosd_partition_bytes",
        "gauge",
        ("partition", "kind"),
        "The 16 partitions with most data: data, charged bytes (used), quota",
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
        "Writes that found no space, by cause: a full device, or the store's capacity",
        each("store.no_space"),
    ),
    Metric(
        "iosd_head_bytes",
        "gauge",
        ("tier",),
        "Bytes of objects' heads, by device",
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
