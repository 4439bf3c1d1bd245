# SPDX-License-Identifier: GPL-2.0-or-later
"""Changes by administrators: checked, applied by the target, stored, and logged; in that order.

A change that the target refuses is not stored.  If the target has applied a change that cannot be
stored, the answer is an error about that.  Not here: changes by the policy (target.py).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iosd_host.config.differences import Differences, compare
from iosd_host.config.live_keys import check_words, note_of, show_value
from iosd_host.config.schema import ConfigError, Setting
from iosd_host.control.link import LOST, STANDBY, LinkLost, NoAnswer
from iosd_host.control.messages import ErrorCode, FrameError, TargetError, Type
from iosd_host.control.supervisor import ask_supervisor
from iosd_host.manager.requests import AdminRequest, RequestRefused
from iosd_host.manager.settings import POOL, PRINCIPAL, WORKERS, TargetSettings, full_name, place_of
from iosd_host.manager.state_store import Change, Override
from iosd_host.manager.target import ManagedTarget, frame_of
from iosd_host.policy.events import Load, Mode

__all__ = ["Changes", "config_reload"]

LOG = logging.getLogger("iosd.changes")
Keep = Callable[
    [Sequence[Change], Sequence[Override], Sequence[Override]], Coroutine[Any, Any, None]
]
"""Keeps lines of the log, overrides, and forgets overrides; raises RequestRefused where it cannot."""

SHARE = {"weight": 1, "queue": 0, "at_once": 0}
STANDARD = {key: str(value) for key, value in SHARE.items()} | {"mode": str(Mode.RUNNING)}


@dataclass(frozen=True)
class _Wanted:
    """Something to change.

    Attributes:
        values: to keep, as texts, by short key; drop: keys to forget.
        frame: what the target is told; {}: nothing.
    """

    kind: str
    name: str
    values: Mapping[str, Any]
    frame: Mapping[str, Any]
    drop: Sequence[str] = ()


FRAMES = {POOL: Type.POOL, PRINCIPAL: Type.PRINCIPAL, WORKERS: Type.WORKERS}


class Changes:
    """Of all targets.

    Args: keep: writes to the state store.  configuration: of a target, read now; raises ConfigError.
    """

    def __init__(self, keep: Keep, configuration: Callable[[str], Mapping[str, Setting]]) -> None:
        self.keep = keep
        self.configuration = configuration

    async def _change(
        self, target: ManagedTarget, request: AdminRequest, wish: _Wanted
    ) -> dict[str, Any]:
        """Do it, and return what was and what is."""
        async with target.lock:
            return await self._make(target, request, wish)

    async def _make(
        self, target: ManagedTarget, request: AdminRequest, wish: _Wanted
    ) -> dict[str, Any]:
        """The same, with the target's lock held."""
        load = target.load  # what is told of it after the change may come before its answer
        await self._tell(target, request, wish)
        settings = target.settings
        was, now = difference(settings, wish)
        was |= sizes_of(load, wish, was)
        put = [
            Override(wish.kind, wish.name, key, value, request.who, request.why, time.time())
            for key, value in wish.values.items()
        ]
        mine = settings.of(wish.kind, wish.name)
        drop = [mine[key] for key in wish.drop if key in mine and key not in wish.values]
        kept = {full_name(each): each for each in settings.overrides.values()}
        kept |= {full_name(each): each for each in put}
        for each in drop:
            kept.pop(full_name(each))
        pool = wish.name if wish.kind == POOL else None
        log = Change(target.name, request.method, request.who, request.why, was, now, pool)
        target.use(TargetSettings(settings.base, kept.values()))
        target.explain(pool, request.who, request.why, now)
        await self.keep([log], put, drop)
        if not wish.frame:  # nobody else tells of it
            LOG.info("%s", log)
        answer = {"target": target.name, wish.kind: wish.name, "was": was, "is": now}
        answer["note"] = note_of(was, now)
        return {key: value for key, value in answer.items() if key != WORKERS}

    async def _tell(self, target: ManagedTarget, request: AdminRequest, wish: _Wanted) -> None:
        """Let the target do it.  Raises: RequestRefused."""
        link = target.link
        await link.settle()
        if link.role == LOST:
            raise RequestRefused("no-target", f"'{target.name}' cannot be reached: {link.trouble}")
        if link.role == STANDBY:
            raise RequestRefused(
                "standby",
                f"another manager manages '{target.name}'",
                "ask that one (the log of this one names it)",
            )
        if wish.kind == POOL:
            check_pool(target, wish.name)
        if wish.frame:
            frame = dict(wish.frame) | ({"name": wish.name} if wish.name else {})
            await self.ask(target, request, FRAMES[wish.kind], frame)

    async def ask(
        self, target: ManagedTarget, request: AdminRequest, kind: Type, keys: Mapping[str, Any]
    ) -> dict[str, Any]:
        """A request to the target for an administrator.  Raises: RequestRefused."""
        await target.link.settle()
        try:
            return await target.ask(kind, request.who, request.why, **keys)
        except LinkLost as error:
            raise RequestRefused(
                "no-target", f"'{target.name}' cannot be reached: {error}"
            ) from None
        except NoAnswer as error:
            raise RequestRefused(
                "unknown",
                f"'{target.name}': {error}; the change may have been made",
                "check the present values, then try again",
            ) from None
        except FrameError as error:
            raise RequestRefused("bad-value", str(error)) from None
        except TargetError as error:
            code = "standby" if error.code == ErrorCode.NOT_MANAGER else str(error.code)
            raise RequestRefused(code, error.message) from None

    # ---- methods ----

    async def pool_set(self, target: ManagedTarget, request: AdminRequest) -> dict[str, Any]:
        """pool.set: values."""
        values = checked(request.params["values"])
        return await self._change(target, request, pool_wish(request.params["pool"], values))

    async def pool_scale(self, target: ManagedTarget, request: AdminRequest) -> dict[str, Any]:
        """pool.scale: active, or auto, min, max."""
        given = {key: request.params[key] for key in ("active", "auto", "min", "max")}
        given = {key: value for key, value in given.items() if value is not None}
        active, auto = given.pop("active", None), given.pop("auto", None)
        if active is None and auto is None and not given:
            raise RequestRefused("bad-params", "pool.scale: say active, auto, min or max")
        if active is not None and auto:
            raise RequestRefused(
                "bad-params", "pool.scale: a size that is set does not follow the load"
            )
        values: dict[str, Any] = checked(given)
        if active is not None:
            values |= {"scale.auto": "false", "active": str(active)}
        elif auto is not None:
            values["scale.auto"] = str(auto).lower()
        drop = ("active",) if auto else ()
        return await self._change(target, request, pool_wish(request.params["pool"], values, drop))

    async def pool_mode(
        self, target: ManagedTarget, request: AdminRequest, mode: Mode
    ) -> dict[str, Any]:
        """pool.drain, .pause, .resume."""
        wish = pool_wish(request.params["pool"], {"mode": str(mode)})
        if mode is Mode.RUNNING:
            wish = _Wanted(POOL, wish.name, {}, wish.frame, ("mode",))
        return await self._change(target, request, wish)

    async def pool_recycle(self, target: ManagedTarget, request: AdminRequest) -> dict[str, Any]:
        """pool.recycle."""
        name = request.params["pool"]
        async with target.lock:
            await self._tell(target, request, _Wanted(POOL, name, {}, {}))
            await self.ask(target, request, Type.RECYCLE, {"name": name})
            log = Change(target.name, request.method, request.who, request.why, None, None, name)
            await self.keep([log], [], [])
        note = "idle sandboxes are replaced now, others after their job"
        return {"target": target.name, "pool": name, "was": {}, "is": {}, "note": note}

    async def pool_reset(self, target: ManagedTarget, request: AdminRequest) -> dict[str, Any]:
        """pool.reset: what was set of a pool is as configured again; `keys` of it, or all."""
        name, settings = request.params["pool"], target.settings
        mine = settings.of(POOL, name)
        wanted = [*dict.fromkeys(request.params["keys"] or mine)]
        for key in wanted:
            if key not in mine:
                raise RequestRefused("bad-value", f"'{key}' of pool '{name}' is as configured")
        frame: dict[str, Any] = {}
        for key in wanted:
            base = settings.base.get(f"pools.{name}.{key}")
            if key == "mode":
                frame["mode"] = str(Mode.RUNNING)
            elif base is not None:
                frame |= frame_of(Type.POOL, key, base.value)
        return await self._change(target, request, _Wanted(POOL, name, {}, frame, wanted))

    async def principal_set(self, target: ManagedTarget, request: AdminRequest) -> dict[str, Any]:
        """principal.set: weight, queue, at_once."""
        name = request.params["principal"]
        given = {key: request.params[key] for key in SHARE if request.params[key] is not None}
        if not given:
            raise RequestRefused("bad-params", "principal.set: say weight, queue or at_once")
        async with target.lock:  # the target is given all three, so no other request comes between
            before = {key: each.value for key, each in target.settings.of(PRINCIPAL, name).items()}
            share = SHARE | before | given
            return await self._make(target, request, _Wanted(PRINCIPAL, name, share, share))

    async def principal_reset(self, target: ManagedTarget, request: AdminRequest) -> dict[str, Any]:
        """principal.reset: as any other principal again."""
        name = request.params["principal"]
        mine = target.settings.of(PRINCIPAL, name)
        return await self._change(target, request, _Wanted(PRINCIPAL, name, {}, SHARE, [*mine]))

    async def workers_reset(self, target: ManagedTarget, request: AdminRequest) -> dict[str, Any]:
        """workers.reset: as configured again."""
        mine = target.settings.of(WORKERS)
        return await self._change(target, request, _Wanted(WORKERS, "", {}, {}, [*mine]))

    async def workers_set(self, target: ManagedTarget, request: AdminRequest) -> dict[str, Any]:
        """workers.set: count, or auto, min, max."""
        given = {key: request.params[key] for key in ("count", "auto", "min", "max")}
        given = {key: value for key, value in given.items() if value is not None}
        if not given:
            raise RequestRefused("bad-params", "workers.set: say count, auto, min or max")
        if "count" in given and given.get("auto"):
            raise RequestRefused(
                "bad-params", "workers.set: a count that is set does not follow the load"
            )
        bounds = target.bounds.workers
        if given.get("min", bounds[0]) > given.get("max", bounds[1]):
            raise RequestRefused("bad-value", "workers.set: min is above max")
        values: dict[str, Any] = {key: str(value).lower() for key, value in given.items()}
        frame: dict[str, Any] = {}
        if "count" in given:
            values["auto"] = "false"
            frame = {"count": given["count"]}
        drop = () if "count" in given or not given.get("auto") else ("count",)
        return await self._change(target, request, _Wanted(WORKERS, "", values, frame, drop))

    async def config_apply(self, target: ManagedTarget, request: AdminRequest) -> dict[str, Any]:
        """config.apply: the target reads its pools again; what administrators have set goes on to hold."""
        async with target.lock:
            await self._tell(target, request, _Wanted("", "", {}, {}))
            try:
                base = self.configuration(target.name)
            except ConfigError as error:
                raise RequestRefused("bad-value", str(error)) from None
            await self.ask(target, request, Type.RELOAD, {})
            before = target.settings
            target.use(TargetSettings(base, before.overrides.values()))
            try:
                await target.restore("the configuration has been read again")
            except (LinkLost, NoAnswer, FrameError, TargetError):
                target.synced = None  # as soon as it can be
            was, now = in_words(compare(before.base, base))
            log = Change(target.name, "config.reload", request.who, request.why, was, now)
            await self.keep([log], [], [])
        return {"target": target.name, "was": was, "is": now}


