# SPDX-License-Identifier: GPL-2.0-or-later
"""Common parts of all verbs: common flags, the settings made of them, and exit codes of
exceptions."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import click

from pyosd import errors
from pyosd.cli.frame.addresses import LoneId, MemberRef, PathRef
from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.failure import finish_output, print_error, wants_json
from pyosd.cli.frame.help import HelpPage
from pyosd.cli.output.tables import (
    FORMATS,
    Column,
    JsonRow,
    colour_wanted,
    print_json,
    print_records,
)
from pyosd.cli.output.terminal import escaped, file_error, harmless
from pyosd.identity import Identity, from_environment
from pyosd.profiles import Profile, ProfileError, load_profile
from pyosd.secmgr.errors import SecmgrError
from pyosd.types import ObjectRef, ref

if TYPE_CHECKING:
    from pyosd.iscsi.login import Chap
    from pyosd.security.credentials import CredentialSource
    from pyosd.target import Target

__all__ = ["Failure", "Listing", "LocalVerb", "Settings", "Verb", "expected_empty", "explain"]

# Sense codes of a refusal that another state of things would lift.
WRONG_STATE = {(0x80, 0x11), (0x80, 0x14), (0x80, 0x28)}
# Sense codes of an absent logical unit, and of OSD commands to tgtd's controller (LUN 0).
NO_OSD = {(0x25, 0x00), (0x20, 0x00)}
WRONG_LUN = "the target's URL ends in the number of its OSD, which 'osd target serve' prints: 1"
NOT_SERVED = (
    "is the target served ('osd target serve'), and is this its URL (--target, IOSD_TARGET)?"
)
NOT_EMPTY = (0x2C, 0x0A)
NO_CREDENTIAL = 80  # the byte of the CDB at fault when no key proves the capability

CODES: tuple[tuple[type[BaseException], Exit], ...] = (
    (ProfileError, Exit.CONFIG),
    (SecmgrError, Exit.CONFIG),
    (errors.JobCancelled, Exit.JOB_CANCELLED),
    (errors.JobTimeout, Exit.JOB_TIMEOUT),
    (errors.JobOutOfMemory, Exit.JOB_OUT_OF_MEMORY),
    (errors.LimitExceeded, Exit.JOB_LIMIT),
    (errors.SandboxLost, Exit.SANDBOX_LOST),
    (errors.JobExpired, Exit.JOB_UNKNOWN),
    (errors.JobError, Exit.JOB_FAILED),
    (errors.NotFound, Exit.NO_INPUT),
    (errors.PermissionDenied, Exit.NOT_PERMITTED),
    (errors.TargetBusy, Exit.BUSY),
    (errors.Unreachable, Exit.UNREACHABLE),
    (errors.OSDError, Exit.FAILED),
    (FileNotFoundError, Exit.NO_INPUT),
    (IsADirectoryError, Exit.NO_INPUT),
    (PermissionError, Exit.NOT_PERMITTED),
    (OSError, Exit.FAILED),
    (ValueError, Exit.USAGE),
)


class Failure(Exception):
    """A verb's own way to end with a code and a sentence."""

    def __init__(self, code: Exit, text: str) -> None:
        super().__init__(text)
        self.code = code


