# SPDX-License-Identifier: GPL-2.0-or-later
"""Submit code as a job with EXEC, and list the jobs of a partition.

Not here: a job that exists (job.py), the code that is sent for a function (source.py), arrays
(job_array.py).
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from math import inf
from operator import or_
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    NamedTuple,
    ParamSpec,
    TypedDict,
    TypeVar,
)

from pyosd import errors
from pyosd.commands import Commands
from pyosd.commands.dialogue import MISTAKES, Dialogue, name_mistake
from pyosd.commands.execute import exec_code
from pyosd.jobs.dialogues.followed import Followed
from pyosd.jobs.dialogues.following import take_reply
from pyosd.jobs.modules import Modules, PathLike, is_zipapp, modules_of, pack_zipapp
from pyosd.jobs.source import (
    Code,
    call_arguments,
    code_bytes,
    code_name,
    encode_args,
    is_bytecode,
    members_over,
    pack,
    positional_of,
    with_objects,
    with_over,
)
from pyosd.types import JOBS_COLLECTION, ObjectAttributes, ObjectRef, PartitionId, check_ref, ref
from pyosd.wire.attributes import CURRENT_CACHED_RESULT
from pyosd.wire.capability import JOB_RIGHTS, Permission, check_permission
from pyosd.wire.exec_params import (
    After,
    ArgsEncoding,
    Duration,
    ExecFlag,
    ExecParams,
    HomeCost,
    Limits,
    parse_duration,
)
from pyosd.wire.indices import Ranges, parse_array, ranges_of
from pyosd.wire.job_status import STATUS_IDS, ArrayPlace, JobStatus, decode_status
from pyosd.wire.reply import ExecReply

if TYPE_CHECKING:
    from pyosd.jobs.begin import Begin

__all__ = [
    "Kinds",
    "Prepared",
    "Submission",
    "check_types",
    "jobs_of",
    "list_jobs",
    "place_of",
    "prepare",
    "send",
    "submit",
    "submit_array",
    "takes_options",
]

_WAIT_MARGIN = 30.0
_P = ParamSpec("_P")
_S = TypeVar("_S")
_R = TypeVar("_R")
_INLINE_RESULT = 4096  # room a waiting EXEC makes for the result


class Prepared(NamedTuple):
    """A job ready to be sent: where it may act, its code, and the parameters of EXEC."""

    zone: ObjectRef
    code: bytes
    params: ExecParams


class Submission(TypedDict, total=False):
    """Options of one job as a dict; prepare() has their meanings and defaults."""

    args: object
    kwargs: Mapping[str, object] | None
    limits: Limits | None
    name: str
    tags: Mapping[str, str] | None
    priority: int | None
    key: str | bytes | None
    hold: bool
    idempotent: bool
    after: Iterable[After | Followed | ObjectRef]
    expire: Duration | None
    grace: Duration | None
    begin: Begin | None
    reuse: Duration | bool
    pool: str
    surrogate: ObjectRef | None
    wait: Duration | None
    compress: bool | None
    bytecode: bool
    predecessor: ObjectRef | None
    rights: Permission
    home: HomeCost | None
    retries: int | None
    retry_oom: bool
    retry_exit: int
    array: Iterable[int] | str | None
    at_once: int
    over: Iterable[ObjectRef] | None
    batch: int
    modules: Modules | PathLike | Iterable[PathLike] | None


def to_wait_for(what: After | Followed | ObjectRef) -> After:
    """A job alone means that it must end COMPLETED."""
    if isinstance(what, After):
        return what
    job = what.id if isinstance(what, Followed) else what
    check_ref("a job in after", job)
    return After(job)


def _array(indices: Iterable[int] | str | None, at_once: int) -> tuple[Ranges, int]:
    """The ranges of the indices, () where there are none, and how many may run at once."""
    if indices is None:
        return (), 0
    if at_once < 0:
        raise ValueError("at_once must not be negative")
    if not isinstance(indices, str):
        return ranges_of(indices), at_once
    ranges, said = parse_array(indices)
    return ranges, at_once or said


def place_of(array: ObjectRef, params: ExecParams) -> ArrayPlace:
    """The array that was accepted with these parameters."""
    assert params.array is not None
    first, last, at_once = params.array
    ranges = params.array_ranges
    members = sum(map(len, ranges)) if ranges else last - first + 1
    return ArrayPlace(array, first, members, at_once, ranges)


def check_types(zone: ObjectRef, limits: Limits | None) -> None:
    """The two mistakes that would show late without a type checker.  Raises: TypeError."""
    check_ref("zone", zone)
    if not isinstance(limits or Limits(), Limits):
        raise TypeError(f"limits are pyosd.Limits(...), not {limits!r}")


def source_bytes(
    code: Code, given: Modules | PathLike | Iterable[PathLike] | None, objects: bool
) -> bytes:
    """The code and the modules that travel with it, as one.

    Raises: TypeError, ValueError, OSError; SyntaxError: a module does not compile.
    """
    modules = None if given is None else modules_of(given)
    if isinstance(code, os.PathLike) and is_zipapp(code):
        return pack_zipapp(code, modules)
    if modules is None:
        return code_bytes(code, objects)
    text = code_bytes(code, objects, modules.names)
    return modules.archive(text) if text else b""


def prepare(
    code: Code | None,
    *,
    zone: ObjectRef,
    args: object = None,
    kwargs: Mapping[str, object] | None = None,
    limits: Limits | None = None,
    name: str = "",
    tags: Mapping[str, str] | None = None,
    priority: int | None = None,
    key: str | bytes | None = None,
    hold: bool = False,
    idempotent: bool = False,
    after: Iterable[After | Followed | ObjectRef] = (),
    expire: Duration | None = None,
    grace: Duration | None = None,
    begin: Begin | None = None,
    reuse: Duration | bool = False,
    pool: str = "",
    surrogate: ObjectRef | None = None,
    wait: Duration | None = None,
    compress: bool | None = None,
    bytecode: bool = False,
    predecessor: ObjectRef | None = None,
    rights: Permission = JOB_RIGHTS,
    home: HomeCost | None = None,
    retries: int | None = None,
    retry_oom: bool = False,
    retry_exit: int = 0,
    array: Iterable[int] | str | None = None,
    at_once: int = 0,
    over: Iterable[ObjectRef] | None = None,
    batch: int = 1,
    modules: Modules | PathLike | Iterable[PathLike] | None = None,
) -> Prepared:
    """
    Args:
        code: source text (str, bytes), a path (os.PathLike; .pyc: byte-code), or a plain function,
            whose source is sent.  None: the code of the predecessor.
        zone: where the job can act: the root, a partition, a collection or a user object.
        args: for a script: osd.args; bytes are sent unchanged, anything else as JSON.  For a function: a
            sequence of its positional arguments.  The function gets an ObjectRef as an object of the
            module osd.
        kwargs: keyword arguments of a function.
        limits: None: the pool's.
        name: at most 128 bytes.  "": the name of the file or function.
        tags: at most 16.
        priority: -100 to 100; a job with a higher number starts first.
        key: idempotency key, at most 64 bytes.  With a key, submitting again after a lost session
            finds the job that exists.
        hold: accept the job, but do not start it before release().
        idempotent: the job may run twice after a fault.
        after: jobs to wait for, at most 64 jobs of the same submitter.  Each must end COMPLETED;
            After(job, failed=True) waits for a job that does not.
        expire: how long the target keeps the record.  A job that is held or waits for others is
            cancelled that long after its submission.
        grace: time to clean up when the job is ended, at most 5 s.  None: 20 ms.
        begin: earliest start: a datetime, seconds since 1970, or text such as "now+2h", "16:30",
            "2026-11-24T08:00".  The target's clock decides.
        reuse: return an earlier job with the same code, arguments and zone, if no object that it read has
            changed.  True, or the greatest age of its end in seconds.  The result must depend on
            nothing else, such as time or randomness.  Job.cached_result says whether this happened.
            See docs/howto/replay.md.
        pool: pool that runs the job.  "": the pool `default`.
        surrogate: make the job's object an ordinary object of this partition, with this id if it has
            one.  This needs the permission CREATE, which the script then has, too.  None: it is in the
            zone's partition, and no listing of data shows it.
        wait: how long the command itself waits for the end, at most 60 s.  This saves polling for
            short jobs.
        compress: compress the code with zlib.  None: if that saves bytes.
        bytecode: the code is the content of a .pyc file.  The target must permit byte-code, and run
            the same release of Python.
        predecessor: the earlier job of the same submitter that this job runs again.  If code is None,
            its code runs, with its arguments if args are None; see Target.retry().
        rights: permissions in the zone, if the target requires credentials: of pyosd.wire.capability
            JOB_RIGHTS (all), READ_ONLY, or Permission(0).  They end with the credential of the
            submitter.
        home: the cost of the job at the client; the job cannot change objects then.  If the target
            expects to take longer, it refuses the job (PushedBack), or ends it, or members of an
            array, with reason 119.  Target.run() sends this, and runs such a job at the client.
        retries: repetitions after faults of the system, 0 to 14.  None: 2.
        retry_oom: repeat the job also if it ran out of memory, and has written nothing or is idempotent.
        retry_exit: repeat the job also if it exits with this code, 1 to 255, on the same condition.
            0: no code.
        array: indices of an array of jobs, each below 2**32: a range, other ints, or text such as
            "1,3,10-20:2%4".  At most 10,000 members, and at most as many as one user can queue.
        at_once: how many members of the array run at a time.  0: no limit.
        over: objects of the zone, to be processed by an array of jobs; each member finds its objects in
            osd.over.  Excludes array, and args of bytes.
        batch: objects of over for each member.
        modules: modules to send with the code: paths of modules (.py), packages, folders to import from,
            .pyz and .zip files; or pyosd.Modules(*paths), which several jobs can use.
    """
    check_types(zone, limits)
    if code is None and predecessor is None:
        raise ValueError("a job without code of its own needs the predecessor whose code it runs")
    if not 0 <= retry_exit <= 255:
        raise ValueError("retry_exit is an exit code of 1 to 255, 0: none")
    (encoding, arguments), objects = _arguments(code, args, kwargs)
    if over is not None:
        if array is not None:
            raise ValueError("either array or over says which members there are")
        found, array = members_over(over, batch)
        encoding, arguments = with_over((encoding, arguments), found, batch)
    text = b"" if code is None else source_bytes(code, modules, objects)
    if code is not None and not text:
        raise ValueError("there is no code to run")
    if reuse is not False and text:
        from pyosd.jobs.inputs.pure import impurity

        if why := impurity(text):
            raise ValueError(f"reuse: {why}")
    sent, packing = pack(text, compress) if text else (b"", ExecFlag(0))
    flags = {
        ExecFlag.HOLD: hold,
        ExecFlag.IDEMPOTENT: idempotent,
        ExecFlag.RETRY_OOM: retry_oom,
        ExecFlag.CODE_BYTECODE: code is not None and (bytecode or is_bytecode(code)),
    }
    check_permission("rights", rights)
    ranges, at_once = _array(array, at_once)
    begin_ms = 0
    if begin is not None:
        from pyosd.jobs.begin import parse_begin

        begin_ms = parse_begin(begin)
    params = ExecParams(
        args=arguments,
        args_encoding=encoding,
        limits=limits or Limits(),
        priority=priority,
        name=name or ("" if code is None else code_name(code)),
        tags=tags or {},
        key=key.encode() if isinstance(key, str) else key or b"",
        surrogate=surrogate,
        wait=wait,
        flags=reduce(or_, (flag for flag, on in flags.items() if on), packing),
        retry_exit=retry_exit,
        retries=retries,
        array=(ranges[0][0], ranges[-1][-1], at_once) if ranges else None,
        array_ranges=ranges if len(ranges) > 1 or (ranges and ranges[0].step != 1) else (),
        predecessor=predecessor,
        rights=rights,
        home=home,
        after=tuple(to_wait_for(each) for each in after),
        pool=pool,
        expiry=expire,
        begin=begin_ms,
        reuse=None if reuse is False else inf if reuse is True else reuse,
        grace=grace,
    )
    return Prepared(zone, sent, params)


def _arguments(
    code: Code | None, args: object, kwargs: Mapping[str, object] | None
) -> tuple[tuple[ArgsEncoding, bytes], bool]:
    """The arguments as they are sent, and whether objects are among them."""
    if not callable(code):
        return encode_args(args), False
    positional = positional_of(args)
    (positional, named), objects = with_objects((positional, dict(kwargs or {})))
    return (ArgsEncoding.JSON, call_arguments(positional, named)), objects


@functools.cache
def spelled_and_described(options: Callable[..., Any]) -> tuple[list[inspect.Parameter], str]:
    """The parameters of a function, and its text."""
    return [*inspect.signature(options).parameters.values()], inspect.getdoc(options) or ""


def takes_options(
    options: Callable[_P, Prepared],
) -> Callable[[Callable[[_S, Prepared], _R]], Callable[Concatenate[_S, _P], _R]]:
    """Give a function that sends a Prepared the spelled parameters of prepare() instead.

    Target.exec() and all its relatives get their parameters, and the text about them, from one place.
    """
    spelled, described = spelled_and_described(options)

    def decorate(send: Callable[[_S, Prepared], _R]) -> Callable[Concatenate[_S, _P], _R]:
        @functools.wraps(send)
        def sends(first: _S, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
            try:
                return send(first, options(*args, **kwargs))
            except MISTAKES as error:
                inner, outer = f"{options.__name__}()", f"{send.__name__}()"
                if str(error).startswith(inner):  # about the parameters
                    raise TypeError(str(error).replace(inner, outer, 1)) from None
                name_mistake(options, args, kwargs)
                raise

        own = inspect.signature(send)
        parameters = [next(iter(own.parameters.values())), *spelled]
        sends.__doc__ = f"{inspect.getdoc(send)}\n\n{described}"
        sends.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        return sends

    return decorate


J = TypeVar("J", bound=Followed)
A = TypeVar("A", bound=Followed)
J_co = TypeVar("J_co", bound=Followed, covariant=True)
A_co = TypeVar("A_co", bound=Followed, covariant=True)


class Kinds(Generic[J_co, A_co]):
    """The classes that a face uses for accepted jobs and arrays.

    job: called with commands, id and name.  array: with commands, id, name and place.
    """

    def __init__(
        self,
        job: Callable[[Any, ObjectRef, str], J_co],
        array: Callable[[Any, ObjectRef, str, ArrayPlace], A_co],
    ) -> None:
        self.job, self.array = job, array


def submit(kinds: Kinds[J, A], commands: object, prepared: Prepared) -> Dialogue[J | A]:
    """Send EXEC for one job, or for an array of jobs where the options name indices."""
    if prepared.params.array is not None:
        return (yield from submit_array(kinds, commands, prepared))
    reply = yield from send(prepared)
    if reply.job is None:
        raise errors.ProtocolError("the target accepted a job without naming it")
    job = kinds.job(commands, reply.job, prepared.params.name)
    job.cached_result = any(
        each.id == CURRENT_CACHED_RESULT and each.uint for each in reply.attributes
    )
    yield from take_reply(job, reply)
    return job


def submit_array(kinds: Kinds[J, A], commands: object, prepared: Prepared) -> Dialogue[A]:
    """Send EXEC for an array of jobs.  Raises: ValueError: the options name no indices."""
    params = prepared.params
    if params.array is None:
        raise ValueError("an array of jobs needs array=range(...), other indices, or text")
    reply = yield from send(prepared)
    if reply.job is None:
        raise errors.ProtocolError("the target accepted an array without naming it")
    array = kinds.array(commands, reply.job, params.name, place_of(reply.job, params))
    yield from take_reply(array, reply)
    return array


def exec_timeout(params: ExecParams) -> float | None:
    """Seconds to wait for EXEC's answer; None: as for any command."""
    return None if params.wait is None else parse_duration(params.wait) + _WAIT_MARGIN


