# SPDX-License-Identifier: GPL-2.0-or-later
"""The groups that `make bench` measures, in this order: a new experiment is a module and a line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench import (
    active_mean,
    calls,
    checksums,
    curves,
    files,
    functions,
    instructions,
    iosd_calls,
    iosd_io,
    iosd_log,
    jobs,
    mounted,
    names,
    near_data,
    neighbours,
    nfs,
    offload_model,
    peer_http,
    peer_redis,
    peers,
    reuse,
    runde,
    sandboxes,
    saturation,
    scale,
    scaleout,
    scripts,
    security,
    startup,
    tiers,
    umn,
    views,
    wire,
)
from bench.plan import Plan
from bench.stats import Curve, Row

Measure = Callable[[Plan], Iterator[Row | Curve]]


@dataclass(frozen=True)
class Group:
    """Rows that are measured together, on separate targets, which take half a second to start."""

    name: str
    title: str
    rows: Measure


def _all(*parts: Measure) -> Measure:
    """One after the other."""

    def rows(plan: Plan) -> Iterator[Row | Curve]:
        for part in parts:
            yield from part(plan)

    return rows


GROUPS = (
    Group("wire", "READ and WRITE", wire.rows),
    Group("jobs", "Jobs and polls", jobs.rows),
    Group("functions", "Calls of functions", functions.rows),
    Group("views", "Data that pass through functions", views.rows),
    Group("names", "Names", names.rows),
    Group("cli", "Start of the program osd", startup.rows),
    Group("calls", "Calls of scripts", calls.rows),
    Group("scripts", "Data in scripts", scripts.rows),
    Group("iosd", "The iOSD paper", _all(iosd_calls.rows, iosd_io.rows, iosd_log.rows)),
    Group("sandboxes", "What sandboxes cost others", _all(sandboxes.rows, neighbours.rows)),
    Group("security", "Security methods", security.rows),
    Group("checksums", "Checksums of data", checksums.rows),
    Group("files", "Files by their names", files.rows),
    Group("osdfs", "The file system", mounted.rows),
    Group(
        "peers", "What others use for the same", _all(peers.rows, peer_redis.rows, peer_http.rows)
    ),
    Group("scale", "A million objects", scale.rows),
    Group("scale-out", "One function at one to eight targets", scaleout.rows),
    Group("near-data", "Near the data, or fetch", _all(near_data.rows, active_mean.rows)),
    Group("offload", "Section VI.D of the iOSD paper", offload_model.rows),
    Group("reuse", "Results that are there already", reuse.rows),
    Group("tiers", "Two tiers, on simulated disks", tiers.rows),
    Group("manager", "The resource manager", _all(nfs.rows, saturation.rows)),
    Group("umn", "What the UMN paper measured", umn.rows),
    Group("runde", "What Runde's thesis measured", runde.rows),
    Group("instructions", "Instructions of a command", instructions.rows),
    Group("curves", "What operations cost by number and size", curves.rows),
)
