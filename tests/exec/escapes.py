# SPDX-License-Identifier: GPL-2.0-or-later
"""Public ways out of sandboxes that were others', as scripts; each prints ESCAPED if it works here.

Data only; test_hostile.py submits them.  From advisories and write-ups on restricted Python, containers,
bubblewrap, nsjail and firejail, and on the kernel as far as Python can ask for the first step; calls
that only machine code can make are tried in sandbox/test_syscalls.c.
"""

from __future__ import annotations

WRITTEN = "print('ESCAPED', os.write(os.open({!r}, os.O_WRONLY), b'x'))"

# ---- restricted Python: no boundary here, so what matters is what stands behind it

PYTHON = {
    "a walk over all classes to os.system": (
        "c = [c for c in ().__class__.__base__.__subclasses__() if c.__name__ == '_wrap_close'][0]\n"
        "if c.__init__.__globals__['system']('id') == 0: print('ESCAPED')"
    ),
    "a shell by popen": "print('ESCAPED', os.popen('id').read())",
    "a pickle": "import pickle\nif pickle.loads(b\"cos\\nsystem\\n(S'id'\\ntR.\") == 0: print('ESCAPED')",
    "fork_exec below subprocess": (
        "import _posixsubprocess as p\n"
        "print('ESCAPED', p.fork_exec([b'id'], [b'/usr/bin/id'], True, (), None, None, -1, -1, -1,"
        " -1, -1, -1, -1, -1, True, False, 0, None, None, None, -1, None, False))"
    ),
    "frames of a generator (CVE-2023-37271)": (
        "def g():\n    yield f.gi_frame.f_back\nf = g()\nframe = next(f)\n"
        "while frame:\n    if 'job_socket' in frame.f_locals: print('ESCAPED', frame)\n"
        "    frame = frame.f_back"
    ),
    "attributes by format (CVE-2023-41039)": (
        "text = '{0.__init__.__globals__[environ]}'.format(os._wrap_close)\n"
        "for word in ('IOSD', 'SUDO', 'INVOCATION', 'USER', 'SHELL', 'PYTEST'):\n"
        "    if word in text: print('ESCAPED', text)"
    ),
    "files among all objects": (
        "import gc, io\nfor each in gc.get_objects():\n"
        "    if isinstance(each, io.FileIO) and not each.closed and each.fileno() > 2:\n"
        "        print('ESCAPED', each)"
    ),
    "libc by ctypes": "import ctypes\nprint('ESCAPED', ctypes.CDLL(None).getuid())",
    "machine code by mmap": (
        "import mmap\nprint('ESCAPED', mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 7))"
    ),
    "a module for everybody who comes later": (
        "for folder in __import__('sys').path:\n"
        "    try: open(folder + '/sitecustomize.py', 'w')\n    except OSError: continue\n"
        "    print('ESCAPED', folder)"
    ),
    "LD_PRELOAD": (
        "os.environ['LD_PRELOAD'] = '/x.so'\nos.execve('/usr/bin/id', ['id'], os.environ)"
    ),
}

# ---- containers

