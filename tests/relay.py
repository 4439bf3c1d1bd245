# SPDX-License-Identifier: GPL-2.0-or-later
"""TCP connections passed on from another address: to a target its user is somebody else."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def from_address(url: str, address: str) -> Iterator[str]:
    """A URL by which the target of this one sees connections from that address of the loopback."""
    found = re.search(r"//([^/]+):(\d+)/", url)
    assert found
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = found[1], int(found[2])
        thread = threading.Thread(target=accept, args=(server, place, address))
        thread.start()
        try:
            yield url.replace(f":{found[2]}/", f":{server.getsockname()[1]}/", 1)
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def accept(server: socket.socket, place: tuple[str, int], address: str) -> None:
    """Until the server is shut down; then all that was accepted is, too."""
    with contextlib.ExitStack() as kept, contextlib.suppress(OSError):
        while True:
            near = kept.enter_context(server.accept()[0])
            far = socket.create_connection(place, source_address=(address, 0))
            kept.enter_context(far)
            for pair in ((near, far), (far, near)):
                thread = threading.Thread(target=pump, args=pair)
                thread.start()
                kept.callback(thread.join)
                kept.callback(shut, pair)


def pump(source: socket.socket, sink: socket.socket) -> None:
    """Until one of them ends; then neither goes on."""
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    shut((source, sink))


def shut(pair: tuple[socket.socket, socket.socket]) -> None:
    """No more either way."""
    for each in pair:
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
