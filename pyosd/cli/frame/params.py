# SPDX-License-Identifier: GPL-2.0-or-later
"""Types of what people type: addresses, sizes, durations, tags, files to read."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pyosd.cli.frame.addresses import JobName, LoneId, MemberRef, PathRef, is_job_path, is_path
from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.param_type import ParamType
from pyosd.cli.output.terminal import file_error
from pyosd.types import ROOT, ObjectRef
from pyosd.wire.exec_params import After, parse_duration, parse_size
from pyosd.wire.indices import Ranges, parse_array

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

__all__ = [
    "ADDRESS",
    "AFTER",
    "ARRAY",
    "ATTRIBUTE",
    "BEGIN",
    "COLLECTION",
    "DURATION",
    "JOB",
    "MOMENT",
    "NEW_PARTITION",
    "NUMBER",
    "OBJECT",
    "PATH",
    "RETRY_ON",
    "SIZE",
    "TAG",
    "DurationParam",
    "InputFile",
    "InputPath",
    "NumberParam",
    "PathParam",
    "SizeParam",
    "Unreadable",
    "completed",
    "completing",
    "pool_option",
]

Function = TypeVar("Function", bound=Callable[..., Any])


def completed(what: str, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """Completions of a word.  what: a function of completion_words."""
    from click.shell_completion import CompletionItem

    from pyosd.cli.frame import completion_words

    return [CompletionItem(each) for each in getattr(completion_words, what)(ctx, incomplete)]


def completing(
    what: str,
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """The completion of a parameter that takes any text.  what: as of completed()."""
    return lambda ctx, _param, incomplete: completed(what, ctx, incomplete)


def pool_option(text: str) -> Callable[[Function], Function]:
    """`--pool NAME`, completed with the pools of the target.  text: its help."""
    return click.option(
        "--pool", metavar="NAME", default="", shell_complete=completing("pools"), help=text
    )


class AddressParam(ParamType[ObjectRef]):
    """``root``, PID or PID/OID, each decimal or 0x, or a path; inside: only what lies in a partition.

    words: the function of completion_words that completes it.
    """

    forms = "root, PID, PID/OID or a path /NAME/..."
    paths = True

    def __init__(self, name: str, words: str, inside: bool = False) -> None:
        self.name = name
        self.words = words
        self.inside = inside

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete with ids that the target has now."""
        return completed(self.words, ctx, incomplete)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> ObjectRef:
        """Parse an address; the object's type is looked up later."""
        if isinstance(value, ObjectRef):
            return value
        if self.paths and is_path(str(value)):
            inside = self.name if self.inside else ""
            return PathRef(ROOT.partition_id, ROOT.object_id, str(value), inside)
        try:
            address = ObjectRef.parse(str(value))
        except ValueError:
            self.fail(f"'{value}' is not {self.forms} (ids decimal or 0x)", param, ctx)
        if self.inside and not address.object_id:
            self.fail(f"'{value}' is not {self.name}", param, ctx)
        return address


class PathParam(ParamType[str]):
    """A path of the target: /PARTITION/NAME/..., by a partition's id or name."""

    name = "PATH"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete with names that the target has now."""
        return completed("paths", ctx, incomplete)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check its length; the target checks the names."""
        text = str(value)
        if not text or "\0" in text:
            self.fail("a path has at least one character, and none is NUL", param, ctx)
        return text


class NewPartitionParam(ParamType[int | str]):
    """A partition that is to be made: its id, or /NAME."""

    name = "PARTITION"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        """The id, or the name without the slash."""
        from pyosd.fs.paths import named_id, split

        parts = split(str(value))
        number = named_id(parts[0]) if len(parts) == 1 else None
        if len(parts) != 1 or (number is None and not is_path(str(value))):
            self.fail(f"'{value}' is neither an id from 0x10000 on nor /NAME", param, ctx)
        return parts[0] if number is None else number


