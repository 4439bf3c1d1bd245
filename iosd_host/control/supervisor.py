# SPDX-License-Identifier: GPL-2.0-or-later
"""A request to the supervisor of a target (docs/control.md): one line of JSON, one line back."""

from __future__ import annotations

import json
import socket
from typing import Any

from iosd_host.config.schema import ConfigError

__all__ = ["LINE_MOST", "ask_supervisor"]

LINE_MOST = 1 << 20
ANSWER_S = 30.0


def ask_supervisor(path: str, method: str, **fields: Any) -> dict[str, Any]:
    """A request to the supervisor that listens there (docs/control.md).

    Raises:
        ConfigError: it refuses, and says why.
        OSError: it is not there, or we may not ask it.
    """
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(ANSWER_S)
        link.connect(path)
        link.sendall(json.dumps({"method": method, **fields}).encode() + b"\n")
        with link.makefile("rb") as answers:
            line = answers.readline(LINE_MOST)
    if not line:
        raise ConnectionError("the supervisor has closed the connection")
    answer = json.loads(line)
    if "error" in answer:
        error = answer["error"]
        if error["code"] == "not-permitted":
            raise PermissionError(error["message"])
        raise ConfigError(error["message"])
    return dict(answer["result"])
