# SPDX-License-Identifier: GPL-2.0-or-later
"""The questions that a report answers, and the groups that answer each."""

from __future__ import annotations

from collections.abc import Iterator

from bench.saved import Report

CHAPTERS = (
    ("How fast is plain I/O?", ("wire", "umn")),
    ("What does a job cost?", ("jobs", "functions", "cli", "runde", "peers")),
    ("What do data cost that pass through functions?", ("views",)),
    ("What do names cost?", ("names",)),
    ("What does Python near the data cost?", ("calls", "scripts", "iosd")),
    ("Does offloading pay?", ("near-data", "offload")),
    ("What does a result cost that is there already?", ("reuse",)),
    ("Does it scale?", ("scale", "scale-out", "curves")),
    ("What do scripts cost others?", ("sandboxes",)),
    ("What does security cost?", ("security",)),
    ("What do checksums cost?", ("checksums",)),
    ("How fast are files by name?", ("files", "osdfs")),
    ("Do two tiers pay?", ("tiers",)),
    ("The resource manager", ("manager",)),
    ("Instructions", ("instructions",)),
)


def chapters(report: Report) -> Iterator[tuple[str, list[str]]]:
    """Questions and the groups that the report has for them; last, groups for no question."""
    asked = {name for _, names in CHAPTERS for name in names}
    others = tuple(name for name in report.groups if name not in asked)
    for question, names in (*CHAPTERS, ("More", others)):
        if found := [name for name in names if name in report.groups]:
            yield question, found
