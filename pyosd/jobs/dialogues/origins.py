# SPDX-License-Identifier: GPL-2.0-or-later
"""Dialogues that ask which objects a job has read and changed.  The text of each is that of the method.

Not here: how a job goes and ends (following.py).
"""

from __future__ import annotations

from pyosd import errors
from pyosd.commands.attributes import get_attribute
from pyosd.commands.dialogue import Dialogue
from pyosd.jobs.dialogues.followed import Followed
from pyosd.jobs.dialogues.following import recorded, status
from pyosd.jobs.inputs import prov
from pyosd.wire.attributes import Page
from pyosd.wire.job_status import JobFlag
from pyosd.wire.used import (
    CHANGES,
    PIECE,
    PIECES_MOST,
    READS,
    ChangedInput,
    Used,
    UsedKind,
    decode_used,
)


def used(job: Followed) -> Dialogue[Used]:
    """The objects that the job has read and changed, with the versions of their data.

    Raises: Conflict: the job has not ended, or it ended without such a list.
    """
    now = yield from status(job)
    if JobFlag.LISTED not in now.flags:
        why = "its list of used objects was not kept" if now.done else "it has not ended"
        if JobFlag.ARRAY in now.flags:
            why = "an array has no list of used objects; its members have"
        raise errors.Conflict(0, 0, 0, f"job {job.id}: {why}")
    data = bytearray()
    for number in range(1, PIECES_MOST + 1):
        piece = yield from recorded(job, get_attribute(job.id, Page.JOB_USED, number))
        data += piece
        if len(piece) < PIECE:
            return decode_used(bytes(data))
    raise errors.ProtocolError(f"job {job.id}: the list of used objects does not end")


def inputs(job: Followed) -> Dialogue[Used]:
    """The objects that the job has read.  Raises: as used()."""
    return (yield from used(job)).only(READS)


def outputs(job: Followed) -> Dialogue[Used]:
    """The objects that the job has changed, made or removed.  Raises: as used()."""
    return (yield from used(job)).only(CHANGES)


def changed_inputs(job: Followed) -> Dialogue[tuple[ChangedInput, ...]]:
    """The objects that the job has read and that have another version now, or are gone.

    Only data and members of collections have versions.  Raises: as used().
    """
    changed = list[ChangedInput]()
    for each in (yield from inputs(job)).objects:
        page = Page.VERSION if each.kinds & UsedKind.DATA else Page.MEMBERS_VERSION
        if not each.version:
            continue
        try:
            now = yield from get_attribute(each.object, page, 1)
        except errors.NotFound:
            now = b""
        if now != each.version:
            changed.append(ChangedInput(each.object, each.version, now, now == each.after))
    return tuple(changed)


def provenance(job: Followed) -> Dialogue[prov.Document]:
    """The origin of the result, as a PROV-JSON document of the W3C, for json.dumps().

    Raises: as used().
    """
    objects = yield from used(job)
    return prov.document_of(job.commands.url, (yield from status(job)), objects)