def in_words(found: Differences) -> tuple[dict[str, Any], dict[str, Any]]:
    """Changes of a new configuration, as old and new values for the log of changes."""
    was, now = ({key: pair[side] for key, pair in found.changed.items()} for side in (0, 1))
    was |= dict.fromkeys((f"pool {name}" for name in found.removed), "there")
    now |= dict.fromkeys((f"pool {name}" for name in found.removed), "gone")
    was |= dict.fromkeys((f"pool {name}" for name in found.added), None)
    now |= dict.fromkeys((f"pool {name}" for name in found.added), "there")
    return was, now


async def config_reload(target: ManagedTarget, request: AdminRequest) -> dict[str, Any]:
    """config.reload: the target's supervisor does it, and comes back with config.apply."""
    place = place_of(target.name, target.link.path)
    if place is None:
        raise RequestRefused(
            "failed",
            f"no supervisor of this host says that it serves '{target.name}'",
            "under systemd: systemctl reload iosd-sandboxd iosd-attach",
        )
    try:
        return await asyncio.to_thread(
            ask_supervisor, place["socket"], "reload", by=request.who, why=request.why
        )
    except ConfigError as error:
        raise RequestRefused("bad-value", str(error)) from None
    except (OSError, ValueError) as error:
        raise RequestRefused("failed", f"the supervisor of '{target.name}': {error}") from None


