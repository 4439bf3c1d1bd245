# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd pool set`, `scale`, `drain`, `resume`, `pause`, `recycle`, `reset`, `usage`, `share`, `history`."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

import click
from click.shell_completion import CompletionItem

from iosd_host.cli.verb import Admin, AdminChange, AdminListing, Fields, check_size, seconds, when
from iosd_host.common.exit_codes import EXIT_WAIT_OVER
from iosd_host.config.live_keys import check_words
from iosd_host.config.schema import ConfigError
from iosd_host.manager.client import ManagerClient, ManagerError
from pyosd.cli.frame.param_type import ParamType
from pyosd.cli.frame.params import DurationParam
from pyosd.cli.output.tables import Column, JsonRow, format_bytes

__all__ = [
    "drain",
    "history",
    "pause",
    "recycle",
    "reset",
    "resume",
    "scale",
    "set_",
    "share",
    "usage",
]

LOOK_S = 0.1  # between two polls of a draining pool
COMPLETE_S = 0.15
LONGEST_S = 10 * 366 * 86400.0


class PoolName(ParamType[str]):
    """The name of a pool; completed with those that the manager knows."""

    name = "POOL"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Names at this moment, or nothing."""
        try:
            target = os.environ.get("IOSD_TARGET")
            url, seconds = ctx.params.get("manager"), COMPLETE_S
            with ManagerClient.find(url, timeout_s=seconds, target=target) as manager:
                targets = manager.ask("status").get("targets", [])
        except ManagerError:
            return []
        names = sorted({pool["name"] for target in targets for pool in target.get("pools", [])})
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


POOL = PoolName()
DURATION = DurationParam(most_s=LONGEST_S)


def words_of(values: tuple[str, ...]) -> dict[str, str]:
    """KEY=VALUE... as a table; checked here so that an error has the words of the schema."""
    found = {}
    for word in values:
        key, equals, value = word.partition("=")
        if not equals:
            raise click.UsageError(f"'{word}' has no value: write KEY=VALUE")
        found[key] = value
    try:
        check_words(found)
    except ConfigError as error:
        raise ManagerError("bad-value", str(error)) from None
    return found


def settings_of(manager: ManagerClient, admin: Admin, pool: str) -> dict[str, Fields]:
    """The present values of a pool, by key.  Raises: ManagerError: there is no such pool."""
    found = manager.ask("config.show", target=admin.target_name).get("settings", [])
    start = f"pools.{pool}."
    own = {each["key"][len(start) :]: each for each in found if each["key"].startswith(start)}
    if not own:
        names = {each["key"].split(".", 2)[1] for each in found if each["key"].startswith("pools.")}
        raise ManagerError(
            "no-such-pool", f"no pool '{pool}'", f"there are: {', '.join(sorted(names)) or 'none'}"
        )
    return own


@click.command("set", cls=AdminChange)
@click.argument("name", type=POOL)
@click.argument("values", nargs=-1, required=True, metavar="KEY=VALUE...")
@click.option("--dry-run", is_flag=True, help="Show what would change, but change nothing.")
@click.pass_obj
def set_(admin: Admin, name: str, values: tuple[str, ...]) -> None:
    """Change settings of a pool while it serves.

    KEY as in the configuration: max, min, warm_spare, queue, limits.mem, maximum.wall, scale.cooldown ...
    (docs/pools.md).  Either all values are changed, or none.  The value holds until 'osd pool
    reset', also after a restart. 'osd config show --origin' lists it.
    """
    wanted = words_of(values)
    with admin.manager_client() as manager:
        if admin.dry_run:
            now = settings_of(manager, admin, name)
            was = {key: str(now.get(key, {}).get("value")) for key in wanted}
            result: Fields = {"pool": name, "was": was, "is": wanted, "note": "nothing was changed"}
        else:
            result = manager.ask(
                "pool.set", target=admin.target_name, pool=name, values=wanted, why=admin.why
            )
    admin.show_change(f"pool {name}", result)


@click.command(cls=AdminChange)
@click.argument("name", type=POOL)
@click.argument("size", type=click.IntRange(0), required=False, metavar="[N]")
@click.option(
    "--auto", is_flag=True, help="Resize automatically with the load, between --min and --max."
)
@click.option(
    "--min",
    "least",
    type=click.IntRange(0),
    metavar="N",
    help="Smallest number of prestarted sandboxes.",
)
@click.option("--max", "most", type=click.IntRange(1), metavar="N", help="Largest number of slots.")
@click.pass_obj
def scale(
    admin: Admin, name: str, size: int | None, auto: bool, least: int | None, most: int | None
) -> None:
    """Set the number of active slots of a pool, or resize automatically.

    Running jobs are not interrupted.
    """
    check_size(size, auto, least, most)
    with admin.manager_client() as manager:
        result = manager.ask(
            "pool.scale",
            target=admin.target_name,
            pool=name,
            active=size,
            auto=auto or None,
            min=least,
            max=most,
            why=admin.why,
        )
    admin.show_change(f"pool {name}", result)


def pool_now(manager: ManagerClient, admin: Admin, name: str) -> tuple[int, Mapping[str, Any]]:
    """One pool of `status`, and when it was so, in milliseconds since 1970."""
    for target in manager.ask("status").get("targets", []):
        if admin.target_name in (None, target["name"]):
            for pool in target.get("pools", []):
                if pool["name"] == name:
                    return int(target["at"]), pool
    raise ManagerError("no-such-pool", f"no pool '{name}' now")


def wait_idle(manager: ManagerClient, admin: Admin, name: str, longest: float | None) -> bool:
    """Wait until no job of a pool is left, also none that is held; False: the time ran out.

    The manager's reading may be of before the pool was told to drain: a later one decides.
    """
    end = None if longest is None else time.monotonic() + longest
    first, _ = pool_now(manager, admin, name)
    while True:
        at, pool = pool_now(manager, admin, name)
        waiting = max(pool["places"], pool["jobs"] - pool["busy"])
        if at > first and not pool["busy"] and not waiting:
            return True
        if end is not None and time.monotonic() > end:
            admin.say(f"pool {name}: {pool['busy']} running, {waiting} waiting or held still")
            return False
        time.sleep(LOOK_S)


@click.command(cls=AdminChange)
@click.argument("name", type=POOL)
@click.option(
    "--wait", is_flag=True, help="Wait until the pool has no job left, not even a held one."
)
@click.option("--longest", type=DURATION, help="Stop waiting after this time (exit code 124).")
@click.pass_obj
def drain(admin: Admin, name: str, wait: bool, longest: float | None) -> None:
    """Refuse new jobs of a pool and finish those it has.

    Submissions are refused as BUSY (exit 17). 'osd pool resume' ends this.
    """
    with admin.manager_client() as manager:
        result = manager.ask("pool.drain", target=admin.target_name, pool=name, why=admin.why)
        admin.show_change(f"pool {name}", result)
        if (wait or longest is not None) and not wait_idle(manager, admin, name, longest):
            click.get_current_context().exit(EXIT_WAIT_OVER)


def plain(verb: str, text: str) -> click.Command:
    """A verb that says nothing but the pool's name."""

    @click.command(verb, cls=AdminChange, help=text)
    @click.argument("name", type=POOL)
    @click.pass_obj
    def run(admin: Admin, name: str) -> None:
        with admin.manager_client() as manager:
            result = manager.ask(f"pool.{verb}", target=admin.target_name, pool=name, why=admin.why)
        admin.show_change(f"pool {name}", result)

    return run


