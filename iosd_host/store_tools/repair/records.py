# SPDX-License-Identifier: GPL-2.0-or-later
"""The repair of each problem of the store as a whole: superblocks, root, partitions, counters, memberships,
names, jobs.

Not here: objects and their files (objects.py), the order of repairs (rounds.py).
"""

from __future__ import annotations

from iosd_host.store_tools.check.problems import ProblemKind
from iosd_host.store_tools.repair.context import Repair, keep_job, keep_record, remove_record
from iosd_host.store_tools.repair.jobs import (
    job_charge,
    job_companion,
    job_expiry,
    job_key,
    surrogate_mark,
)
from iosd_host.store_tools.repair.keys import key_record
from iosd_host.store_tools.repair.partitions import (
    boot_counter,
    id_mark,
    other_epoch,
    partition_missing,
    partition_record,
    queue_alive,
    raise_root,
    root_record,
    versions_damaged,
)
from iosd_host.store_tools.repair.relations import (
    index_missing,
    index_stage,
    mark_missing,
    mark_stale,
    membership_number,
    name_cycle,
    name_lost,
    name_mark,
    name_one_way,
    other_half,
    stale_member,
)
from iosd_host.store_tools.repair.superblocks import store_id, superblock

__all__ = ["REPAIRS"]

REPAIRS: dict[ProblemKind, Repair] = {
    ProblemKind.SUPERBLOCK_DAMAGED: superblock,
    ProblemKind.STORE_IDS_DIFFER: store_id,
    ProblemKind.ROOT_DAMAGED: root_record,
    ProblemKind.PARTITION_DAMAGED: partition_record,
    ProblemKind.PARTITION_MISSING: partition_missing,
    ProblemKind.PARTITION_IN_OTHER_EPOCH: other_epoch,
    ProblemKind.KEY_DAMAGED: keep_record,
    ProblemKind.ATTRIBUTE_STRANGE: keep_record,
    ProblemKind.QUEUE_DAMAGED: keep_record,
    ProblemKind.BOOT_COUNTER: boot_counter,
    ProblemKind.VERSIONS_DAMAGED: versions_damaged,
    ProblemKind.NEXT_INCARNATION: raise_root,
    ProblemKind.NEXT_PARTITION_ID: raise_root,
    ProblemKind.ID_MARK: id_mark,
    ProblemKind.QUEUE_ALIVE: queue_alive,
    ProblemKind.MARK_MISSING: mark_missing,
    ProblemKind.MARK_STALE: mark_stale,
    ProblemKind.MEMBER_ONE_WAY: other_half,
    ProblemKind.MEMBERSHIP_ONE_WAY: other_half,
    ProblemKind.MEMBER_STALE: stale_member,
    ProblemKind.MEMBERSHIP_NUMBER: membership_number,
    ProblemKind.NAME_STALE: remove_record,
    ProblemKind.NAME_ONE_WAY: name_one_way,
    ProblemKind.NAME_LOST: name_lost,
    ProblemKind.NAMED_STALE: remove_record,
    ProblemKind.NAME_MARK: name_mark,
    ProblemKind.NAME_CYCLE: name_cycle,
    ProblemKind.JOB_DAMAGED: keep_job,
    ProblemKind.JOB_WITHOUT_SURROGATE: keep_job,
    ProblemKind.JOB_PART_ORPHAN: keep_job,
    ProblemKind.JOB_CHARGE: job_charge,
    ProblemKind.JOB_COMPANION_STALE: remove_record,
    ProblemKind.JOB_COMPANION_MISSING: job_companion,
    ProblemKind.JOB_EXPIRY_MISSING: job_expiry,
    ProblemKind.JOB_EXPIRY_STALE: remove_record,
    ProblemKind.JOB_KEY_MISSING: job_key,
    ProblemKind.JOB_KEY_STALE: remove_record,
    ProblemKind.INDEX_STAGE: index_stage,
    ProblemKind.INDEX_STALE: remove_record,
    ProblemKind.INDEX_MISSING: index_missing,
    ProblemKind.INDEX_SUPERFLUOUS: remove_record,
    ProblemKind.COMMAND_DAMAGED: keep_record,
    ProblemKind.KEY_RECORD_DAMAGED: key_record,
    ProblemKind.KEY_WITHOUT_SEAL: remove_record,
    ProblemKind.SURROGATE_UNFINISHED: surrogate_mark,
    ProblemKind.SURROGATE_UNMARKED: surrogate_mark,
}
