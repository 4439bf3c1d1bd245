# SPDX-License-Identifier: GPL-2.0-or-later
"""The tests, by topic; importing this enters all of them (cells.TESTS)."""

from tests.conformance.suite import (
    attributes,
    buffers,
    continuation,
    data,
    formatting,
    functions,
    jobs,
    listing,
    membership,
    objects,
    options,
    pages,
    performs,
    private,
    queries,
    refusals,
    security,
    versions,
)

__all__ = [
    "attributes",
    "buffers",
    "continuation",
    "data",
    "formatting",
    "functions",
    "jobs",
    "listing",
    "membership",
    "objects",
    "options",
    "pages",
    "performs",
    "private",
    "queries",
    "refusals",
    "security",
    "versions",
]