resume = plain("resume", "Resume a paused or drained pool.")
pause = plain("pause", "Stop starting jobs of a pool; new jobs wait in its queue.")
recycle = plain(
    "recycle",
    "Replace the sandboxes of a pool and the process they fork from.\n\n"
    "Idle sandboxes are replaced now, the others after their job.",
)


@click.command(cls=AdminChange)
@click.argument("name", type=POOL)
@click.argument("keys", nargs=-1, metavar="[KEY]...")
@click.pass_obj
def reset(admin: Admin, name: str, keys: tuple[str, ...]) -> None:
    """Return the keys of a pool to their configured values.  [all keys]"""
    with admin.manager_client() as manager:
        result = manager.ask(
            "pool.reset", target=admin.target_name, pool=name, keys=[*keys] or None, why=admin.why
        )
    admin.show_change(f"pool {name}", result)


# ---- principals ----


def number(header: str, key: str, **more: Any) -> Column:
    """A column of whole numbers."""

    def text(row: JsonRow) -> str:
        return "-" if row.get(key) is None else str(row[key])

    return Column(header, text, right=True, **more)


def duration(header: str, key: str, **more: Any) -> Column:
    """A column of times."""
    return Column(header, lambda row: seconds(row.get(key)), right=True, **more)


USAGE_COLUMNS = (
    Column("PRINCIPAL", lambda row: row["id"], shrink=True),
    number("WEIGHT", "weight", drop=2),
    number("RUN", "running"),
    number("QUEUE", "queued"),
    number("ENDED", "finished"),
    number("REFUSED", "refused", drop=1),
    duration("WAITED", "queue_seconds", drop=3),
    duration("RAN", "run_seconds"),
    duration("CPU", "cpu_seconds"),
    number("ACCEPTED", "accepted", wide=True),
    Column("AT ONCE", lambda row: str(row.get("at_once") or "-"), right=True, wide=True),
    Column("QUEUE MAX", lambda row: str(row.get("queue") or "-"), right=True, wide=True),
    Column("READ", lambda row: format_bytes(row.get("bytes_read", 0)), right=True, wide=True),
    Column("WRITTEN", lambda row: format_bytes(row.get("bytes_written", 0)), right=True, wide=True),
    number("CALLS", "calls", wide=True),
)
ORDERS = ("cpu_seconds", "run_seconds", "queue_seconds", "finished", "running", "queued")