@dataclass(eq=False, repr=False)
class Settings:
    """The common flags of one invocation."""

    target: str | None = None
    credentials: str | None = None
    profile_name: str | None = None
    colour: str = "auto"
    quiet: bool = False
    verbose: bool = False
    no_input: bool = False
    output: str = "table"
    header: bool = True
    _profile: Profile | None = field(default=None, repr=False)
    _session: Target | None = field(default=None, repr=False)  # of resolve(), for connect()

    @property
    def profile(self) -> Profile:
        """The profile, read when first needed."""
        if self._profile is None:
            self._profile = load_profile(self.profile_name or os.environ.get("IOSD_PROFILE"))
        return self._profile

    @property
    def colour_on_stdout(self) -> bool:
        """Whether tables may be coloured."""
        return colour_wanted(self.colour, sys.stdout)

    def url(self) -> str:
        """The target's URL: flag, environment, profile.

        Raises:
            ProfileError: nobody said which.
        """
        if self.target and "@" in self.target.partition("://")[2].partition("/")[0]:
            raise ProfileError(
                "a secret on the command line is everybody's to read: say it in IOSD_CHAP_SECRET, "
                "or in a file that a profile's 'chap-secret-file' names"
            )
        url = self.target or os.environ.get("IOSD_TARGET") or self.profile.target
        if not url:
            unread = self.profile.unread
            raise ProfileError(
                "no target: say --target URL, or set IOSD_TARGET, or a profile's 'target' in "
                "~/.config/iosd/config.toml; 'osd target serve' prints the URL of a new one"
                + (
                    f"\n  {unread} is not readable by this user: HOME names its owner's"
                    if unread
                    else ""
                )
            )
        return url

    def connect(self) -> Target:
        """Open a session with the target.

        Raises:
            ProfileError: nobody said which, or the secret cannot be read.
        """
        return self.login(self.url())

    def login(self, url: str) -> Target:
        """Open a session with the target of that URL.

        Raises:
            ProfileError: the secret cannot be read.
        """
        from pyosd import connect

        if self._session is not None:
            session, self._session = self._session, None
            return session
        chap, source = self.access(url)
        return connect(url, chap=chap, credentials=source)

    def access(self, url: str) -> tuple[Chap | None, CredentialSource | None]:
        """The arguments chap and credentials of connect() to that target.

        Raises:
            ProfileError: the secret cannot be read.
        """
        identity = self.identity()
        try:
            return identity.chap(), identity.source(url)
        except OSError as error:
            raise ProfileError(f"cannot read {error.filename}: {error.strerror}") from None
        except ValueError as error:
            raise ProfileError(str(error)) from None

    def identity(self) -> Identity:
        """The client's identity at the target, from flag, environment or profile."""
        said = Identity(credentials=self.credentials)
        return said.over(from_environment()).over(self.profile.identity)

    def say(self, text: str) -> None:
        """Talk to the person, on stderr."""
        if not self.quiet:
            click.echo(escaped(text), err=True)

    def show(
        self,
        records: Sequence[JsonRow],
        columns: Sequence[Column],
        schema: str,
        name: str,
        *,
        wide: bool = False,
    ) -> None:
        """Print a listing in the format asked for.

        schema, name: of its JSON object, and of the list in it.  wide: tables have all columns.
        """
        print_records(
            records,
            columns,
            output="wide" if wide and self.output == "table" else self.output,
            schema=schema,
            name=name,
            header=self.header,
            colour=self.colour_on_stdout,
        )

    def show_one(self, record: JsonRow, columns: Sequence[Column], *, wide: bool = False) -> None:
        """Print one record as show() does, but in JSON as it is."""
        if self.output in ("json", "jsonl"):
            print_json(record)
        else:
            self.show([record], columns, "", "", wide=wide)

    def path(self, text: str) -> str:
        """A path from the root on; one without a slash in front is inside the profile's partition.

        Raises: click.UsageError: the profile has no partition.
        """
        from pyosd.fs.paths import SCHEME, join, named_id

        inside = text.removeprefix(SCHEME)
        first = inside.partition("/")[0]
        if inside.startswith("/") or inside == "" or named_id(first) is not None:
            return join(inside)
        if self.profile.partition is None:
            raise click.UsageError(
                f"'{text}' does not begin with a partition: write /PARTITION/{inside}, or set "
                "'partition' in the profile"
            )
        return join(f"{self.profile.partition:#x}", inside)

    def resolve(self, value: Any) -> Any:
        """The value of a parameter that the function of a verb gets: ids in place of paths."""
        if not has_path(value):
            return value
        if isinstance(value, tuple):
            return tuple(map(self.resolve, value))
        if self._session is None:
            self._session = self.connect()
        found = self._session.fs.resolve(self.path(value.path))
        if value.inside and not found.object_id:
            raise click.UsageError(f"'{value}' is a partition, not {value.inside}")
        return found

    def close(self) -> None:
        """End a session that no verb has taken over."""
        if self._session is not None:
            self._session.close()

    def job(self, address: ObjectRef) -> ObjectRef:
        """The job meant by an address; a lone id is inside the profile's partition."""
        if isinstance(address, PathRef):
            address = self.resolve(address)
        if address.object_id or not address.partition_id:
            return address
        if isinstance(address, MemberRef):
            whole = self.job(
                LoneId(address.partition_id, address.object_id, f"{address.partition_id:#x}")
            )
            return MemberRef(whole.partition_id, whole.object_id, address.index, address.name)
        if self.profile.partition is None:
            raise click.UsageError(f"'{address}' is not a job's id, PID/OID")
        return ref(self.profile.partition, address.partition_id)

    def confirm(self, question: str) -> None:
        """Ask before the named objects are destroyed; only on a terminal, never with --no-input."""
        if self.can_ask:
            click.confirm(harmless(question), abort=True, err=True)

    def confirm_all(self, question: str, yes: bool) -> None:
        """Ask before more is destroyed than the command line names.

        yes: --yes was given.  Raises: click.UsageError: it was not, and nobody can be asked.
        """
        if yes:
            return
        if not self.can_ask:
            raise click.UsageError(
                f"{question} There is no terminal for the question: add --yes to do it."
            )
        click.confirm(harmless(question), abort=True, err=True)

    @property
    def can_ask(self) -> bool:
        """Whether a person is there to answer."""
        return not self.no_input and sys.stdin.isatty()


