# SPDX-License-Identifier: GPL-2.0-or-later
"""Filters for listings of jobs: by name, tag, pool, partition, zone, user and state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, TypeVar

import click

from pyosd.cli.frame.params import ADDRESS, MOMENT, completing
from pyosd.errors import NotFound
from pyosd.target import Target
from pyosd.types import ObjectRef
from pyosd.wire.job_status import JobState, JobStatus

__all__ = ["JobFilter", "filter_options"]

STATES = [state.name.lower() for state in JobState]
GROUPS: dict[str, Callable[[JobState], bool]] = {
    "ended": lambda state: state.terminal,
    "unfinished": lambda state: not state.terminal,
    "unsuccessful": lambda state: state.terminal and state is not JobState.COMPLETED,
}

Function = TypeVar("Function", bound=Callable[..., Any])


def filter_options(function: Function) -> Function:
    """The options that JobFilter is made of."""
    for option in reversed(
        [
            click.option(
                "--state",
                "states",
                type=click.Choice([*STATES, *GROUPS], case_sensitive=False),
                multiple=True,
                help="Show only jobs in this state.  May be given more than once.",
            ),
            click.option(
                "--name", help="Show only jobs with this name; * and ? stand for any text."
            ),
            click.option(
                "--tag",
                "tags",
                metavar="KEY[=VALUE]",
                multiple=True,
                help="Show only jobs with this tag.  If given more than once, with all of them.",
            ),
            click.option(
                "--pool", shell_complete=completing("pools"), help="Show only jobs of this pool."
            ),
            click.option(
                "--partition", type=ADDRESS, metavar="PID", help="Show only jobs in this partition."
            ),
            click.option(
                "--zone",
                type=ADDRESS,
                help="Show only jobs whose zone is this address or lies in it.",
            ),
            click.option(
                "--user",
                metavar="PRINCIPAL",
                help="Show only jobs of this user, as 'osd ps -o wide' shows it; its prefix may be"
                " omitted.",
            ),
            click.option(
                "--mine", is_flag=True, help="Show only jobs of the user of this command."
            ),
            click.option(
                "--since",
                type=MOMENT,
                help="Show only jobs submitted at or after this time: 1h (ago), 2026-11-21T15:00.",
            ),
            click.option(
                "--until",
                type=MOMENT,
                help="Show only jobs submitted before this time: 1h (ago), 2026-11-21T15:00.",
            ),
        ]
    ):
        function = option(function)
    return function


@dataclass(frozen=True)
class JobFilter:
    """The conditions that a job must fulfil to be shown; None or empty: any will do."""

    states: tuple[str, ...] = ()
    name: str | None = None
    tags: tuple[str, ...] = ()
    pool: str | None = None
    partition: ObjectRef | None = None
    zone: ObjectRef | None = None
    user: str | None = None
    mine: bool = False
    since: float | None = None
    until: float | None = None

    def __post_init__(self) -> None:
        if self.partition is not None and self.partition.object_id:
            raise click.UsageError(f"--partition: '{self.partition}' is an object: give its PID")

    def of(self, target: Target, jobs: list[JobStatus]) -> Iterator[JobStatus]:
        """Those it lets through, in their order.  mine: asks the target as whom it knows us."""
        me = _principals(target, jobs) if self.mine else frozenset()
        return (
            each for each in jobs if self.fits(each) and (not self.mine or each.principal in me)
        )

    def fits(self, status: JobStatus) -> bool:
        """Whether a job is so; but for mine."""
        return (
            (not self.states or any(_is_in(status.state, each) for each in self.states))
            and (self.name is None or fnmatchcase(status.name, self.name))
            and all(_has_tag(status, each) for each in self.tags)
            and self.pool in (None, status.pool)
            and (self.partition is None or status.id.partition_id == self.partition.partition_id)
            and (self.zone is None or _is_inside(status.zone, self.zone))
            and (self.user is None or self.user in _names(status.principal))
            and self._is_in_time(status)
        )

    def _is_in_time(self, status: JobStatus) -> bool:
        when = submitted(status)
        return (self.since is None or when >= self.since) and (
            self.until is None or when < self.until
        )


def _principals(target: Target, jobs: list[JobStatus]) -> frozenset[str]:
    """Names of this session's user, which any job of the list tells that has not been removed since."""
    for each in jobs:
        with suppress(NotFound):
            return target.principals(each.id)
    return frozenset()


def submitted(status: JobStatus) -> float:
    """When, in seconds since 1970 by the target's clock; 0: it does not say."""
    return status.submitted.timestamp() if status.submitted else 0.0


def _is_in(state: JobState, wanted: str) -> bool:
    group = GROUPS.get(wanted)
    return group(state) if group else state.name.lower() == wanted


def _has_tag(status: JobStatus, wanted: str) -> bool:
    key, equals, value = wanted.partition("=")
    return key in status.tags and (not equals or status.tags[key] == value)


def _is_inside(zone: ObjectRef | None, wanted: ObjectRef) -> bool:
    """A partition contains the zones in it, the root all."""
    if zone is None:
        return False
    in_partition = not wanted.object_id and zone.partition_id == wanted.partition_id
    return zone == wanted or in_partition or not wanted.partition_id


def _names(known: str) -> tuple[str, str]:
    """As the target names a user, and without the prefix that says how it knows it."""
    return known, known.partition(":")[2]
