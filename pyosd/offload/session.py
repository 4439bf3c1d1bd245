# SPDX-License-Identifier: GPL-2.0-or-later
"""A session as scripts that run at the client need it: its URL, their cost, a process for the next.

Not here: where a script runs (where.py), the process (home.py), costs (costs.py).  Most sessions run no
script at the client, so both are imported when they are first used.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from pyosd.commands import Commands
from pyosd.security.credentials import CredentialSource
from pyosd.wire.transport import CommandTransport

if TYPE_CHECKING:
    from pyosd.offload.costs import Costs
    from pyosd.offload.home import HomeProcess

__all__ = ["ScriptSession"]


class ScriptSession(Commands):
    """Commands over a session, and what is kept for scripts that run at the client.

    url: of the target.  inherited: a child of this process logs in as the same user, by the URL and the
    environment.
    """

    def __init__(
        self,
        transport: CommandTransport,
        url: str = "",
        credentials: CredentialSource | None = None,
        inherited: bool = False,
    ) -> None:
        super().__init__(transport, credentials)
        self.url, self.inherited = url, inherited
        self._spare: HomeProcess | None = None

    @cached_property
    def costs(self) -> Costs:
        """The cost of scripts at this client, from its earlier runs."""
        from pyosd.offload.costs import Costs

        return Costs()

    def take_spare(self) -> HomeProcess | None:
        """A process that waits for scripts; the caller closes it, or gives it back."""
        spare, self._spare = self._spare, None
        if spare is not None and not spare.fits:
            spare.close()
            return None
        return spare

    def keep_spare(self, process: HomeProcess) -> None:
        """Take a process that waits for scripts; the next one here needs no new process."""
        if self._spare is None:
            self._spare = process
        else:
            process.close()
