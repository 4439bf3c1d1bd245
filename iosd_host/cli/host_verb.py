# SPDX-License-Identifier: GPL-2.0-or-later
"""The verbs that work on this host, without a session with a target.

They are verbs of pyosd/cli/frame/verb.py without the options that name a target and its credentials.
"""

from __future__ import annotations

from iosd_host.common.paths import MissingComponent
from iosd_host.config.packages import PackagesError
from iosd_host.config.schema import ConfigError
from iosd_host.serve.preconditions import CannotServe
from iosd_host.serve.process import ProcessFailed
from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.verb import LocalVerb, Settings

__all__ = ["HostVerb", "Settings"]

CODES: tuple[tuple[type[Exception], Exit], ...] = (
    (ConfigError, Exit.CONFIG),
    (CannotServe, Exit.CONFIG),
    (MissingComponent, Exit.FAILED),
    (PackagesError, Exit.FAILED),
    (ProcessFailed, Exit.FAILED),
)


class HostVerb(LocalVerb):
    """A verb of this host; its function gets the Settings first (click.pass_obj)."""

    def explain(self, error: BaseException) -> tuple[Exit, str]:
        """The requirements of a target that this host does not meet."""
        for kind, code in CODES:
            if isinstance(error, kind):
                return code, str(error)
        return super().explain(error)