class SizeParam(ParamType[int]):
    """Bytes, with a unit if one likes: 4096, 256MiB.

    Args: least, most: bounds, as people write them; "": none.
    """

    name = "SIZE"

    def __init__(self, least: str = "", most: str = "") -> None:
        self.least, self.most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse to bytes."""
        try:
            found = parse_size(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if (
            not parse_size(self.least or 0)
            <= found
            <= (parse_size(self.most) if self.most else inf)
        ):
            self.fail(f"'{value}' is not from {self.least or 0} to {self.most}", param, ctx)
        return found


class DurationParam(ParamType[float]):
    """Seconds as a number, or numbers with units: 30, 500ms, 2h, 1h30m.

    Args: least_s, most_s: bounds.
    """

    name = "DURATION"

    def __init__(self, least_s: float = 0.0, most_s: float = inf) -> None:
        self.least_s, self.most_s = least_s, most_s

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Parse to seconds; "inf" is for ever."""
        try:
            found = inf if value == "inf" else parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if not self.least_s <= found <= self.most_s:
            self.fail(f"'{value}' is not from {self.least_s:g} to {self.most_s:g} s", param, ctx)
        return found


class MomentParam(ParamType[float]):
    """A time, 2026-11-21T15:00 (local unless it says otherwise), or a DURATION before now."""

    name = "TIME"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Parse to seconds since 1970."""
        if isinstance(value, float):
            return value
        try:
            return time.time() - parse_duration(str(value))
        except ValueError:
            pass
        try:
            return datetime.fromisoformat(str(value)).astimezone().timestamp()
        except (ValueError, OverflowError):
            self.fail(f"'{value}' is neither a time (2026-11-21T15:00) nor a duration", param, ctx)


class BeginTime(ParamType[int]):
    """now+2h, 16:30 (the next one, local time), or ISO 8601 (local unless it says otherwise)."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse to milliseconds since 1970."""
        if isinstance(value, int):
            return value
        try:
            from pyosd.jobs.begin import parse_begin  # imports all of pyosd.jobs

            return parse_begin(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class NumberParam(ParamType[int]):
    """An unsigned number, decimal or 0x."""

    name = "NUMBER"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse to an int of at most 64 bits."""
        if isinstance(value, int):
            return value
        try:
            number = int(str(value), 0)
        except ValueError:
            number = -1
        if not 0 <= number < 1 << 64:
            self.fail(f"'{value}' is not an unsigned number (decimal or 0x)", param, ctx)
        return number


class AttributeName(ParamType[tuple[int, int]]):
    """PAGE/NUMBER, each decimal or 0x; ``all`` stands for every one."""

    name = "PAGE/NUMBER"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        """Parse to page and number, 32 bits each."""
        if isinstance(value, tuple):
            return value
        page, _, number = str(value).partition("/")
        parts = [
            0xFFFF_FFFF if part == "all" else _uint32(part) for part in (page, number or "all")
        ]
        if None in parts:
            self.fail(f"'{value}' is not PAGE/NUMBER (decimal or 0x)", param, ctx)
        return parts[0] or 0, parts[1] or 0


def _uint32(text: str) -> int | None:
    try:
        number = int(text, 0)
    except ValueError:
        return None
    return number if 0 <= number < 1 << 32 else None


class JobAddress(AddressParam):
    """A job: an address, a path /.jobs/..., a member of an array, ARRAY[INDEX], or a name."""

    forms = "a job's id, PID/OID"
    paths = False

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> ObjectRef:
        """Parse; what the target calls a member is found out later."""
        if isinstance(value, ObjectRef):
            return value
        if is_job_path(str(value)):
            return PathRef(ROOT.partition_id, ROOT.object_id, str(value))
        array, bracket, index = str(value).partition("[")
        if not bracket:
            return self._whole(str(value), param, ctx)
        if not index.endswith("]") or not index[:-1].isdecimal():
            self.fail(f"'{value}' is not ARRAY[INDEX]", param, ctx)
        whole = self._whole(array, param, ctx)
        name = whole.name if isinstance(whole, JobName) else ""
        return MemberRef(whole.partition_id, whole.object_id, int(index[:-1]), name)

    def _whole(
        self, text: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> ObjectRef:
        try:
            found = ObjectRef.parse(text)
        except ValueError:
            if not text or (text[0].isdigit() and "/" in text):
                return super().convert(text, param, ctx)
            return JobName(ROOT.partition_id, ROOT.object_id, text)
        return found if found.object_id else LoneId(found.partition_id, found.object_id, text)


class ArrayIndices(ParamType[tuple[Ranges, int]]):
    """Indices and ranges, as 1,3,10-20:2, and with %N how many may run at once."""

    name = "INDICES[%N]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Ranges, int]:
        """Parse to ranges and how many may run at once, 0: all."""
        if isinstance(value, tuple):
            return value
        try:
            return parse_array(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class RetryOn(ParamType[dict[str, int]]):
    """exit=CODE, oom, or both with a comma between."""

    name = "exit=CODE,oom"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, int]:
        """Parse to the arguments of Target.exec()."""
        if isinstance(value, dict):
            return value
        found: dict[str, int] = {}
        for word in str(value).split(","):
            what, _, code = word.strip().partition("=")
            if what == "oom" and not code:
                found["retry_oom"] = True
            elif what == "exit" and code.isdecimal() and 0 < int(code) < 256:
                found["retry_exit"] = int(code)
            else:
                self.fail(
                    f"'{word}' is neither oom nor exit=CODE with a code of 1 to 255", param, ctx
                )
        return found


class AfterJob(ParamType[After]):
    """JOB, JOB:ok, JOB:failed or JOB:any; Slurm's words are the same conditions."""

    name = "JOB[:ok|failed|any]"
    words = {  # noqa: RUF012
        "": "ok",
        "ok": "ok",
        "afterok": "ok",
        "failed": "failed",
        "notok": "failed",
        "afternotok": "failed",
        "any": "any",
        "ended": "any",
        "afterany": "any",
    }

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> After:
        """Parse; plain JOB means that it must end COMPLETED."""
        if isinstance(value, After):
            return value
        job, _, condition = str(value).partition(":")
        word = self.words.get(condition)
        if word is None:
            self.fail(f"'{condition}' is none of ok, failed and any", param, ctx)
        return After(JOB.convert(job, param, ctx), word == "ok", word == "failed")


class TagParam(ParamType[tuple[str, str]]):
    """KEY=VALUE."""

    name = "KEY=VALUE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Split at the first '='."""
        if isinstance(value, tuple):
            return value
        key, equals, text = str(value).partition("=")
        if not key or not equals:
            self.fail(f"'{value}' is not KEY=VALUE", param, ctx)
        return key, text


ADDRESS = AddressParam("ADDRESS", "addresses")
OBJECT = AddressParam("PID/OID", "addresses", inside=True)
COLLECTION = AddressParam("PID/CID", "collections", inside=True)
JOB = JobAddress("JOB", "jobs")
PATH = PathParam()
NEW_PARTITION = NewPartitionParam()
ARRAY = ArrayIndices()
RETRY_ON = RetryOn()
AFTER = AfterJob()
SIZE = SizeParam()
BEGIN = BeginTime()
DURATION = DurationParam()
MOMENT = MomentParam()
NUMBER = NumberParam()
ATTRIBUTE = AttributeName()
TAG = TagParam()


class Unreadable(click.ClickException):
    """A file that is to be read is absent, or cannot be read."""

    exit_code = Exit.NO_INPUT


def look_for(path: Any) -> None:
    """Raises: Unreadable: nothing has this path."""
    try:
        Path(path).stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise Unreadable(file_error(error)) from None


class InputPath(click.Path):
    """The path of a file or folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As click does, if something has this path.  Raises: Unreadable."""
        look_for(value)
        return super().convert(value, param, ctx)


class InputFile(click.File):
    """An open file; -: stdin."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As click does, if something has this path.  Raises: Unreadable."""
        if value != "-":
            look_for(value)
        return super().convert(value, param, ctx)
