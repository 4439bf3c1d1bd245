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