def has_path(value: Any) -> bool:
    """Whether the value of a parameter is a path, or has one."""
    if isinstance(value, tuple):
        return any(map(has_path, value))
    return isinstance(value, PathRef)


YES = click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")


def common_options() -> list[click.Parameter]:
    """Fresh copies of the flags that every verb takes."""
    return [
        click.Option(
            ["--target"],
            metavar="URL",
            help="URL of the target: iscsi://HOST[:PORT]/NAME/LUN.  [IOSD_TARGET, profile]",
        ),
        click.Option(
            ["--credentials"],
            metavar="FILE",
            help="File with credentials for the target.  [IOSD_CREDENTIALS, profile]",
        ),
        click.Option(
            ["--profile"],
            metavar="NAME",
            help="Profile to use from the configuration file.  [IOSD_PROFILE, default]",
        ),
        click.Option(
            ["--color"],
            type=click.Choice(["auto", "always", "never"]),
            default="auto",
            help="When to use colours; auto: on a terminal.  [auto]",
        ),
        click.Option(["-q", "--quiet"], is_flag=True, help="Print only data and errors."),
        click.Option(
            ["-v", "--verbose"],
            is_flag=True,
            help="Print more detail; with an error, the traceback.",
        ),
        click.Option(
            ["--no-input"],
            is_flag=True,
            help="Never ask a question; fail where an answer is required.",
        ),
    ]


class Verb(HelpPage):
    """A command with the common flags; its function gets the Settings first (click.pass_obj)."""

    absent = Exit.NO_INPUT  # what is missing when the target knows no such object
    settings_class: type[Settings] = Settings
    left_out: Set[str] = frozenset()  # the common flags that make no sense here

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        shared = self.shared_options()
        self.params = [*self.params, *self.own_options(), *shared]
        self.common = frozenset(each.name or "" for each in shared)

    def shared_options(self) -> list[click.Parameter]:
        """The options that --help lists last."""
        return [each for each in common_options() if each.name not in self.left_out]

    def own_options(self) -> list[click.Parameter]:
        """Flags of this kind of verb."""
        return []

    def explain(self, error: BaseException) -> tuple[Exit, str]:
        """The exit code and the sentence for an exception."""
        return explain(error)

    def invoke(self, ctx: click.Context) -> Any:
        """Make the Settings, run, and turn an exception into words and a code."""
        names = {each.name for each in fields(self.settings_class)}
        taken = {name: ctx.params.pop(name) for name in [*ctx.params] if name in names}
        ctx.obj = settings = self.settings_class(
            profile_name=ctx.params.pop("profile", None), colour=ctx.params.pop("color"), **taken
        )
        try:
            if any(map(has_path, ctx.params.values())):
                if "target" in self.left_out:
                    raise click.UsageError("this verb asks no target: give ids, not paths")
                if ctx.params.get("targets_file"):
                    raise click.UsageError(
                        "--targets: each target has paths of its own: give ids, not paths"
                    )
            for name, value in ctx.params.items():
                ctx.params[name] = settings.resolve(value)
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            if wants_json(ctx):
                print_error(Exit.INTERRUPTED, "interrupted")
            ctx.exit(Exit.INTERRUPTED)
        except BrokenPipeError:
            raise  # nobody reads on; click ends us without a word
        except Exception as error:
            code, text = self.explain(error)
            code = self.absent if code is Exit.NO_INPUT else code
            print_error(code, text)
            finish_output()
            if settings.verbose:
                import traceback

                traceback.print_exception(error)
            ctx.exit(code)
        finally:
            settings.close()


