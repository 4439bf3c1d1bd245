# SPDX-License-Identifier: GPL-2.0-or-later
"""Addresses as people type them where the target must be asked for the ids they stand for."""

from __future__ import annotations

from dataclasses import dataclass

from pyosd.types import ObjectRef

__all__ = ["JobName", "LoneId", "MemberRef", "PathRef", "is_job_path", "is_path"]


@dataclass(frozen=True)
class MemberRef(ObjectRef):
    """ARRAY[INDEX]: the ids are the array's, unless it is known by its name only."""

    index: int = 0
    name: str = ""

    def __str__(self) -> str:
        return f"{self.name or super().__str__()}[{self.index}]"


@dataclass(frozen=True)
class LoneId(ObjectRef):
    """A number without a slash where a job is wanted, as it was typed."""

    text: str = ""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class JobName(ObjectRef):
    """A job's name; the target is asked for the id."""

    name: str = ""

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class PathRef(ObjectRef):
    """A path where an address is wanted; the target is asked for the ids before the verb runs."""

    path: str = ""
    inside: str = ""  # what the verb wants of a partition, where a partition itself will not do

    def __str__(self) -> str:
        return self.path


def is_path(text: str) -> bool:
    """Whether an address is a path: from the root on, or with osd: before it."""
    return text.startswith(("/", "osd:"))


def is_job_path(text: str) -> bool:
    """Whether it is a path of a job.  Other texts with slashes can be names of jobs."""
    return text.removeprefix("osd:").startswith("/.jobs/")
