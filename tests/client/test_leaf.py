# SPDX-License-Identifier: GPL-2.0-or-later
"""Sessions that leaves of graphs share in an event loop (pyosd/cluster/leaf.py)."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import pytest

from pyosd.cluster import leaf
from pyosd.cluster.leaf import Sites
from pyosd.iscsi.login import Chap

URLS = {"a": "iscsi://h/t/1", "b": "iscsi://h/t/2"}


class Session:
    """What a login returns."""

    def __init__(self) -> None:
        self.closed = 0

    async def close(self) -> None:
        await asyncio.sleep(0)
        self.closed += 1


class Unpicklable:
    def __reduce__(self) -> str:
        raise TypeError("it stays here")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Session]:
    """All sessions, in the order of their logins."""
    found: list[Session] = []

    async def login(*_: object) -> Session:
        found.append(Session())
        return found[-1]

    monkeypatch.setattr(leaf, "_login", login)
    return found


def test_nobody_works_in_the_session_of_others(made: list[Session]) -> None:
    """A worker unpickles the options of each leaf: equal ones are one user's."""

    async def sessions() -> list[Any]:
        def travelled(user: str, name: str) -> Any:
            sites = Sites(URLS, {"chap": Chap(user, "s" * 12)})
            return leaf._session(pickle.loads(pickle.dumps(sites)), name, None)

        alike = [("ann", "a"), ("ann", "a"), ("bob", "a"), ("ann", "b"), ("bob", "a")]
        found = [await travelled(*each) for each in alike]
        odd = [Sites(URLS, {"credentials": Unpicklable()}) for _ in range(2)]
        found += [await leaf._session(each, "a", None) for each in (*odd, *odd)]
        await leaf.close_sessions()
        return found

    order = [made.index(each) for each in asyncio.run(sessions())]
    assert order == [0, 0, 1, 2, 1, 3, 4, 3, 4]
    assert all(each.closed == 1 for each in made)


def test_leaves_replace_a_lost_session_together(made: list[Session]) -> None:
    async def lose() -> None:
        sites = Sites(URLS, {})
        old: Any = await leaf._session(sites, "a", None)
        again = await asyncio.gather(*(leaf._session(sites, "a", old) for _ in range(3)))
        assert len(set(map(id, again))) == 1
        await leaf.close_sessions()

    asyncio.run(lose())
    assert len(made) == 2 and all(each.closed for each in made)