def send(prepared: Prepared) -> Dialogue[ExecReply]:
    """EXEC, sent a second time after a lost session where a key makes that safe."""
    try:
        return (yield from _send_once(prepared))
    except errors.SessionLost:
        if not prepared.params.key:
            raise
    return (yield from _send_once(prepared))


def _send_once(prepared: Prepared) -> Dialogue[ExecReply]:
    """EXEC; a refusal says in words what is wrong."""
    zone, code, params = prepared.zone, prepared.code, prepared.params
    waits = params.wait is not None
    try:
        return (
            yield from exec_code(
                zone,
                code,
                params,
                synchronous=waits,
                result_allocation_length=_INLINE_RESULT if waits else 0,
                get=(
                    *(() if params.reuse is None else (CURRENT_CACHED_RESULT,)),
                    *(STATUS_IDS if waits else ()),
                ),
                timeout=exec_timeout(params),
            )
        )
    except errors.OSDError as error:
        from pyosd.jobs.refusal import explain_refusal

        if why := (yield from explain_refusal(params, error)):
            error.text = f"{why} ({error.text})"
        raise
    except MISTAKES:  # an option is first looked at where it is encoded
        name_mistake(ExecParams, (), vars(params))
        raise


# ---- many jobs -----------------------------------------------------------------------------------


def jobs_of(partition_id: PartitionId) -> Dialogue[list[JobStatus]]:
    """Every job whose surrogate is in a partition, by id, in one command."""
    from pyosd.commands.collections import get_member_attributes

    collection = ref(partition_id, JOBS_COLLECTION)
    try:
        members = yield from get_member_attributes(collection, STATUS_IDS)
    except errors.NotFound:
        return []  # the collection is made with the first job
    return list(filter(None, (_member_status(partition_id, each) for each in members)))


def list_jobs(commands: Commands, partition_id: PartitionId) -> list[JobStatus]:
    """Every job whose surrogate is in a partition, by id, in one command."""
    return commands.carry(jobs_of(partition_id))


def _member_status(partition_id: PartitionId, member: ObjectAttributes) -> JobStatus | None:
    return decode_status(ref(partition_id, member.object_id), member.attributes)
