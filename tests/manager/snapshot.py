# SPDX-License-Identifier: GPL-2.0-or-later
"""A SNAPSHOT made by hand from docs/control.md, for tests of how figures are shown."""

from __future__ import annotations

import copy
from typing import Any

__all__ = ["snapshot"]

BOUNDS = [0.001, 0.01, 0.1, 1]


def timed(*counts: int) -> dict[str, Any]:
    return {"counts": list(counts), "sum": round(sum(counts) * 0.05, 6)}


def pool(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "mode": "running",
        "queued": 3,
        "busy": 2,
        "active": 4,
        "oldest": 1.25,
        "memory_used": 1 << 20,
        "memory_reserved": 1 << 30,
        "finished": [
            {"state": "COMPLETED", "reason": 0, "count": 90},
            {"state": "FAILED", "reason": 201, "count": 10},
        ],
        "run_seconds": 5.0,
        "seconds": {
            "queue": timed(50, 30, 15, 5, 0),
            "start": timed(100, 0, 0, 0, 0),
            "run": timed(0, 90, 9, 0, 1),
            "cancel": timed(0, 0, 0, 0, 0),
        },
        "cpu_seconds": 4.5,
        "sandboxes": {"ready": 5, "taken": 2, "spawning": 0},
        "sandbox_starts": 107,
        "sandbox_exits": {"done": 99, "killed": 1},
        "sandbox_recycled": {"idle": 2},
        "pushed_back": {"sooner": 1, "late": 2},
        "paced_bytes": 1 << 20,
        "held_seconds": 0.5,
    }


WHOLE: dict[str, Any] = {
    "schema": "iosd.control/1",
    "target": {"boot": "00ff", "version": "0.1.0", "monotonic": 17.5, "wall": 1.7e9},
    "bounds": BOUNDS,
    "shedding": False,
    "workers": {"count": 8, "busy": 1, "queued": 0, "oldest": 0},
    "commands": [
        {"command": "READ", "status": "good", "count": 1000},
        {"command": "READ", "status": "no_object", "count": 2},
        {"command": "EXEC", "status": "good", "count": 100},
    ],
    "command_seconds": {"read": timed(1002, 0, 0, 0, 0), "exec": timed(0, 60, 40, 0, 0)},
    "store": {
        "recovery": 0.02,
        "capacity_bytes": 1000,
        "used_bytes": 300,
        "charged_bytes": 400,
        "free_bytes": 500,
        "objects": 7,
        "partitions": 2,
        "no_space": {"ssd": 0, "main": 3, "capacity": 1},
        "largest": [
            {
                "partition": "0x10000",
                "used_bytes": 200,
                "charged_bytes": 250,
                "quota_bytes": 256,
                "objects": 5,
            },
            {"partition": "0x10001", "used_bytes": 100, "charged_bytes": 150, "objects": 2},
        ],
    },
    "transactions": {"count": 500, "aborted": {"deadlock": 3}, "seconds": timed(490, 10, 0, 0, 0)},
    "jobs": {
        "refused": {"queue": 4, "shedding": 0},
        "retried": [{"reason": 401, "count": 1}],
    },
    "offload": {
        "decisions": {"admission": 2, "dispatch": 1, "near": 5, "unknown": 1},
        "factor_percent": 130,
        "error": timed(4, 2, 0, 0, 0),
        "recent": [
            {
                "at_ms": 1_700_000_000_000,
                "stage": "dispatch",
                "reason": "sooner",
                "pool": "default",
                "name": "count.py",
                "principal": "chap:ann",
                "near": 2.5,
                "wait": 0.5,
                "client": 1.25,
            }
        ],
    },
    "rejected": {"length": 1},
    "proxy_calls": [{"command": "READ", "status": "good", "count": 7}],
    "proxy_call_seconds": {"read": timed(7, 0, 0, 0, 0)},
    "functions": {
        "active": 2,
        "reserved_bytes": 1 << 28,
        "calls": [
            {"signer": "ann", "outcome": "completed", "count": 3},
            {"signer": "ann", "outcome": "failed", "count": 0},
        ],
        "results": {
            "quota_bytes": 1 << 30,
            "kept_bytes": 4096,
            "reads": {"kept": 6, "computed": 2},
            "shared": 1,
            "evicted": 3,
            "failed": 1,
            "compute_seconds": 0.25,
        },
    },
    "heads": [
        {
            "tier": "ssd",
            "bytes": 4096,
            "reads": 9,
            "writes": 8,
            "errors": 0,
            "data": 4096,
            "total": 9000,
            "free": 1000,
        }
    ],
    "checksums": {
        "running": True,
        "ended_ms": 1_800_000_000_000,
        "objects": 5,
        "unreadable": 1,
        "checked": 1000,
        "made": 10,
        "damaged": 2,
        "damaged_now": 1,
    },
    "faults": False,
    "pools": [pool("default"), pool("numpy")],
}


def snapshot() -> dict[str, Any]:
    """One that has something for every metric, to be changed at will."""
    return copy.deepcopy(WHOLE)
