# SPDX-License-Identifier: GPL-2.0-or-later
"""Opens a store for one of the tools: to look at a copy, or to change it in place."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from iosd_host.common.exit_codes import EXIT_CONFIG, EXIT_FAILED
from iosd_host.common.paths import MissingComponent
from iosd_host.store_tools.opening.bdb import (
    DatabaseError,
    StoreDatabase,
    Table,
    raise_outside,
    text_of,
)
from iosd_host.store_tools.opening.folders import (
    Refused,
    as_owner,
    check_usable,
    open_roots,
    private_copy,
)
from iosd_host.store_tools.opening.store import Store
from iosd_host.store_tools.opening.tables import Health, prepare
from iosd_host.store_tools.repair.superblocks import SET_ASIDE, why_not

__all__ = ["looking", "repairing"]


@contextlib.contextmanager
def looking(data: Path, ssd: Path | None, work: Path | None) -> Iterator[Store]:
    """A store nothing of which is changed: recovery and repairing of tables happen to a copy.

    Args: work: where the copy of the database goes; None: where temporary files do.
    Raises: Refused.
    """
    with (
        as_owner(data),
        open_roots(data, ssd) as roots,
        private_copy(roots, work) as copy,
        opened(copy, copy / SET_ASIDE) as (database, health),
    ):
        yield plausible(Store(roots, database, health))


def plausible(store: Store) -> Store:
    """The store, if what is left of its superblocks does not speak against it.  Raises: Refused."""
    reason = why_not(store)
    if reason:
        raise Refused(EXIT_CONFIG, f"'{store.roots.main.path}': {reason}")
    return store


@contextlib.contextmanager
def repairing(data: Path, ssd: Path | None) -> Iterator[Store]:
    """A store to be changed.  Raises: Refused."""
    with as_owner(data), open_roots(data, ssd) as roots:
        roots.database.mkdir(mode=0o700, exist_ok=True)
        for root in roots:
            if not root.data.exists() and (roots.database / Table.OBJECTS.value).exists():
                text = f"'{root.data}' is missing, and every object would become empty"
                raise Refused(EXIT_CONFIG, f"{text}: put it back, or make an empty folder")
            root.data.mkdir(mode=0o700, exist_ok=True)
        check_usable(roots.database)
        with opened(roots.database, data / SET_ASIDE, create=True) as (database, health):
            yield plausible(Store(roots, database, health))


@contextlib.contextmanager
def opened(
    folder: Path, aside: Path, create: bool = False
) -> Iterator[tuple[StoreDatabase, Health]]:
    """The database, repaired as far as Berkeley DB requires.

    Raises: Refused: in vain; OSError: the disk is full, a file is not ours.
    """
    try:
        health = prepare(folder, aside)
        database = StoreDatabase(folder, create=create)
    except DatabaseError as error:
        raise_outside(error, folder)
        text = f"the database cannot be opened: {text_of(error)}; restore the store from a backup"
        raise Refused(EXIT_FAILED, text) from None
    except MissingComponent as error:
        raise Refused(EXIT_FAILED, str(error)) from None
    with database:
        yield database, health