CONTAINERS = {
    "the program itself (CVE-2019-5736)": WRITTEN.format("/proc/self/exe"),
    "a folder's descriptor left open (CVE-2024-21626)": (
        "for fd in range(1024):\n"
        "    for up in ('..', '../../../../../etc/passwd', 'etc/passwd'):\n"
        "        try: print('ESCAPED', os.open(up, os.O_RDONLY, dir_fd=fd))\n"
        "        except OSError: pass"
    ),
    "a working folder outside (CVE-2024-21626)": "print('ESCAPED', os.open('..', os.O_RDONLY))",
    "release_agent (CVE-2022-0492)": "print('ESCAPED', os.listdir('/sys/fs/cgroup'))",
    "core_pattern": WRITTEN.format("/proc/sys/kernel/core_pattern"),
    "modprobe's path": WRITTEN.format("/proc/sys/kernel/modprobe"),
    "binfmt_misc": WRITTEN.format("/proc/sys/fs/binfmt_misc/register"),
    "uevent_helper": WRITTEN.format("/sys/kernel/uevent_helper"),
    "sysrq": WRITTEN.format("/proc/sysrq-trigger"),
    "the host's memory": WRITTEN.format("/dev/mem"),
    "the host's root by process 1": "print('ESCAPED', os.listdir('/proc/1/root'))",
    "the host's root by its own": "print('ESCAPED', os.listdir('/proc/self/root'))",
    "out of chroot by a descriptor": (
        "fd = os.open('/usr', os.O_RDONLY)\nos.chroot('/usr')\nos.fchdir(fd)\n"
        "print('ESCAPED', os.listdir('..'))"
    ),
    "a disk of the host": (
        "import stat\nos.mknod('/dev/disk', 0o600 | stat.S_IFBLK, os.makedev(8, 0))\n"
        "print('ESCAPED', os.open('/dev/disk', os.O_RDWR))"
    ),
    "the container daemon's socket": (
        "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect('/var/run/docker.sock')\n"
        "print('ESCAPED')"
    ),
    "an abstract socket (CVE-2020-15257)": (
        "import socket\nsocket.socket(socket.AF_UNIX).connect('\\0/containerd-shim/')\nprint('ESCAPED')"
    ),
}

# ---- sandboxes made of namespaces and filters

SANDBOXES = {
    "typing into the terminal (CVE-2017-5226)": (
        "import fcntl\nfor fd in range(8):\n    for request in (0x5412, 0x1_0000_5412, 0x541c):\n"
        "        try: fcntl.ioctl(fd, request & 0xffffffff, b'i')\n        except OSError: continue\n"
        "        print('ESCAPED', fd)"
    ),
    "a reader's descriptor opened to write": (
        "import osd\no = osd.zone.create_many(1)[0]\no.data.write(bytes(100_000))\no.data.read()\n"
        "for fd in range(3, 64):\n    try: os.open(f'/proc/self/fd/{fd}', os.O_RDWR)\n"
        "    except OSError: continue\n    print('ESCAPED', fd)"
    ),
    "more descriptors by the job's socket": (
        "import socket\ns = socket.socket(fileno=4)\ns.setblocking(True)\n"
        "print('ESCAPED', socket.recv_fds(s, 100, 10))"
    ),
    "everybody killed": "os.kill(-1, 9)\nprint('ESCAPED')",
    "the zygote killed": "os.kill(os.getppid(), 9)\nprint('ESCAPED')",
    "a set-user-id program": "os.execv('/usr/bin/su', ['su'])",
    "back to root": "os.setresuid(0, 0, 0)\nprint('ESCAPED')",
}

# ---- kernels

KERNELS = {
    "Dirty COW (CVE-2016-5195)": "print('ESCAPED', os.open('/proc/self/mem', os.O_RDWR))",
    "Dirty Pipe (CVE-2022-0847)": (
        "f = os.open('/usr/lib/python3.11/this.py', os.O_RDONLY)\nprint('ESCAPED', os.splice(f, 1, 1))"
    ),
    "packet sockets (CVE-2017-7308)": (
        "import socket\nprint('ESCAPED', socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3))"
    ),
    "nf_tables (CVE-2024-1086)": (
        "import socket\nprint('ESCAPED', socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12))"
    ),
    "vsock (CVE-2021-26708)": "import socket\nprint('ESCAPED', socket.socket(40, 1))",
    "the kernel's cryptography": (
        "import socket\nprint('ESCAPED', socket.socket(38, socket.SOCK_SEQPACKET))"
    ),
    "cgroup descriptors and pidfds": "print('ESCAPED', os.pidfd_open(1))",
    "timers in dozens (CVE-2025-38352)": (
        "import signal\nsignal.setitimer(signal.ITIMER_PROF, 1e-6)\nprint('ESCAPED')"
    ),
    "another scheduling class": (
        "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))\nprint('ESCAPED')"
    ),
}

ESCAPES = PYTHON | CONTAINERS | SANDBOXES | KERNELS