@click.command(cls=AdminListing)
@click.option(
    "--sort",
    type=click.Choice(["name", *(each.removesuffix("_seconds") for each in ORDERS)]),
    default="name",
    help="Column to sort by; all but name: largest first.  [name]",
)
@click.pass_obj
def usage(admin: Admin, sort: str) -> None:
    """Show jobs, times and bytes used by each principal."""
    with admin.manager_client() as manager:
        found = manager.ask("pool.usage", target=admin.target_name)
    records = [
        {"schema": "iosd.usage/1", "id": each["name"], **each} for each in found["principals"]
    ]
    if sort != "name":
        key = next(each for each in ORDERS if each.removesuffix("_seconds") == sort)
        records.sort(key=lambda row: row.get(key) or 0, reverse=True)
    admin.show(records, USAGE_COLUMNS, "iosd.usage/1", "principals")


@click.command(cls=AdminChange)
@click.argument("principal")
@click.option(
    "--weight",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="Weight in the division of slots, 1 to 1000.  [1]",
)
@click.option(
    "--queue",
    type=click.IntRange(0),
    metavar="N",
    help="Most jobs that may wait; 0: the configured number.",
)
@click.option(
    "--at-once",
    type=click.IntRange(0),
    metavar="N",
    help="Most jobs that may run at once; 0: no limit.",
)
@click.option("--reset", is_flag=True, help="Return to the weight and limits of other principals.")
@click.pass_obj
def share(
    admin: Admin,
    principal: str,
    weight: int | None,
    queue: int | None,
    at_once: int | None,
    reset: bool,
) -> None:
    """Set the weight and the job limits of a principal.

    PRINCIPAL is a name from 'osd pool usage'. If several principals wait, one of weight 3 gets
    three times the slots of one of weight 1.
    """
    given: Fields = {"weight": weight, "queue": queue, "at_once": at_once}
    if reset == any(value is not None for value in given.values()):
        raise click.UsageError("say --weight, --queue or --at-once, or --reset alone")
    with admin.manager_client() as manager:
        result = manager.ask(
            "principal.reset" if reset else "principal.set",
            target=admin.target_name,
            principal=principal,
            why=admin.why,
            **given,
        )
    admin.show_change(f"principal {principal}", result)


# ---- history ----

HISTORY_COLUMNS = (
    Column("WHEN", lambda row: when(row["at"])),
    Column("POOL", lambda row: row["pool"], shrink=True),
    Column("BUSY", lambda row: f"{row['busy']:.2f}", right=True),  # an average
    number("ACTIVE", "active"),
    number("QUEUED", "queued"),
    duration("OLDEST", "oldest"),
)
ROWS = 20  # of a table, where nothing else is said


@click.command(cls=AdminListing)
@click.argument("name", type=POOL, required=False, metavar="[POOL]")
@click.option(
    "--since", type=DURATION, default=3600.0, help="Length of the period to show, up to now.  [1h]"
)
@click.option("--step", type=DURATION, help="Time between two rows.  [a twentieth of --since]")
@click.pass_obj
def history(admin: Admin, name: str | None, since: float, step: float | None) -> None:
    """Show the past load of a pool, or of all pools."""
    with admin.manager_client() as manager:
        found = manager.ask(
            "history",
            target=admin.target_name,
            since=round((time.time() - since) * 1000),
            step=max(1, round(step or since / ROWS)),
        )
    records = [
        {"schema": "iosd.load/1", "id": f"{each['at']:.0f}/{pool}", "at": each["at"], "pool": pool}
        | dict(load)
        for each in found["loads"]
        for pool, load in each.get("pools", {}).items()
        if name in (None, pool)
    ]
    admin.show(records, HISTORY_COLUMNS, "iosd.loads/1", "loads")
