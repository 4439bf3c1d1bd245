# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs by paths: /.jobs/PARTITION/JOB/status, result, stdout and stderr.  They can only be read.

An array of jobs has a directory for each member, by its index.  No directory has .jobs as an entry: a
walk or a pattern reaches jobs only if its path begins with it.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from pyosd import errors
from pyosd.commands.attributes import get_attributes
from pyosd.commands.dialogue import Dialogue, Stream, items
from pyosd.fs.partitions import absent, find_partition, named_partitions, top_info
from pyosd.fs.paths import JOBS, PathInfo, join, named_id, split
from pyosd.jobs.dialogues.following import RESULT, STDERR
from pyosd.jobs.dialogues.record import milliseconds, record_of
from pyosd.jobs.submission import jobs_of
from pyosd.types import ROOT, AttributeId, ObjectRef, ref
from pyosd.wire.attributes import LOGICAL_LENGTH, Page
from pyosd.wire.job_status import STATUS_IDS, JobStatus, decode_status

__all__ = ["check_not_jobs", "is_of_jobs", "job_file_info", "job_of_path", "list_job_files"]

_PAYLOADS = (AttributeId(Page.JOB_PAYLOAD, RESULT), AttributeId(Page.JOB_PAYLOAD, STDERR))
_NO_DIRECTORY = (0x5, 0x80, 0x32)


def is_of_jobs(fs: Any, path: str) -> bool:
    """Whether a path leads to jobs.  Below a partition or a directory none does."""
    return fs.base is None and split(path)[:1] == [JOBS]


def check_not_jobs(fs: Any, path: str) -> None:
    """Raises: OSError: a path that something is to be done with leads to jobs."""
    if is_of_jobs(fs, path):
        raise OSError(errno.EROFS, "what is below /.jobs can only be read", path)


def job_of_path(fs: Any, path: str) -> Dialogue[ObjectRef]:
    """The job, array or member that a directory stands for.  Raises: OSError: it is no such directory."""
    found = yield from job_file_info(fs, path)
    if not found.is_directory or len(split(path)) < 3:
        check_not_jobs(fs, path)
    return found.object


def job_file_info(fs: Any, path: str) -> Dialogue[PathInfo]:
    """The job, or part of a job, at a path.  Raises: NoSuchName."""
    names = split(path)
    if len(names) == 1:
        return PathInfo(join(path), ROOT, True)
    partition = yield from find_partition(fs, names[1])
    if len(names) == 2:
        return (yield from top_info(partition, join(path)))
    directory, entries = yield from _job_directory(partition, names, path)
    if directory.path == join(path):
        return directory
    return _entry(entries, path)


def list_job_files(fs: Any, path: str) -> Stream[PathInfo]:
    """The entries of a directory of jobs.  Raises: NoSuchName, NotADirectory."""
    names, above = split(path), join(path)
    if len(names) == 1:
        partitions = yield from named_partitions()
        yield from items(PathInfo(f"{above}/{name}", each, True) for name, each in partitions)
        return
    partition = yield from find_partition(fs, names[1])
    if len(names) == 2:
        jobs = yield from jobs_of(partition.partition_id)
        if not jobs:
            yield from top_info(partition, above)  # refuses a partition that is absent
        yield from items(_directory(f"{above}/{each.id.object_id:#x}", each) for each in jobs)
        return
    directory, entries = yield from _job_directory(partition, names, path)
    if directory.path != above:
        _entry(entries, path)
        raise errors.NotADirectory(*_NO_DIRECTORY, f"{path!r} is not a directory")
    yield from items(entries)


def _entry(entries: Iterable[PathInfo], path: str) -> PathInfo:
    for each in entries:
        if each.path == join(path):
            return each
    raise absent(path)


def _job_directory(
    partition: ObjectRef, names: list[str], path: str
) -> Dialogue[tuple[PathInfo, Iterable[PathInfo]]]:
    """The directory of the job, array or member that a path leads to or into, and its entries."""
    number = named_id(names[2])
    if number is None:
        raise absent(path)
    status, *payloads = yield from _job(ref(partition.partition_id, number), path)
    depth = 3
    if len(names) > depth and (member := _member(status, names[depth])):
        status, *payloads = yield from _job(member, path)
        depth += 1
    top = join(*names[:depth])
    return _directory(top, status), _entries(top, status, *payloads)


def _job(surrogate: ObjectRef, path: str) -> Dialogue[tuple[JobStatus, bytes, bytes]]:
    """Status, short result and standard error of a job, in one command.  Raises: NoSuchName."""
    try:
        length, *found = yield from get_attributes(
            surrogate, (LOGICAL_LENGTH, *STATUS_IDS, *_PAYLOADS)
        )
    except errors.NotFound:
        raise absent(path) from None
    status = decode_status(surrogate, found)
    if status is None:
        raise absent(path)
    # The record counts output after it is stored: somebody may have read more than it says.
    stored = max(status.stdout_length, int.from_bytes(length.value or b""))
    return replace(status, stdout_length=stored), found[-2].value, found[-1].value


def _member(status: JobStatus, index: str) -> ObjectRef | None:
    if status.array is None or not status.array.members or not index.isdecimal():
        return None
    try:
        return status.array.member(int(index))
    except IndexError:
        return None


def _times(status: JobStatus) -> tuple[int, int, bytes]:
    """When it was submitted and when it changed last, as far as that is known, and a version."""
    last = status.ended or status.started or status.submitted
    version = status.generation.to_bytes(8) + (status.stdout_length & 0xFFFF_FFFF).to_bytes(4)
    return milliseconds(status.submitted) or 0, milliseconds(last) or 0, version


def _directory(path: str, status: JobStatus) -> PathInfo:
    return PathInfo(path, status.id, True, 0, *_times(status))


def _entries(top: str, status: JobStatus, result: bytes, stderr: bytes) -> Iterable[PathInfo]:
    record = _content(top, "status", status, json.dumps(record_of(status), indent=2) + "\n")
    if status.array is not None and status.array.members:
        yield record
        for index in status.array.indices:
            yield PathInfo(f"{top}/{index}", status.array.member(index), True)
        return
    times = _times(status)
    if status.result_object:
        length = status.result_length
        yield PathInfo(f"{top}/result", status.result_object, False, length, *times)
    elif status.result_length:
        yield _content(top, "result", status, result)
    yield record
    yield _content(top, "stderr", status, stderr)
    yield PathInfo(f"{top}/stdout", status.id, False, status.stdout_length, *times)


def _content(top: str, name: str, status: JobStatus, content: str | bytes) -> PathInfo:
    data = content.encode() if isinstance(content, str) else content
    return PathInfo(f"{top}/{name}", status.id, False, len(data), *_times(status), content=data)
