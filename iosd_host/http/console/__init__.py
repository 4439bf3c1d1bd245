# SPDX-License-Identifier: GPL-2.0-or-later
"""The manager's HTTP end: metrics, health, and a console for people (docs/observing.md).

app.py has the routes, state.py the contents of a reading, live.py sends readings to open pages,
sessions.py has the logins.  The page itself is plain files in static/.
"""

from __future__ import annotations

from iosd_host.http.console.app import AddressTaken, Console, ConsoleError
from iosd_host.http.console.sessions import Sessions, TokenError, make_tokens

__all__ = ["AddressTaken", "Console", "ConsoleError", "Sessions", "TokenError", "make_tokens"]
