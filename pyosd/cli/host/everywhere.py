# SPDX-License-Identifier: GPL-2.0-or-later
"""Common parts of the verbs that address several targets: the option --targets, work at each."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.failure import print_error
from pyosd.cli.frame.verb import Settings, explain
from pyosd.profiles import ProfileError

if TYPE_CHECKING:
    from pyosd.cluster.many import Many
    from pyosd.target import Target

__all__ = ["at_each", "handle_of", "report_errors", "targets_option"]

Function = TypeVar("Function", bound=Callable[..., object])
Found = TypeVar("Found")


def targets_option(text: str) -> Callable[[Function], Function]:
    """The option --targets.  text: its help."""
    return click.option("--targets", "targets_file", metavar="FILE", help=text)


def handle_of(settings: Settings, path: str | None) -> Many:
    """A handle over the targets of a file: the option's, IOSD_TARGETS', or the profile's.

    Raises: ProfileError: no file is named, or it is wrong.
    """
    from pyosd.cluster.many import Many
    from pyosd.cluster.targets_file import read_targets

    name = path or os.environ.get("IOSD_TARGETS") or settings.profile.targets
    if not name:
        raise ProfileError(
            "no targets: say --targets FILE, or set IOSD_TARGETS, or a profile's 'targets' in "
            '~/.config/iosd/config.toml; the file has a table [targets] with lines NAME = "URL"'
        )
    try:
        return Many(read_targets(Path(name).expanduser()), login=settings.login)
    except OSError as error:
        raise ProfileError(f"{error.filename or name}: {error.strerror}") from None
    except ValueError as error:
        raise ProfileError(str(error)) from None


def at_each(
    cluster: Many, work: Callable[[str, Target], Found]
) -> tuple[dict[str, Found], dict[str, BaseException]]:
    """Do something at each target, at all of them at the same time.

    Returns: what came of it, by name, and the errors of the other targets.
    """
    from pyosd.cluster.at_once import at_once

    ends = at_once(lambda name: work(name, cluster.target(name)), cluster.names)
    errors = {name: error for name, end in ends.items() if (error := end.exception())}
    return {name: end.result() for name, end in ends.items() if name not in errors}, errors


def report_errors(errors: Mapping[str, BaseException]) -> Exit:
    """Print an error for each target that has one.  Returns: the exit code, OK if there is none."""
    code = Exit.OK
    for name, error in sorted(errors.items()):
        found, text = explain(error)
        print_error(found, f"{name}: {text}")
        code = code or found
    return code
