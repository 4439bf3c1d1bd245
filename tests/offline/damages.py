# SPDX-License-Identifier: GPL-2.0-or-later
"""Every way of damaging a store that the tools know: files edited, records changed behind its back.

Each (damage.py) names the problem that check must find, the objects that may look different afterwards, and
does its damage to a closed store.
"""

from __future__ import annotations

from tests.offline import damages_files, damages_objects, damages_services
from tests.offline.damage import DAMAGES, Damage

__all__ = ["DAMAGES", "Damage", "damages_files", "damages_objects", "damages_services"]
