# SPDX-License-Identifier: GPL-2.0-or-later
"""Actions that the resource manager's process cannot do when it is confined."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from iosd_host.manager.confine import DENIED
from tests.harness import SOURCE

TRY = """
import ctypes, errno, os, platform, socket, sys, threading
sys.path.insert(0, {source!r})
from iosd_host.manager.confine import confine, drop_capabilities
if os.geteuid() == 0:
    drop_capabilities()
    os.setgroups([]); os.setresgid(*[2046820353] * 3); os.setresuid(*[2046820353] * 3)
seccomp = ctypes.CDLL("libseccomp.so.2")
libc = ctypes.CDLL(None, use_errno=True)
confine()

def call(name, *args):
    number = seccomp.seccomp_syscall_resolve_name(name.encode())
    if number < 0:
        return None  # not of this processor
    ctypes.set_errno(0)
    found = libc.syscall(number, *[ctypes.c_long(each) for each in args])
    return errno.errorcode.get(ctypes.get_errno(), "0") if found == -1 else "done"
"""


def run(words: str) -> str:
    program = TRY.format(source=str(SOURCE)) + textwrap.dedent(words)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", DENIED)
def test_denied(name: str) -> None:
    """With arguments that are harmless should it go through after all."""
    arguments = {"reboot": "0, 0, 0, 0", "syslog": "3, 1, 1", "personality": "0xFFFFFFFF"}
    said = run(f"print(call({name!r}, {arguments.get(name, '-1, 1, 1, 1, 1')}))").strip()
    assert said in ("EPERM", "None"), said


def test_denied_by_argument() -> None:
    said = run("""
        print(call("clone", 0x10000000 | 17, 0, 0, 0, 0), call("clone3", 1, 0))
        for family in (socket.AF_PACKET, socket.AF_VSOCK, 3, 44, 63, 64, 200):
            try:
                print(socket.socket(family, socket.SOCK_RAW))
            except OSError as error:
                print(errno.errorcode[error.errno])
    """).split()
    assert said == ["EPERM", "ENOSYS", *["EAFNOSUPPORT"] * 7]


def test_what_it_needs_goes_on() -> None:
    said = run("""
        for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_NETLINK):
            socket.socket(family, socket.SOCK_DGRAM).close()
        thread = threading.Thread(target=print, args=("a thread",))
        thread.start()
        thread.join()
        os.close(os.pidfd_open(os.getpid()))
        lines = dict(line.split(":", 1) for line in open("/proc/self/status"))
        print(*[lines[name].strip() for name in ("Seccomp", "NoNewPrivs", "CapEff")])
    """)
    caps = "0" * 16
    expected = f"a thread\n2 1 {caps}\n"
    assert said == expected if os.geteuid() == 0 else said.startswith("a thread\n2 1 ")
