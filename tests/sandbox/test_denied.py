# SPDX-License-Identifier: GPL-2.0-or-later
"""What a hostile script tries, from inside a sandbox at level full.  Everything here must fail as an
exception of the script, with arguments that do no harm should it succeed.

System calls Python has no function for are tried by try_syscalls.c (test_syscalls.py).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from proxy import FINISH_OK, Daemon, Limits

# Each is an expression or statements; it passes by raising OSError, ImportError or RuntimeError.
DENIED = {
    "fork": "os.fork()",
    "vfork and exec": "import subprocess; subprocess.run(['/bin/true'])",
    "exec": "os.execv('/bin/true', ['true'])",
    "posix_spawn": "os.posix_spawn('/bin/true', ['true'], {})",
    "setsid": "os.setsid()",
    "kill the zygote": "os.kill(0, 0)",
    "kill process 1": "os.kill(1, 0)",
    "kill by pidfd": "import signal; signal.pidfd_send_signal(os.pidfd_open(1), 0)",
    "signal another thread": "import signal, threading; signal.pthread_kill(threading.get_ident(), 10)",
    "network, IPv4": "import socket; socket.socket(socket.AF_INET)",
    "network, IPv6": "import socket; socket.socket(socket.AF_INET6)",
    "network, Unix": "import socket; socket.socket(socket.AF_UNIX)",
    "network, netlink": "import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
    "network, packet": "import socket; socket.socket(socket.AF_PACKET)",
    "network, vsock": "import socket; socket.socket(40)",
    "network, pair": "import socket; socket.socketpair()",
    "write to the job socket as a socket": "import socket; socket.socket(fileno=4).send(b'')",
    "the host's users": "open('/etc/passwd')",
    "the root": "os.listdir('/')",
    "up from the library": "open('/usr/lib/python3.11/../../../etc/passwd')",
    "shared libraries": "os.listdir('/usr/lib/x86_64-linux-gnu')",
    "proc": "open('/proc/self/status')",
    "proc of process 1": "os.listdir('/proc/1')",
    "descriptors by name": "os.listdir('/proc/self/fd')",
    "sys": "os.listdir('/sys')",
    "shm": "os.listdir('/dev/shm')",
    "tmp": "os.listdir('/tmp')",
    "a temporary file": "import tempfile; tempfile.TemporaryFile()",
    "a new file in the library": "open('/usr/lib/python3.11/x.py', 'w')",
    "writing the library": "open('/usr/lib/python3.11/os.py', 'r+')",
    "a new directory": "os.mkdir('/x')",
    "a symbolic link": "os.symlink('/etc', '/usr/lib/python3.11/x')",
    "a hard link": "os.link('/usr/lib/python3.11/os.py', '/x')",
    "removing": "os.unlink('/usr/lib/python3.11/os.py')",
    "renaming": "os.rename('/usr/lib/python3.11/os.py', '/x')",
    "changing modes": "os.chmod('/usr/lib/python3.11/os.py', 0o777)",
    "changing owners": "os.chown('/usr/lib/python3.11/os.py', 0, 0)",
    "truncating": "os.truncate('/usr/lib/python3.11/os.py', 0)",
    "a FIFO": "os.mkfifo('/x')",
    "a device": "os.mknod('/x', 0o20666, 0)",
    "changing directory": "os.chdir('/usr')",
    "changing root": "os.chroot('/usr')",
    "file system figures": "os.statvfs('/')",
    "anonymous memory file": "os.memfd_create('x')",
    "pipes": "os.pipe()",
    "event descriptors": "os.eventfd(0)",
    "epoll": "import select; select.epoll()",
    "shared anonymous memory": "import mmap; mmap.mmap(-1, 4096, mmap.MAP_SHARED)",
    "executable memory": "import mmap; mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 5)",
    "foreign functions": "import ctypes",
    "late extension modules": "import _testcapi",
    "locks on files": "import fcntl; fcntl.flock(1, fcntl.LOCK_EX)",
    "record locks": "import fcntl; fcntl.lockf(1, fcntl.LOCK_EX)",
    "ownership of signals": "import fcntl; fcntl.fcntl(1, fcntl.F_SETOWN, 1)",
    "pipe sizes": "import fcntl; fcntl.fcntl(1, 1031, 1 << 20)",
    "notification of directories": "import fcntl; fcntl.fcntl(0, 1026, 1)",
    "terminal input": "import fcntl; fcntl.ioctl(0, 0x5412, b'x')",
    "terminal console": "import fcntl; fcntl.ioctl(0, 0x541c, b'x')",
    "advice on caches": "os.posix_fadvise(1, 0, 0, os.POSIX_FADV_DONTNEED)",
    "priorities": "os.setpriority(os.PRIO_PROCESS, 0, 5)",
    "nice": "os.nice(5)",
    "processors": "os.sched_setaffinity(0, {0})",
    "scheduling class": "os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))",
    "limits": "import resource; resource.setrlimit(resource.RLIMIT_DATA, (1 << 40, 1 << 40))",
    "user ids": "os.setuid(0)",
    "user ids, real and saved": "os.setresuid(0, 0, 0)",
    "groups": "os.setgroups([0])",
    "extended attributes": "os.setxattr('/usr/lib/python3.11/os.py', 'user.x', b'')",
    "timers": "import signal; signal.setitimer(signal.ITIMER_REAL, 1000)",
    "clock": "import time; time.clock_settime(time.CLOCK_REALTIME, 0)",
    "host name": "import socket; socket.sethostname('x')",
    "a thread more than allowed": "import threading; threading.Thread(target=print).start()",
    "umask": "0 if os.umask(0) == -1 else None; open('/x', 'w')",
    "a second process by multiprocessing": "import multiprocessing as m; m.Process(target=print).start()",
    "sync of the host": "os.sync() or open('/etc/hosts')",
    "interpreter's memory": "open('/dev/mem', 'rb')",
    "sendfile": "os.sendfile(1, 0, None, 1)",
    "splice": "os.splice(0, 1, 1)",
    "copy_file_range": "os.copy_file_range(0, 1, 1)",
}


@pytest.mark.parametrize("what", DENIED)
def test_denied(daemon: Daemon, what: str) -> None:
    out = daemon.run(
        "import os\n"
        "try:\n"
        f"    {DENIED[what]}\n"
        "except (OSError, ImportError, RuntimeError) as error:\n"
        "    print('denied', type(error).__name__, error)\n"
        "else:\n"
        "    print('got through')\n"
    )
    assert out.kind == FINISH_OK, out.stderr.decode()
    assert out.stdout.startswith(b"denied"), out.stdout


def test_open_descriptors_are_the_four(daemon: Daemon) -> None:
    out = daemon.run(
        "import os\n"
        "def is_open(fd):\n"
        "    try: return os.fstat(fd) is not None\n"
        "    except OSError: return False\n"
        "print([fd for fd in range(4096) if is_open(fd)])"
    )
    assert out.stdout == b"[0, 1, 2, 4]\n"


def test_who_a_sandbox_is(daemon: Daemon) -> None:
    out = daemon.run(
        "import os; print(os.getpid(), os.getppid(), os.getuid() == os.geteuid() > 0, os.getgroups(),"
        " os.getcwd(), os.uname().nodename == os.uname().nodename, dict(os.environ).get('PATH'))"
    )
    assert out.stdout == b"1 0 True [] / True /nonexistent\n"


def test_each_slot_has_a_user_of_its_own(daemon: Daemon) -> None:
    sandboxes = [daemon.spawn() for _ in range(3)]
    users = set()
    for sandbox in sandboxes:
        sandbox.wait_ready()
        status = Path(f"/proc/{sandbox.pid}/status").read_text()
        users.add(next(line for line in status.splitlines() if line.startswith("Uid:")).split()[1])
        assert "NoNewPrivs:\t1" in status
        assert "Seccomp:\t2" in status
        assert "Threads:\t2" in status
        assert "CapEff:\t0000000000000000" in status
        assert "CapPrm:\t0000000000000000" in status
    assert len(users) == 3
    assert all(int(user) > 200000 for user in users)
    for sandbox in sandboxes:
        sandbox.kill()
        sandbox.wait_exit()
        sandbox.close()


def test_nothing_of_the_job_before(daemon: Daemon) -> None:
    """The same slot, one job after the other: what the first planted, the second does not find."""
    first = (
        "import builtins, sys, os, random, signal, json, osd\n"
        "builtins.planted = sys.planted = 'secret-0xfeed'; sys.path.append('/secret-0xfeed')\n"
        "json.dumps = None; os.environ['PLANTED'] = 'secret-0xfeed'; osd.planted = 1\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN); sys.modules['planted'] = sys\n"
        "sys.setrecursionlimit(100)\n"
    )
    second = (
        "import builtins, sys, os, signal, json, osd, gc\n"
        "assert not hasattr(builtins, 'planted') and not hasattr(sys, 'planted')\n"
        "assert '/secret-0xfeed' not in sys.path and 'PLANTED' not in os.environ\n"
        "assert json.dumps and not hasattr(osd, 'planted') and 'planted' not in sys.modules\n"
        "assert sys.getrecursionlimit() == 1000\n"
        "print(signal.getsignal(signal.SIGINT))"
    )
    assert daemon.run(first).kind == FINISH_OK
    out = daemon.run(second)
    assert out.kind == FINISH_OK, out.stderr.decode()


def test_a_secret_is_nowhere_in_the_next_one_s_memory(daemon: Daemon) -> None:
    secret = b"a secret of job A: 5d1f77"
    daemon.run(b"import osd; x = [b'" + secret + b"' * i for i in range(99)]; osd.log(x[3])")
    sandbox = daemon.spawn()
    sandbox.wait_ready()
    found = []
    with (
        Path(f"/proc/{sandbox.pid}/maps").open() as maps,
        Path(f"/proc/{sandbox.pid}/mem").open("rb") as memory,
    ):
        for line in maps:
            span, modes = line.split()[:2]
            if "r" not in modes or "[v" in line:
                continue
            start, end = (int(part, 16) for part in span.split("-"))
            memory.seek(start)
            if secret in memory.read(end - start):
                found.append(line)
    sandbox.kill()
    sandbox.wait_exit()
    sandbox.close()
    assert not found


def test_random_numbers_differ(daemon: Daemon) -> None:
    code = "import random, uuid, os; print(random.random(), uuid.uuid4(), os.urandom(4))"
    outputs = {daemon.run(code, Limits()).stdout for _ in range(3)}
    assert len(outputs) == 3
