# SPDX-License-Identifier: GPL-2.0-or-later
"""pyosd: a client for T10 OSD-2 targets over iSCSI, and for jobs that run beside the data."""

from pyosd._login import Chap
from pyosd._polling import as_completed, wait
from pyosd.attributes import ALL, Page
from pyosd.cdb import (
    AttributeLists,
    AttributePage,
    Duplication,
    Isolation,
    Options,
    ServiceAction,
    SetOne,
)
from pyosd.commands import Commands
from pyosd.errors import (
    CommandTimeout,
    Conflict,
    IntegrityError,
    JobCancelled,
    JobError,
    JobExpired,
    JobOutOfMemory,
    JobTimeout,
    LimitExceeded,
    LoginRejected,
    NotFound,
    OSDError,
    PermissionDenied,
    ProtocolError,
    QuotaExceeded,
    SandboxLost,
    ScriptError,
    SessionLost,
    TargetBusy,
    TaskAborted,
    Unreachable,
)
from pyosd.exec_params import After, ExecParams, Limits
from pyosd.executor import Executor
from pyosd.job import Job
from pyosd.job_array import JobArray
from pyosd.job_status import ArrayPlace, JobFlag, JobState, JobStatus
from pyosd.list_data import Extent, MapType
from pyosd.modules import Modules
from pyosd.osd._query import Condition, Criterion, attr
from pyosd.pool_status import PoolStatus
from pyosd.reply import Reply
from pyosd.session import TaskFunction, TaskResponse, discover
from pyosd.target import Target, connect
from pyosd.tracking import CommandTracking, TaskManagementReply
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

__all__ = [
    "ALL",
    "ROOT",
    "After",
    "ArrayPlace",
    "AttributeId",
    "AttributeLists",
    "AttributePage",
    "AttributeValue",
    "Chap",
    "CommandTimeout",
    "CommandTracking",
    "Commands",
    "Condition",
    "Conflict",
    "Criterion",
    "Duplication",
    "ExecParams",
    "Executor",
    "Extent",
    "IntegrityError",
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
    "MapType",
    "Modules",
    "NotFound",
    "OSDError",
    "ObjectAttributes",
    "ObjectId",
    "ObjectRef",
    "ObjectType",
    "Options",
    "Page",
    "PartitionId",
    "PermissionDenied",
    "PoolStatus",
    "ProtocolError",
    "QuotaExceeded",
    "Reply",
    "SandboxLost",
    "ScriptError",
    "Sense",
    "ServiceAction",
    "SessionLost",
    "SetOne",
    "Target",
    "TargetBusy",
    "TaskAborted",
    "TaskFunction",
    "TaskManagement",
    "TaskManagementReply",
    "TaskResponse",
    "Unreachable",
    "as_completed",
    "attr",
    "connect",
    "discover",
    "ref",
    "wait",
]
