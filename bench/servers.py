# SPDX-License-Identifier: GPL-2.0-or-later
"""Servers of others, run beside ours for the length of a block, with a configuration of their own, as this
user, and nothing of them left afterwards.  If they are not installed, `make bench` has unpacked them
(tools/bench-peers.sh).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

UNPACKED = Path(__file__).resolve().parents[1] / "build" / "peers"
START_S = 10.0


class Absent(Exception):
    """The program is not here; the text says what to do."""


def _program(name: str) -> tuple[str, dict[str, str]]:
    """Path and environment.

    Raises: Absent.
    """
    if found := shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin"):
        return found, dict(os.environ)
    for folder in ("usr/bin", "usr/sbin"):
        path = UNPACKED / folder / name
        if path.exists():
            architecture = f"{os.uname().machine}-linux-gnu"
            libraries = [str(UNPACKED / each / architecture) for each in ("usr/lib", "lib")]
            return str(path), {**os.environ, "LD_LIBRARY_PATH": ":".join(libraries)}
    raise Absent(f"no {name}: tools/bench-peers.sh build/peers, or apt-get install {name}")


def _free_port(address: str) -> int:
    with socket.create_server((address, 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@contextlib.contextmanager
def _running(argv: Sequence[str], environment: dict[str, str], log: Path) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            argv, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        yield
        if process.poll() is not None:
            raise RuntimeError(f"{argv[0]} ended: {log.read_text(errors='replace')[-500:]}")
    finally:
        process.terminate()
        process.wait()


def _connected(address: tuple[str, int], log: Path) -> socket.socket:
    deadline = time.monotonic() + START_S
    while True:
        try:
            return socket.create_connection(address)
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise RuntimeError(log.read_text(errors="replace")[-500:]) from None
            time.sleep(0.01)


def _wait_for(path: Path, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while not path.exists():
        if time.monotonic() > deadline:
            raise RuntimeError(log.read_text(errors="replace")[-500:])
        time.sleep(0.01)


@contextlib.contextmanager
def redis() -> Iterator[socket.socket]:
    """A connection to a Redis over TCP on loopback whose answers are in its log file, as far as the kernel,
    when they come (appendonly, no fsync): what we promise of a commit.

    Raises: Absent.
    """
    program, environment = _program("redis-server")
    with tempfile.TemporaryDirectory(prefix="iosd-redis-") as name:
        port, log = _free_port("127.0.0.1"), Path(name) / "log"
        argv = [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", name, "--save", ""]
        argv += ["--appendonly", "yes", "--appendfsync", "no"]
        with _running(argv, environment, log), _connected(("127.0.0.1", port), log) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            yield connection


NGINX = """\
daemon off;
master_process off;
pid {folder}/pid;
error_log stderr;
events {{ }}
http {{
  access_log off;
  sendfile on;
  tcp_nopush on;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{ listen {address}:{port}; root {files}; }}
}}
"""


@contextlib.contextmanager
def nginx(files: Path, address: str, prefix: Sequence[str] = ()) -> Iterator[tuple[str, int]]:
    """Address of an nginx that serves a folder of files.

    Args: address: to listen on.  prefix: argv put before it, of a network namespace.
    Raises: Absent.
    """
    program, environment = _program("nginx")
    with tempfile.TemporaryDirectory(prefix="iosd-nginx-") as name:
        port = 8080 if prefix else _free_port(address)
        configuration, log = Path(name) / "conf", Path(name) / "log"
        configuration.write_text(NGINX.format(folder=name, address=address, port=port, files=files))
        argv = [*prefix, program, "-p", name, "-c", str(configuration), "-e", "stderr"]
        with _running(argv, environment, log):
            _wait_for(Path(name) / "pid", log)  # written when it listens
            yield address, port


@contextlib.contextmanager
def disk_file(url: str, place: Path) -> Iterator[Path]:
    """The disk of an iSCSI URL as a file, by QEMU's initiator and FUSE.

    Args: url: iscsi://ADDRESS:PORT/TARGET/LUN.  place: where the file appears; it is removed afterwards.
    Raises: Absent.
    """
    program, environment = _program("qemu-storage-daemon")
    _, _, portal, target, lun = url.split("/")
    place.touch()
    disk = f"driver=iscsi,node-name=disk,transport=tcp,portal={portal},target={target},lun={lun}"
    argv = [program, "--blockdev", f"{disk},initiator-name=iqn.2026-11.iosd:bench", "--export"]
    argv += [f"type=fuse,id=file,node-name=disk,mountpoint={place},writable=on,growable=off"]
    log = place.with_name(f"{place.name}.log")
    with _running(argv, environment, log):
        deadline = time.monotonic() + START_S
        while not place.stat().st_size:  # until the export covers the empty file
            if time.monotonic() > deadline:
                raise RuntimeError(log.read_text(errors="replace")[-500:])
            time.sleep(0.01)
        yield place
    place.unlink()
    log.unlink()
