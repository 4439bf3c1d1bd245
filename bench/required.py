# SPDX-License-Identifier: GPL-2.0-or-later
"""The rows every report has, with their aims (docs/benchmarks.md): one that was not measured says why."""

from __future__ import annotations

from dataclasses import replace

from bench.stats import Aim, Row, at_least, at_most, missing

REQUIRED: dict[str, dict[str, Aim]] = {
    "wire": {
        f"{direction}_{size}_qd{depth}": at_least(1)
        for direction in ("read", "write")
        for size in ("4k", "64k", "1m")
        for depth in (1, 8)
    },
    "jobs": {
        "exec_noop_pristine": at_most(5),
        "exec_noop_reuse": at_most(3),
        "jobs_per_s_pristine": at_least(1),
        "jobs_per_s_reuse": at_least(1),
        "poll_one": at_most(1.2),
        "poll_hundred": at_most(3),
    },
    "functions": {
        "fn_plain_python": at_most(3.5),
        "fn_plain_python_rate": at_least(1),
        "fn_plain_wasm": at_most(2.5),
        "fn_plain_wasm_rate": at_least(1),
        "fn_wasm_loop": at_least(0.8),
        "fn_native_crypt": at_least(0.9),
        "fn_vs_redis": at_most(1.5),
    },
    "views": {
        "view_check_none": at_most(1.01),
        "view_cached_4k": at_most(1.05),
        "view_identity_1m": at_most(1.05),
        "view_block_1m": at_least(0.9),
        "oasis_select": at_least(6.2),
        "oasis_edge": at_least(3.4),
        "oasis_blowfish": at_least(1),
        "oasis_stack": at_least(1.4),
        "mvss_crypt": at_least(1),
        "mvss_quality": at_least(3),
        "mvss_median": at_least(1),
    },
    "names": {
        "name_lookup5": at_most(1.3),
        "name_list_1000": at_most(1),
        "name_create": at_most(1.3),
        "name_rename": at_most(1.5),
        "name_scale": at_most(1.2),
    },
    "cli": {"cli_version": at_most(1), "cli_exec_noop": at_most(1)},
    "calls": {
        "rpc_hop_same_core": at_most(1.25),
        "rpc_hop_two_cores": at_most(1.25),
        "rpc_hop_spinning": at_most(1),
        "script_create": at_most(1),
        "script_remove": at_most(1),
        "script_set6": at_most(1),
        "script_get6": at_most(1),
    },
    "scripts": {
        "script_read_1m": at_least(0.95),
        "script_map": at_least(0.95),
        "script_compute": at_least(0.97),
    },
    "sandboxes": {
        "sandbox_memory": at_most(1),
        "sandbox_memory_numpy": at_most(1),
        "kill_p99": at_most(1),
        "kill_p99_large": at_most(1),
        "read_p99_hostile": at_most(1.5),
        "neighbour_p99": at_most(3),
    },
    "scale": {"create_scale": at_most(1.2), "restart": at_most(1)},
    "scale-out": dict.fromkeys(("scaleout_count", "scaleout_grep", "scaleout_aes"), at_least(0.95)),
    "near-data": {
        "near_data_log": at_least(1.5),
        "near_data_log_model": at_most(1.2),
        "active_mean": at_least(5),
    },
    "checksums": {"checksum_read_1m": at_least(0.95), "checksum_write_1m": at_least(0.95)},
    "files": {
        "files_in_small": at_least(1),
        "files_out_small": at_least(1),
        "files_in_large": at_least(0.9),
        "files_out_large": at_least(0.9),
    },
    "osdfs": {
        "osdfs_meta": at_least(0.8),
        "osdfs_stream": at_least(0.9),
        "osdfs_build": at_least(0.8),
    },
    "tiers": {"tier_small": at_least(0.95)},
}
"""Of each group, the aim of each row."""


def not_measured(group: str, found: set[str], reason: str) -> list[Row]:
    """Rows of the group that are required and not among those found."""
    wanted = REQUIRED.get(group, {})
    return [
        replace(missing(row_id, aim, reason), group=group)
        for row_id, aim in wanted.items()
        if row_id not in found
    ]