class LocalVerb(Verb):
    """A verb that needs no session with a target."""

    left_out = frozenset({"target", "credentials", "profile"})


class Listing(Verb):
    """A verb that prints records."""

    def own_options(self) -> list[click.Parameter]:
        """-o and --no-header."""
        return [
            click.Option(
                ["-o", "--output"],
                type=click.Choice(FORMATS),
                default="table",
                help="Output format.  [table]",
            ),
            click.Option(
                ["--no-header", "header"],
                flag_value=False,
                default=True,
                type=bool,
                help="Omit the line of column headings.",
            ),
        ]


def explain(error: BaseException) -> tuple[Exit, str]:
    """Choose the exit code and the sentence for an exception."""
    if isinstance(error, Failure):
        return error.code, str(error)
    if isinstance(error, errors.OSDError) and (error.asc, error.ascq) in WRONG_STATE:
        return Exit.WRONG_STATE, describe(error)
    if isinstance(error, errors.OSDError) and (error.asc, error.ascq) in NO_OSD:
        return Exit.UNREACHABLE, f"{describe(error)}\n  {WRONG_LUN}"
    at_target = isinstance(error, errors.Unreachable) and not getattr(error, "hint", "")
    if at_target and "Connection refused" in str(error):
        return Exit.UNREACHABLE, f"{describe(error)}\n  {NOT_SERVED}"
    if isinstance(error, errors.PermissionDenied) and error.field_pointer == NO_CREDENTIAL:
        from pyosd.security.local_credential import advice

        return Exit.NOT_PERMITTED, f"{describe(error)}\n  {advice()}"
    for kind, code in CODES:
        if isinstance(error, kind):
            from pyosd.cli.frame.hints import hints

            return code, "\n  ".join([describe(error), *hints(error)])
    return Exit.INTERNAL, f"internal error: {error!r}; report in {write_report(error)}"


def describe(error: BaseException) -> str:
    """The text of an exception, with the file of a system error."""
    if isinstance(error, OSError) and not isinstance(error, errors.OSDError) and error.strerror:
        return file_error(error)
    if isinstance(error, UnicodeEncodeError):  # a word of the command line, or a file's name
        return f"{error.object!r} is not UTF-8, as this text must be"
    hint = getattr(error, "hint", "")
    text = str(error) or type(error).__name__
    return f"{text}\n  {hint}" if hint and hint not in text else text


@contextmanager
def expected_empty(address: ObjectRef, otherwise: str) -> Iterator[None]:
    """The option that removes a thing that is not empty, for each verb."""
    try:
        yield
    except errors.Conflict as error:
        if (error.asc, error.ascq) != NOT_EMPTY:
            raise
        raise Failure(Exit.FAILED, f"{address} is not empty; {otherwise} ({error})") from None


def write_report(error: BaseException) -> str:
    """Keep the traceback where a person finds it; it holds no data of theirs."""
    import tempfile  # only errors need these
    import traceback

    with tempfile.NamedTemporaryFile(
        "w", prefix="osd-report-", suffix=".txt", delete=False
    ) as file:
        traceback.print_exception(error, file=file)
    return file.name
