# SPDX-License-Identifier: GPL-2.0-or-later
"""The manager's HTTP end: metrics, health, and a console for people (docs/observing.md).

app.py has the routes, state.py what the page is told, live.py who is told when, sessions.py who may change
something, crowd.py how many connections there may be; the page itself is plain files in static/.
"""

from __future__ import annotations

from scheduler.admin.console.app import AddressTaken, Console, ConsoleError
from scheduler.admin.console.sessions import Sessions, TokenError, make_tokens

__all__ = ["AddressTaken", "Console", "ConsoleError", "Sessions", "TokenError", "make_tokens"]
