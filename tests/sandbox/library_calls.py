# SPDX-License-Identifier: GPL-2.0-or-later
"""What honest scripts do with the standard library, so that each system call on the list is used.

Run in a sandbox: prints the name of each function that worked.  `make syscalls` finds out which
entries of the list no script here or in the other tests needs.
"""

import fcntl
import json
import os
import platform
import random
import select
import sys
import tempfile
import threading
import time

LIBRARY = json.__file__


def describes_itself():
    os.getpid(), os.getppid(), os.getuid(), os.geteuid(), os.getgid(), os.getegid(), os.getgroups()
    os.uname(), os.times(), os.getcwd(), len(os.sched_getaffinity(0)), platform.platform()


def measures_time():
    for clock in (
        time.CLOCK_MONOTONIC,
        time.CLOCK_PROCESS_CPUTIME_ID,
        time.CLOCK_THREAD_CPUTIME_ID,
    ):
        time.clock_gettime(clock), time.clock_getres(clock)
    time.sleep(0.001)


def looks_at_files():
    assert os.access(LIBRARY, os.R_OK) and not os.access(LIBRARY, os.W_OK)
    assert os.access(LIBRARY, os.R_OK, effective_ids=True)
    assert os.path.realpath(LIBRARY) and os.stat(LIBRARY) and os.lstat(LIBRARY)
    assert os.listdir(os.path.dirname(LIBRARY))
    try:
        os.readlink(LIBRARY)
    except OSError as error:
        assert error.errno == 22  # is no link


def reads_files():
    with open(LIBRARY, "rb", buffering=0) as file:
        assert os.fstat(file.fileno()).st_size and not file.isatty()
        one, two = bytearray(10), bytearray(10)
        assert os.readv(file.fileno(), [one, two]) == 20
        assert os.preadv(file.fileno(), [two], 0) == 10 and one == two
        assert os.preadv(file.fileno(), [two], 0, os.RWF_HIPRI) == 10
        assert os.pread(file.fileno(), 10, 0) == one
        file.seek(5)
        copy = os.dup(file.fileno())
        os.dup2(file.fileno(), copy, inheritable=False)
        os.dup2(file.fileno(), copy)
        os.set_inheritable(copy, False)
        assert fcntl.fcntl(copy, fcntl.F_GETFL) == os.O_RDONLY | 0o100000
        other = fcntl.fcntl(copy, fcntl.F_DUPFD, 10)
        os.set_blocking(other, True)
        os.get_blocking(other)
        fcntl.ioctl(other, 0x5451)  # FIOCLEX
        os.closerange(copy, copy + 1)
        os.close(other)


def waits():
    assert select.select([0], [], [], 1)[0] == [0]
    poll = select.poll()
    poll.register(0)
    assert poll.poll(1000)
    assert threading.Lock().acquire(timeout=0.001)
    lock = threading.Lock()
    lock.acquire()
    assert not lock.acquire(timeout=0.001)
    os.sched_yield()


def writes():
    sys.stdout.flush()
    os.writev(1, [b"wr", b"itten\n"])


def handles_errors():
    import faulthandler
    import signal

    faulthandler.enable()
    faulthandler.disable()
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with tempfile.TemporaryFile() as file:
        file.write(b"x")


def draws_lots():
    os.urandom(8), os.getrandom(8), random.SystemRandom().random()


def takes_memory():
    import mmap

    with mmap.mmap(-1, 1 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory[:4] = b"text"
        memory.madvise(mmap.MADV_DONTNEED)
        memory.resize(2 << 20)
    grown = bytearray(1 << 20)
    grown.extend(bytes(8 << 20))


for function in (
    describes_itself,
    measures_time,
    looks_at_files,
    reads_files,
    waits,
    writes,
    handles_errors,
    draws_lots,
    takes_memory,
):
    function()
    print(function.__name__, flush=True)