def sizes_of(load: Load | None, wish: _Wanted, was: Mapping[str, Any]) -> dict[str, str]:
    """The former size, which the load had determined."""
    if load is None:
        return {}
    active = {pool.name: pool.active for pool in load.pools}.get(wish.name)
    found = {"active": active, "count": load.workers.count}
    return {key: str(found[key]) for key in was if key in found and was[key] is None}


def check_pool(target: ManagedTarget, name: str) -> None:
    """Refuse a name that the target has not."""
    load = target.load
    names = {pool.name for pool in load.pools} if load else target.settings.pools()
    if name not in names:
        there = ", ".join(sorted(names))
        raise RequestRefused(
            "no-such-pool", f"'{target.name}' has no pool '{name}'", f"there are: {there}"
        )


def checked(words: Mapping[str, Any]) -> dict[str, str]:
    """Values of a pool as texts of the form in which files have them.  Raises: RequestRefused."""
    try:
        found = check_words(words)
    except ConfigError as error:
        raise RequestRefused("bad-value", str(error)) from None
    return {key: show_value(key, setting.value) for key, setting in found.items()}


def pool_wish(name: str, values: Mapping[str, Any], drop: Sequence[str] = ()) -> _Wanted:
    """Values of a pool, and the message about them for the target."""
    frame: dict[str, Any] = {}
    for key, value in values.items():
        if not key.startswith("scale."):
            frame |= frame_of(Type.POOL, key, value)
    return _Wanted(POOL, name, values, frame, drop)


def difference(settings: TargetSettings, wish: _Wanted) -> tuple[dict[str, Any], dict[str, Any]]:
    """Old and new values, by short key."""
    was, now = {}, {}
    for key in {**wish.values, **dict.fromkeys(wish.drop)}:
        full = full_name(Override(wish.kind, wish.name, key, None))
        base = settings.base.get(full)
        standard = base.value if base else STANDARD.get(key)
        before, after = settings.get(full), wish.values.get(key, standard)
        if before is not None or after is not None:
            was[key] = standard if before is None else before
            now[key] = None if after is None else str(after)
    return was, now
