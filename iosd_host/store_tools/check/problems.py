# SPDX-License-Identifier: GPL-2.0-or-later
"""Problems of a store: one row for each kind, as docs/offline-tools.md prints them.

Not here: how each is found (the other files here) and repaired (repair/).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, unique
from typing import Any

from iosd_host.store_tools.opening.bdb import Table

__all__ = ["Problem", "ProblemKind"]


@unique
class ProblemKind(Enum):
    """name = (what it is, what repair does).  Kinds without an action need none: the target sees to
    them when it next opens the store."""

    SUPERBLOCK_DAMAGED = ("superblock missing or damaged", "made again from what else is known")
    STORE_IDS_DIFFER = (
        "the roots have different store ids",
        "if every head fits its record the SSD directory takes the id; else nothing",
    )
    LOG_DAMAGED = (
        "the database's log cannot be recovered",
        "log set aside, tables used as they are",
    )
    TABLE_MISSING = ("a table of the database is missing", "made again, empty")
    TABLE_DAMAGED = (
        "pages of a table are damaged",
        "set aside; what can be read of it is put into a new one",
    )
    KEY_DAMAGED = ("a record whose key is none of this table", "moved to lost+found")
    ROOT_DAMAGED = ("root record missing or damaged", "made again from the partitions")
    PARTITION_DAMAGED = ("a partition record does not decode", "made again; the old to lost+found")
    PARTITION_MISSING = ("objects of a partition that has no record", "the record is made again")
    PARTITION_IN_OTHER_EPOCH = (
        "a partition of another epoch that was not retired",
        "brought into the store's epoch, or its objects moved to lost+found",
    )
    OBJECT_DAMAGED = (
        "an object record does not decode",
        "moved to lost+found with files and attributes; a collection's is made again",
    )
    OBJECT_STALE = ("an object of a partition's earlier incarnation", "moved to lost+found")
    RECORD_FIELD = ("a field of an object record is out of range", "set to what the files say")
    ATTRIBUTE_COUNT = ("wrong number of attributes in an object record", "counted again")
    ATTRIBUTE_STRANGE = (
        "an attribute that no object of its kind can have",
        "moved to lost+found",
    )
    ORPHAN_ATTRIBUTES = ("attributes of an object that does not exist", "moved to lost+found")
    FILES_MISSING = ("an object's data files are missing", "its length becomes 0")
    FILE_SHORT = ("data files shorter than their object", "its length becomes that of the files")
    FILE_LONG = ("data files longer than their object", "its length becomes that of the files")
    FILES_NOT_MARKED = ("data files of an object that should have none", "its record is corrected")
    HEAD_LOST = ("a tail without its whole head", "the head is filled up with zeros")
    HEAD_LONG = ("a head longer than the head size", "the record's head size follows")
    GENERATION_WRONG = ("data files of another generation than the record's", "the record follows")
    HEAD_ELSEWHERE = ("a head in the other root than its record says", "the record follows")
    RESERVED_WRONG = ("reserved bytes below the length", "set to the length")
    ORPHAN_FILE = ("a data file that no record names", "moved to lost+found")
    STRAY_FILE = ("a file among the data files that is none", "moved to lost+found")
    ORPHAN_SUMS = ("checksums without their data file", "removed")
    SUMS_DAMAGED = (
        "a file of checksums that makes no sense",
        "removed: the scrub makes it again",
    )
    BLOCK_DAMAGED = (
        "data that differs from its checksum",
        "nothing: write it again, or restore the object",
    )
    MARK_MISSING = ("a collection without its mark", "the mark is made")
    MARK_STALE = ("the mark of a collection that does not exist", "the collection is made again")
    MEMBER_ONE_WAY = ("a membership not known to the member", "its other half is made")
    MEMBERSHIP_ONE_WAY = ("a membership not known to the collection", "its other half is made")
    MEMBER_STALE = ("a membership of which one end does not exist", "removed")
    MEMBERSHIP_NUMBER = ("a membership with a bad or double number", "gets a free number")
    NAME_STALE = ("a name of which directory or object does not exist", "removed")
    NAME_ONE_WAY = ("a name not known to its object", "its other half is made")
    NAME_LOST = ("a directory lacks a name that its object has", "entered in the directory")
    NAMED_STALE = ("an object remembers a name that its directory does not have", "removed")
    NAME_MARK = ("the mark of names in an object record is wrong", "set to what the names say")
    NAME_CYCLE = ("a directory below itself", "it loses its name; it can be linked again by its id")
    BOOT_COUNTER = ("the count of openings is missing or too low", "raised")
    VERSIONS_DAMAGED = (
        "the record that says which data versions hold makes no sense",
        "removed: every object gets a new version",
    )
    NEXT_INCARNATION = ("the next incarnation was given out already", "raised")
    NEXT_PARTITION_ID = ("the next partition id was given out already", "raised")
    ID_MARK = ("the mark of object ids is damaged or too low", "raised")
    QUEUE_ALIVE = ("a removal is queued for a record in use", "taken out of the queue")
    QUEUE_DAMAGED = ("an entry of the removal queue does not decode", "moved to lost+found")
    JOB_DAMAGED = ("a job record does not decode", "moved to lost+found")
    JOB_WITHOUT_SURROGATE = ("a job without its surrogate", "moved to lost+found")
    JOB_PART_ORPHAN = ("code or payload of no job", "moved to lost+found")
    JOB_CHARGE = ("wrong number of charged bytes in a job record", "counted again")
    JOB_COMPANION_STALE = ("an object said to hold the result of no job", "forgotten")
    JOB_COMPANION_MISSING = ("an object with a result that is not said to be a job's", "entered")
    JOB_EXPIRY_MISSING = ("an ended job that never expires", "its expiry is entered")
    JOB_EXPIRY_STALE = ("an expiry of no job", "removed")
    JOB_KEY_MISSING = ("a job whose idempotency key is not known", "the key is entered")
    JOB_KEY_STALE = ("an idempotency key of no job", "removed")
    SURROGATE_UNFINISHED = (
        "an object marked as surrogate of an unfinished job",
        "the mark is removed",
    )
    SURROGATE_UNMARKED = ("the surrogate of an unfinished job is not marked", "the mark is made")
    INDEX_STAGE = ("the state of a value index does not decode", "the target builds it again")
    INDEX_STALE = (
        "a value index of a partition that does not exist, or of a page that can have none",
        "removed",
    )
    INDEX_MISSING = ("an attribute that its value index does not have", "entered")
    INDEX_SUPERFLUOUS = ("an entry of the value index without its attribute", "removed")
    COMMAND_DAMAGED = ("a command in progress that makes no sense", "moved to lost+found")
    KEY_RECORD_DAMAGED = (
        "a record of a secret key, or of times of nonces, that makes no sense",
        "removed: the key is to be set again; nonces until now count as used",
    )
    KEY_WITHOUT_SEAL = (
        "a secret key, but the file `seal` is missing or not whole",
        "removed: set the key again. It is better to restore the file",
    )
    UNREADABLE = ("a file or folder cannot be read", "")
    OPEN_RESERVATION = ("an object that was being written", "")
    QUEUED_FILES = ("files that wait to be removed", "")
    QUEUED_PARTITION = ("a removed partition that waits to be freed", "")
    QUEUED_EPOCH = ("a formatted store that waits to be freed", "")
    UNKNOWN_META = ("a record of a kind this release does not know", "")
    NOT_CLOSED = ("the store was not closed in order", "")
    ODD_ENTRY = ("something that is neither file nor folder of the target", "")

    @property
    def slug(self) -> str:
        """The name as people and JSON see it."""
        return self.name.lower().replace("_", "-")

    @property
    def meaning(self) -> str:
        """What it is."""
        return self.value[0]

    @property
    def remedy(self) -> str:
        """Action of repair; empty: none."""
        return self.value[1]

    @property
    def is_error(self) -> bool:
        """Whether it needs a repair, and is not only information."""
        return bool(self.remedy) or self is ProblemKind.UNREADABLE


@dataclass(frozen=True)
class Problem:
    """A problem of a store.

    Args:
        where: the address, record or file, for people.
        detail: more about it, for people; can be empty.
        table, key: the record, if the problem is about one.
        subject: a further argument of the repair; its type depends on the kind.
    """

    kind: ProblemKind
    where: str
    detail: str = ""
    table: Table | None = None
    key: bytes = b""
    subject: Any = None

    def __str__(self) -> str:
        return f"{self.where}: {self.detail or self.kind.meaning}"
