# SPDX-License-Identifier: GPL-2.0-or-later
"""TCP connections passed on from another address: to a target its user is somebody else."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Callable, Iterator

from iosd_host.common.held_port import HeldPort


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


class Gate:
    """A URL behind which the target can become unreachable, and come back.

    A context manager.  cut() ends the connections there are; shut() refuses new ones, too, until
    open(); hold() keeps bytes back until release().
    """

    def __init__(self, url: str) -> None:
        found = re.search(r"//([^/]+):(\d+)/", url)
        assert found
        self._place = found[1], int(found[2])
        self._held = HeldPort("127.0.0.1", 0)
        self._port = self._held.port
        self._server = socket.create_server(("127.0.0.1", self._port))
        self.url = url.replace(f":{found[2]}/", f":{self._port}/", 1)
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._lock = threading.Lock()
        self._passing = threading.Event()
        self._passing.set()
        self._threads: list[threading.Thread] = []
        self._listen()

    def __enter__(self) -> Gate:
        return self

    def __exit__(self, *_: object) -> None:
        self._passing.set()
        self.shut()
        self._held.close()
        for thread in self._threads:
            thread.join()
        for pair in self._pairs:
            for end in pair:
                end.close()

    def _start(self, function: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=function, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _listen(self) -> None:
        self._start(self._accept, self._server)

    def _accept(self, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                near = server.accept()[0]
                pair = near, socket.create_connection(self._place)
                with self._lock:
                    self._pairs.append(pair)
                    if server.fileno() < 0:  # shut meanwhile, and this one has not been seen
                        shut(pair)
                self._start(self._pump, *pair)
                self._start(self._pump, *reversed(pair))

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                self._passing.wait()
                sink.sendall(data)
        shut((source, sink))

    def cut(self) -> None:
        """End the connections that there are."""
        with self._lock:
            for pair in self._pairs:
                shut(pair)

    def shut(self) -> None:
        """Refuse connections, and end those that there are."""
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._server.close()
        self.cut()

    def open(self) -> None:
        """Accept connections again."""
        self._server = socket.create_server(("127.0.0.1", self._port))
        self._listen()

    def hold(self) -> None:
        """Pass nothing on until release()."""
        self._passing.clear()

    def release(self) -> None:
        """Pass on what was held."""
        self._passing.set()
