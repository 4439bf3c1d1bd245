# SPDX-License-Identifier: GPL-2.0-or-later
"""pyosd: a client for T10 OSD-2 targets over iSCSI, and for jobs that run beside the data.

A name is imported when it is first used, so that a short command starts quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyosd.cluster.board import ObjectOutcome
    from pyosd.cluster.many import Many, many
    from pyosd.cluster.map_object import ClusterMap, MapConflict
    from pyosd.cluster.placement import Copies
    from pyosd.cluster.run import IncompleteError, Run
    from pyosd.cluster.survey import CopyFault, CopyFinding, Prefer
    from pyosd.cluster.upkeep import ClusterReport, Upkeep
    from pyosd.commands import Commands
    from pyosd.commands.pool_status import PoolStatus
    from pyosd.errors import (
        ChangeRefused,
        CommandTimeout,
        Conflict,
        Exists,
        FunctionInUse,
        IntegrityError,
        Invalid,
        IsADirectory,
        JobCancelled,
        JobError,
        JobExpired,
        JobOutOfMemory,
        JobTimeout,
        LimitExceeded,
        LoginRejected,
        NameChanged,
        NameExists,
        NoSpace,
        NoSuchName,
        NotADirectory,
        NotEmpty,
        NotFound,
        OSDError,
        PermissionDenied,
        ProtocolError,
        PushedBack,
        SandboxLost,
        ScriptError,
        SessionLost,
        StorageError,
        TargetBusy,
        TaskAborted,
        TooLate,
        UnprovenAnswer,
        Unreachable,
        VersionMismatch,
    )
    from pyosd.functions.stored import function
    from pyosd.iscsi.login import Chap
    from pyosd.iscsi.session import TaskFunction, TaskResponse, discover
    from pyosd.jobs.executor import Executor
    from pyosd.jobs.job import Job
    from pyosd.jobs.job_array import JobArray
    from pyosd.jobs.modules import Modules
    from pyosd.jobs.polling import as_completed, wait
    from pyosd.osd._query import Condition, Criterion, attr
    from pyosd.target import Target, connect
    from pyosd.types import (
        ROOT,
        AttributeId,
        AttributeValue,
        ListResult,
        ObjectAttributes,
        ObjectId,
        ObjectRef,
        ObjectType,
        PartitionId,
        Sense,
        TaskManagement,
        ref,
    )
    from pyosd.wire.attributes import ALL, Page
    from pyosd.wire.cdb import (
        AttributeLists,
        AttributePage,
        Duplication,
        Isolation,
        Options,
        ServiceAction,
        SetOne,
    )
    from pyosd.wire.exec_params import After, ExecParams, HomeCost, Limits
    from pyosd.wire.job_status import ArrayPlace, JobFlag, JobState, JobStatus
    from pyosd.wire.list_data import Extent, MapType
    from pyosd.wire.reply import Reply
    from pyosd.wire.tracking import CommandTracking, TaskManagementReply
    from pyosd.wire.used import ChangedInput, Used, UsedKind, UsedObject

__all__ = [
    "ALL",
    "ROOT",
    "After",
    "ArrayPlace",
    "AttributeId",
    "AttributeLists",
    "AttributePage",
    "AttributeValue",
    "ChangeRefused",
    "ChangedInput",
    "Chap",
    "ClusterMap",
    "ClusterReport",
    "CommandTimeout",
    "CommandTracking",
    "Commands",
    "Condition",
    "Conflict",
    "Copies",
    "CopyFault",
    "CopyFinding",
    "Criterion",
    "Duplication",
    "ExecParams",
    "Executor",
    "Exists",
    "Extent",
    "FunctionInUse",
    "HomeCost",
    "IncompleteError",
    "IntegrityError",
    "Invalid",
    "IsADirectory",
    "Isolation",
    "Job",
    "JobArray",
    "JobCancelled",
    "JobError",
    "JobExpired",
    "JobFlag",
    "JobOutOfMemory",
    "JobState",
    "JobStatus",
    "JobTimeout",
    "LimitExceeded",
    "Limits",
    "ListResult",
    "LoginRejected",
    "Many",
    "MapConflict",
    "MapType",
    "Modules",
    "NameChanged",
    "NameExists",
    "NoSpace",
    "NoSuchName",
    "NotADirectory",
    "NotEmpty",
    "NotFound",
    "OSDError",
    "ObjectAttributes",
    "ObjectId",
    "ObjectOutcome",
    "ObjectRef",
    "ObjectType",
    "Options",
    "Page",
    "PartitionId",
    "PermissionDenied",
    "PoolStatus",
    "Prefer",
    "ProtocolError",
    "PushedBack",
    "Reply",
    "Run",
    "SandboxLost",
    "ScriptError",
    "Sense",
    "ServiceAction",
    "SessionLost",
    "SetOne",
    "StorageError",
    "Target",
    "TargetBusy",
    "TaskAborted",
    "TaskFunction",
    "TaskManagement",
    "TaskManagementReply",
    "TaskResponse",
    "TooLate",
    "UnprovenAnswer",
    "Unreachable",
    "Upkeep",
    "Used",
    "UsedKind",
    "UsedObject",
    "VersionMismatch",
    "as_completed",
    "attr",
    "connect",
    "discover",
    "function",
    "many",
    "ref",
    "wait",
]

# The module of each name; a test compares it with the imports above.
MODULES = {
    name: module
    for module, names in {
        "pyosd.cluster.board": ("ObjectOutcome",),
        "pyosd.cluster.many": ("Many", "many"),
        "pyosd.cluster.map_object": ("ClusterMap", "MapConflict"),
        "pyosd.cluster.placement": ("Copies",),
        "pyosd.cluster.run": ("IncompleteError", "Run"),
        "pyosd.cluster.survey": ("CopyFault", "CopyFinding", "Prefer"),
        "pyosd.cluster.upkeep": ("ClusterReport", "Upkeep"),
        "pyosd.commands": ("Commands",),
        "pyosd.commands.pool_status": ("PoolStatus",),
        "pyosd.errors": (
            "ChangeRefused",
            "CommandTimeout",
            "Conflict",
            "Exists",
            "FunctionInUse",
            "IntegrityError",
            "Invalid",
            "IsADirectory",
            "JobCancelled",
            "JobError",
            "JobExpired",
            "JobOutOfMemory",
            "JobTimeout",
            "LimitExceeded",
            "LoginRejected",
            "NameChanged",
            "NameExists",
            "NoSuchName",
            "NotADirectory",
            "NotFound",
            "OSDError",
            "PermissionDenied",
            "ProtocolError",
            "PushedBack",
            "NoSpace",
            "NotEmpty",
            "SandboxLost",
            "ScriptError",
            "SessionLost",
            "StorageError",
            "TargetBusy",
            "TaskAborted",
            "TooLate",
            "UnprovenAnswer",
            "Unreachable",
            "VersionMismatch",
        ),
        "pyosd.functions.stored": ("function",),
        "pyosd.iscsi.login": ("Chap",),
        "pyosd.iscsi.session": ("TaskFunction", "TaskResponse", "discover"),
        "pyosd.jobs.executor": ("Executor",),
        "pyosd.jobs.job": ("Job",),
        "pyosd.jobs.job_array": ("JobArray",),
        "pyosd.jobs.modules": ("Modules",),
        "pyosd.jobs.polling": ("as_completed", "wait"),
        "pyosd.osd._query": ("Condition", "Criterion", "attr"),
        "pyosd.target": ("Target", "connect"),
        "pyosd.types": (
            "ROOT",
            "AttributeId",
            "AttributeValue",
            "ListResult",
            "ObjectAttributes",
            "ObjectId",
            "ObjectRef",
            "ObjectType",
            "PartitionId",
            "Sense",
            "TaskManagement",
            "ref",
        ),
        "pyosd.wire.attributes": ("ALL", "Page"),
        "pyosd.wire.cdb": (
            "AttributeLists",
            "AttributePage",
            "Duplication",
            "Isolation",
            "Options",
            "ServiceAction",
            "SetOne",
        ),
        "pyosd.wire.exec_params": ("After", "ExecParams", "HomeCost", "Limits"),
        "pyosd.wire.job_status": ("ArrayPlace", "JobFlag", "JobState", "JobStatus"),
        "pyosd.wire.list_data": ("Extent", "MapType"),
        "pyosd.wire.reply": ("Reply",),
        "pyosd.wire.tracking": ("CommandTracking", "TaskManagementReply"),
        "pyosd.wire.used": ("ChangedInput", "Used", "UsedKind", "UsedObject"),
    }.items()
    for name in names
}


def __getattr__(name: str) -> Any:
    """Import a public name, or a module of this package, on its first use."""
    if name in MODULES:
        value = getattr(import_module(MODULES[name]), name)
        globals()[name] = value
        return value
    if not name.startswith("__"):
        try:
            return import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'", name=name)


def __dir__() -> list[str]:
    """The public names, imported or not."""
    return sorted({*globals(), *__all__})
