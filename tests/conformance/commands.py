# SPDX-License-Identifier: GPL-2.0-or-later
"""The rows of the matrix: every service action of osd2-wire 3.1, and what its CDB addresses."""

from __future__ import annotations

from dataclasses import dataclass

MANDATORY, OPTIONAL, PRIVATE, VENDOR, SECURITY = "M", "O", "OSC", "vendor", "M*"
"""PRIVATE: codes of one implementation in the standard's space.  SECURITY: mandatory for a target
that announces a security method above NOSEC."""

USER, PARTITIONS, COLLECTIONS, ROOT = 0x0000_0000, 0x3000_0000, 0x6000_0000, 0x9000_0000


@dataclass(frozen=True)
class Row:
    """A command.

    addresses: what the ids in its CDB name: "root", "partition", "new partition", "new object" (a
    partition, and an id that must be free), "object", "collection" or "any".
    pages: base of the attribute pages of the object its lists are about; None: the standard gives
    it none, or they belong to the members.
    """

    code: int
    name: str
    level: str
    addresses: str
    pages: int | None
    continuation: bool = False

    def __str__(self) -> str:
        return f"{self.code:04X}h {self.name}"


ROWS = [
    Row(0x8880, "OBJECT STRUCTURE CHECK", MANDATORY, "partition", PARTITIONS),
    Row(0x8881, "FORMAT OSD", OPTIONAL, "root", ROOT),
    Row(0x8882, "CREATE", MANDATORY, "new object", USER),
    Row(0x8883, "LIST", MANDATORY, "partition", PARTITIONS),
    Row(0x8884, "PUNCH", MANDATORY, "object", USER, True),
    Row(0x8885, "READ", MANDATORY, "object", USER, True),
    Row(0x8886, "WRITE", MANDATORY, "object", USER, True),
    Row(0x8887, "APPEND", MANDATORY, "object", USER, True),
    Row(0x8888, "FLUSH", MANDATORY, "object", USER),
    Row(0x8889, "CLEAR", MANDATORY, "object", USER, True),
    Row(0x888A, "REMOVE", MANDATORY, "object", USER, True),
    Row(0x888B, "CREATE PARTITION", MANDATORY, "new partition", PARTITIONS),
    Row(0x888C, "REMOVE PARTITION", MANDATORY, "partition", PARTITIONS),
    Row(0x888D, "CAS", PRIVATE, "object", USER),
    Row(0x888E, "GET ATTRIBUTES", MANDATORY, "any", USER),
    Row(0x888F, "SET ATTRIBUTES", MANDATORY, "any", USER, True),
    Row(0x8890, "FA", PRIVATE, "object", USER),
    Row(0x8891, "COND SETATTR", PRIVATE, "object", None),
    Row(0x8892, "CREATE AND WRITE", MANDATORY, "new object", USER, True),
    Row(0x8893, "COPY USER OBJECTS", OPTIONAL, "new object", USER, True),
    Row(0x8894, "CREATE USER TRACKING COLLECTION", OPTIONAL, "new object", COLLECTIONS, True),
    Row(0x8895, "CREATE COLLECTION", OPTIONAL, "new object", COLLECTIONS),
    Row(0x8896, "REMOVE COLLECTION", OPTIONAL, "collection", COLLECTIONS, True),
    Row(0x8897, "LIST COLLECTION", OPTIONAL, "collection", COLLECTIONS),
    Row(0x8898, "SET KEY", SECURITY, "partition", None),
    Row(0x8899, "SET MASTER KEY", SECURITY, "root", None),
    Row(0x889A, "FLUSH COLLECTION", OPTIONAL, "collection", COLLECTIONS),
    Row(0x889B, "FLUSH PARTITION", MANDATORY, "partition", PARTITIONS),
    Row(0x889C, "FLUSH OSD", MANDATORY, "root", ROOT),
    Row(0x88A0, "QUERY", OPTIONAL, "collection", COLLECTIONS, True),
    Row(0x88A1, "REMOVE MEMBER OBJECTS", OPTIONAL, "collection", COLLECTIONS, True),
    Row(0x88A2, "GET MEMBER ATTRIBUTES", OPTIONAL, "collection", None),
    Row(0x88A3, "SET MEMBER ATTRIBUTES", OPTIONAL, "collection", None, True),
    Row(0x88A5, "GEN CAS", PRIVATE, "object", None),
    Row(0x88A8, "CREATE CLONE", OPTIONAL, "new partition", None),
    Row(0x88A9, "CREATE SNAPSHOT", OPTIONAL, "new partition", None),
    Row(0x88AA, "DETACH CLONE", OPTIONAL, "partition", None),
    Row(0x88AB, "REFRESH SNAPSHOT OR CLONE", OPTIONAL, "partition", None),
    Row(0x88AC, "RESTORE PARTITION FROM SNAPSHOT", OPTIONAL, "partition", None),
    Row(0x88B1, "READ MAP", MANDATORY, "object", USER),
    Row(0x88B2, "READ MAPS AND COMPARE", OPTIONAL, "object", None),
    Row(0x8F7C, "PERFORM SCSI COMMAND", MANDATORY, "root", None),
    Row(0x8F7D, "PERFORM TASK MANAGEMENT FUNCTION", MANDATORY, "root", None),
    Row(0x8F81, "EXEC", VENDOR, "any", None, True),
    Row(0x8F82, "EXECUTE FUNCTION", VENDOR, "any", None, True),
    Row(0x8F83, "ACTIVATE FUNCTION", VENDOR, "object", None),
    Row(0x8F88, "READ NAMES", VENDOR, "any", None),
    Row(0x8F89, "CHANGE NAMES", VENDOR, "any", None),
]

BY_NAME = {row.name: row for row in ROWS}
