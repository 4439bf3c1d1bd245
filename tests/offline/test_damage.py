# SPDX-License-Identifier: GPL-2.0-or-later
"""Each damage: check names it and changes nothing, repair repairs it, and nothing else is different."""

from __future__ import annotations

import pytest

from tests.offline.damages import DAMAGES, Damage
from tests.offline.stores import Snapshot, Store, everything, look, lost


@pytest.mark.parametrize(
    ("name", "template"),
    [(name, each.two_roots) for name, each in DAMAGES.items()],
    indirect=["template"],
    ids=DAMAGES,
)
def test_damage(name: str, store: Store, before: Snapshot) -> None:
    damage = DAMAGES[name]
    damage.act(store)
    untouched = store.digest()
    assert damage.kind in store.kinds()
    assert store.digest() == untouched, "check has changed something"

    assert all(each["done"] for each in store.repair())
    assert store.check() == []
    assert_served(store, before, damage)
    assert store.repair() == [], "what the target did with it is in order"


def assert_served(store: Store, before: Snapshot, damage: Damage) -> None:
    """The target opens it, undamaged objects are as they were, and no bytes are gone."""
    changed = set(damage.changed(store.names))
    with store.serve() as osd:
        after = look(osd)
        for obj, seen in before.items():
            if obj not in changed:
                assert after.get(obj) == seen, f"{obj} is different"
        assert set(after) <= set(before)
        kept = everything(osd)
        found = lost(osd)
    if damage.lossy:
        return
    for obj in changed:
        assert any(before[obj].data in each for each in kept), f"{obj} has lost data"
        if obj not in after and (before[obj].data or before[obj].attributes):
            name = next(each for each in found if f".{int(obj.object_id):x}." in each)
            attributes = found[name].attributes
            for key, value in before[obj].attributes.items():
                assert value == attributes.get(key) or key == (1, 9) or key[0] >= 0x2000_0000
