# SPDX-License-Identifier: GPL-2.0-or-later
"""The engine `java` against hostile functions: each ends as a failure that names its cause, within the
limits of the job, and the next job runs."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from objects import USER_OBJECT, MemoryObjects
from proxy import (
    FAILING,
    FINISH_ENDED,
    FINISH_EXCEPTION,
    FINISH_EXIT,
    FINISH_MEMORY,
    FINISH_OK,
    LIMITS,
    LIMITS_SET,
    ROOT,
    SERVING,
    Daemon,
    Limits,
    Outcome,
    Sandbox,
)

from tests.java_kit import compiled, java_home, packed

MIB = 1 << 20
FINISH_BAD_CODE, FINISH_CODE_LIMIT, FINISH_THREADS = 5, 6, 7
CONTROL_END = 2
POOLS = "name=default;max=1\nname=j;max=2;engine=java\n"
UNSAFE = """Field field = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
    field.setAccessible(true);
    sun.misc.Unsafe unsafe = (sun.misc.Unsafe) field.get(null);"""

# What a function may try outside its memory; each must throw one of REFUSALS.
DENIED = {
    "Exec": 'Runtime.getRuntime().exec("/bin/true"); return null;',
    "Builder": 'new ProcessBuilder("/usr/bin/id").start(); return null;',
    "Tcp": 'new Socket("127.0.0.1", 3260); return null;',
    "Listen": "new ServerSocket(0); return null;",
    "Udp": "new DatagramSocket(); return null;",
    "Channel": "java.nio.channels.SocketChannel.open(); return null;",
    "Unix": "java.nio.channels.SocketChannel.open(StandardProtocolFamily.UNIX); return null;",
    "Pipe": "java.nio.channels.Pipe.open(); return null;",
    "Users": 'return Files.readAllBytes(Path.of("/etc/passwd"));',
    "Up": 'return new FileInputStream("/usr/lib/jvm/../../../etc/passwd").readAllBytes();',
    "Proc": 'return Files.readAllBytes(Path.of("/proc/self/maps"));',
    "Root": 'Files.list(Path.of("/")); return null;',
    "WriteRoot": 'new FileOutputStream("/x"); return null;',
    "WriteJava": 'new FileOutputStream(System.getProperty("java.home") + "/x"); return null;',
    "Link": 'Files.createSymbolicLink(Path.of("x"), Path.of("/etc")); return null;',
    "OtherScratch": 'new FileOutputStream("../x"); return null;',
    "OwnLibrary": """Path own = Path.of("x.so").toAbsolutePath();
        Files.copy(Path.of(System.getProperty("java.home"), "lib", "libprefs.so"), own);
        System.load(own.toString()); return null;""",
    "Library": 'System.loadLibrary("prefs"); return null;',
    "Library2": 'System.load(System.getProperty("java.home") + "/lib/libawt.so"); return null;',
    "JavaLang": """Field field = String.class.getDeclaredField("value");
        field.setAccessible(true); return null;""",
    "ClassInIosd": """Class<?> found = Class.forName("iosd.Evil"); return null;""",
}
REFUSALS = (
    "IOException|FileNotFoundException|SocketException|AccessDeniedException|NoSuchFileException|"
    "FileSystemException|UnsatisfiedLinkError|InaccessibleObjectException|ClassNotFoundException"
)

FAILING_CALLS = {
    "Throws": ('throw new IllegalStateException("one\\ntwo");', "IllegalStateException: one$"),
    "Cause": ('throw new Exception("outer", new IOException("inner"));', "Exception: outer$"),
    "Deep": ("return call(args);", "StackOverflowError"),
    "Index": ("byte[] none = {}; return new byte[] {none[1]};", "ArrayIndexOutOfBounds"),
    "Own": (
        """throw new RuntimeException() {
            public String toString() { throw new Error("again"); } };""",
        "no memory for a report",
    ),
    "Cast": ("Object o = args; return ((String) o).getBytes();", "ClassCastException"),
    "Native": ("return Missing.call();", "UnsatisfiedLinkError"),
    "Huge": ("return new byte[-1];", "NegativeArraySizeException"),
    "Death": ("throw new ThreadDeath();", "ThreadDeath"),
    "Crash": (f"{UNSAFE} unsafe.putAddress(8, 1); return null;", "virtual machine has crashed"),
    "Jump": (
        f"""{UNSAFE} Object[] hold = {{ new Object() }};
        unsafe.putLong(hold, (long) unsafe.arrayBaseOffset(Object[].class), 0x1234567812345678L);
        System.gc(); return null;""",
        "virtual machine has crashed",
    ),
    "Before": ("Osd.read(1, 1, 0, new byte[4], -1, 2); return null;", "IndexOutOfBounds"),
    "Beyond": ("Osd.read(1, 1, 0, new byte[4], 3, 2); return null;", "IndexOutOfBounds"),
    "Wrap": (
        "Osd.read(1, 1, 0, new byte[4], Integer.MAX_VALUE, Integer.MAX_VALUE); return null;",
        "IndexOutOfBounds",
    ),
    "Less": ("Osd.write(1, 1, 0, new byte[4], 0, -1); return null;", "IndexOutOfBounds"),
    "NoArray": ("Osd.read(1, 1, 0, null, 0, 0); return null;", "NullPointer"),
    "NoWrite": ("Osd.write(1, 1, 0, null, 0, 0); return null;", "NullPointer"),
    "NoValue": ("Osd.setattr(1, 1, 1, 1, null); return null;", "NullPointer"),
    "NoResult": ("Osd.result(null); return null;", "NullPointer"),
    "LongValue": ("Osd.setattr(1, 1, 1, 1, new byte[65535]); return null;", "65534 bytes"),
    "Progress": ('Osd.progress(1001, ""); return null;', "progress is 0 to 1000"),
    "LongText": ('Osd.progress(1, "x".repeat(257)); return null;', "progress is 0 to 1000"),
    "Absent": ("Osd.length(1, 1); return null;", "OsdException: no object"),
}
NO_MEMORY = {
    "Array": "return new byte[Integer.MAX_VALUE];",
    "Hoard": "List<byte[]> all = new ArrayList<>(); while (true) all.add(new byte[1 << 20]);",
    "Small": "List<Object> all = new LinkedList<>(); while (true) all.add(new Object());",
    "Direct": """List<ByteBuffer> all = new ArrayList<>();
        while (true) all.add(ByteBuffer.allocateDirect(1 << 20));""",
    "Raw": f"{UNSAFE} while (true) unsafe.setMemory(unsafe.allocateMemory(1 << 20), 1 << 20, (byte) 1);",
    "Classes": """List<Object> all = new ArrayList<>();
        while (true) all.add(java.lang.reflect.Proxy.newProxyInstance(new ClassLoader() {},
            new Class<?>[] {Runnable.class}, (p, m, a) -> null));""",
}
OTHERS = {
    "Echo": "return args;",
    "Nothing": "return null;",
    "Twice": "Osd.result(args); return args;",
    "Calls": """byte[] read = Osd.read(1, 2, 1, 100);
        Osd.write(1, 2, 6, read); Osd.setattr(1, 2, 0x10000, 3, "v".getBytes());
        Osd.progress(500, "half"); System.out.print("out"); System.err.print("err"); Osd.log("!");
        Osd.json(Osd.length(1, 2) + new String(Osd.getattr(1, 2, 0x10000, 3))
            + Osd.getattr(1, 2, 0x10000, 9).length + Osd.zonePartition() + Osd.zoneObject()
            + Osd.zoneType() + new String(Osd.args()) + Osd.read(1, 2, 99, args, 0, 1));
        return null;""",
    "Long": """byte[] all = new byte[3_000_001]; new Random(1).nextBytes(all);
        Osd.write(1, 2, 5, all);
        return Arrays.equals(all, Osd.read(1, 2, 5, 4_000_000)) ? args : null;""",
    "Code": 'try { Osd.length(1, 9); } catch (OsdException e) { Osd.json("" + e.code); } return null;',
    "Exit": "System.exit(args.length == 0 ? 0 : args[0]); return null;",
    "Halt": "Runtime.getRuntime().halt(args[0]); return null;",
    "ExitBeside": """new Thread(() -> System.exit(4)).start();
        Thread.sleep(1 << 30); return null;""",
    "Left": """for (int i = 0; i < 4; i++) new Thread(() -> { while (true) Osd.args(); }).start();
        return args;""",
    "Bomb": "while (true) new Thread(() -> { while (true) Thread.onSpinWait(); }).start();",
    "Pool": """java.util.concurrent.atomic.AtomicLong sum = new java.util.concurrent.atomic.AtomicLong();
        java.util.stream.LongStream.range(0, 1000).parallel().forEach(sum::addAndGet);
        Osd.json("" + sum); return null;""",
    "Spin": 'System.out.println("on"); while (true) Thread.onSpinWait();',
    "Clean": """try { System.out.println("on"); Thread.sleep(1 << 30); }
        finally { System.out.println("cleaned"); } return null;""",
    "Flood": 'while (true) System.out.println("on".repeat(1000));',
    "Stay": """while (true) try {
            while (true) try {
                System.out.println("on");
                while (true) Osd.args();
            } catch (ThreadDeath e) { continue; }
        } catch (ThreadDeath e) { continue; }""",  # it may come in a handler, too
    "Where": """Osd.json(new File("").getAbsolutePath() + " " + System.getenv() + " "
        + new File(".").list().length + " " + ProcessHandle.current().pid()); return null;""",
    "Scratch": """Files.writeString(Path.of("a"), "text");
        File made = File.createTempFile("bcd", "e");
        return (Files.readString(Path.of("a")) + made.delete()).getBytes();""",
    "Crypto": """java.security.SecureRandom random = new java.security.SecureRandom();
        byte[] bytes = new byte[16]; random.nextBytes(bytes);
        javax.crypto.Cipher aes = javax.crypto.Cipher.getInstance("AES/GCM/NoPadding");
        aes.init(1, new javax.crypto.spec.SecretKeySpec(bytes, "AES"));
        return new byte[] {(byte) aes.doFinal(args).length};""",
    "Forge": """Method finish = Class.forName("iosd.Host").getDeclaredMethod(
            "finish", int.class, byte[].class, byte[].class);
        finish.setAccessible(true); finish.invoke(null, 99, args, args); return null;""",
    "Abstract": "class Abstract implements Function { private Abstract() {}"
    " public byte[] call(byte[] args) { return args; } }",
    "Alien": "class Alien { public byte[] call(byte[] args) { return args; } }",
    "Static": "class Static implements Function { static int x = 1 / 0;"
    " public byte[] call(byte[] args) { return args; } }",
    "Maker": 'class Maker implements Function { public Maker() { throw new Error("made"); }'
    " public byte[] call(byte[] args) { return args; } }",
    "Missing": "class Missing { static native byte[] call(); }",
}
BODIES = DENIED | {name: body for name, (body, _) in FAILING_CALLS.items()} | NO_MEMORY | OTHERS


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return compiled(tmp_path_factory.mktemp("classes"), BODIES)


@pytest.fixture(scope="module")
def jar(classes: dict[str, bytes]) -> bytes:
    return packed(classes, "Echo")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    java_home()
    folder = tmp_path_factory.mktemp("java")
    (folder / "pools").write_text(POOLS)
    running = Daemon(folder, "--pools-file", str(folder / "pools"))
    news = running.wait_for_pool("j", SERVING, FAILING)
    assert news.state == SERVING, news.why
    yield running
    assert running.stop() == 0


def run(daemon: Daemon, code: bytes, limits: Limits | None = None, **job: object) -> Outcome:
    return daemon.run(code, limits, "j", in_memfd=len(code) > 30_000, **job)


def fails(out: Outcome, kind: int, cause: str) -> None:
    assert out.kind == kind, out
    assert re.search(cause, out.line), out.line
    assert out.traceback.startswith(out.line[:20])
    assert out.exit_code == 1


def test_arguments_and_results(daemon: Daemon, jar: bytes) -> None:
    for args in (b"", b"x", bytes(range(256)) * 256):
        out = run(daemon, jar, args=args)
        assert (out.kind, out.result) == (FINISH_OK, args), out
    assert run(daemon, jar, method="Twice", args=b"ab").result == b"abab"
    out = run(daemon, jar, method="Nothing")
    assert (out.kind, out.result_encoding, out.line) == (FINISH_OK, None, "")


def objects() -> MemoryObjects:
    store = MemoryObjects()
    store.make((1, 2), USER_OBJECT)
    store.things[1, 2].data[:] = b"abcdef"
    return store


def run_on(daemon: Daemon, store: MemoryObjects, code: bytes, **job: object) -> Outcome:
    sandbox = daemon.spawn(pool="j")
    sandbox.wait_ready()
    sandbox.start(code, in_memfd=len(code) > 30_000, **job)  # type: ignore[arg-type]
    out = sandbox.finish(store)
    sandbox.close()
    return out


def test_every_call(daemon: Daemon, jar: bytes) -> None:
    store = objects()
    out = run_on(daemon, store, jar, method="Calls", args=b"A", zone=(0x80, 1, 2))
    assert out.kind == FINISH_OK, out
    assert bytes(out.result) == b"11v012128A0"
    assert out.result_encoding == 1
    assert bytes(store.things[1, 2].data) == b"abcdefbcdef"
    assert (out.stdout, out.stderr) == (b"out!\n", b"err")
    assert out.progress == [(500, "half")]
    out = run_on(daemon, objects(), jar, method="Code")
    assert bytes(out.result) == b"1", out


def test_long_reads_and_writes(daemon: Daemon, jar: bytes) -> None:
    store = objects()
    out = run_on(daemon, store, jar, method="Long", args=b"same")
    assert (out.kind, out.result) == (FINISH_OK, b"same"), out
    assert len(store.things[1, 2].data) == 3_000_006


@pytest.mark.parametrize("name", DENIED)
def test_denied(daemon: Daemon, jar: bytes, name: str) -> None:
    fails(run(daemon, jar, method=name), FINISH_EXCEPTION, REFUSALS)


@pytest.mark.parametrize("name", FAILING_CALLS)
def test_an_exception_is_reported(daemon: Daemon, jar: bytes, name: str) -> None:
    fails(run(daemon, jar, method=name), FINISH_EXCEPTION, FAILING_CALLS[name][1])


def test_the_report_has_the_trace(daemon: Daemon, jar: bytes) -> None:
    out = run(daemon, jar, method="Cause")
    assert re.search(r"at Cause.call\(Cause.java:1\)", out.traceback), out.traceback
    assert "Caused by: java.io.IOException: inner" in out.traceback


@pytest.mark.parametrize("name", NO_MEMORY)
def test_memory_is_limited(daemon: Daemon, jar: bytes, name: str) -> None:
    out = run(daemon, jar, method=name)
    assert out.kind == FINISH_MEMORY or (out.status and out.status.out_of_memory), out


@pytest.mark.parametrize("mib", [160, 600])
def test_the_heap_follows_the_limit_of_the_sandbox(daemon: Daemon, jar: bytes, mib: int) -> None:
    out = run(daemon, jar, Limits(memory_bytes=mib * MIB), method="Hoard")
    assert out.kind == FINISH_MEMORY, out
    assert out.status and out.status.peak_bytes < mib * MIB


def test_a_job_with_less_memory_than_its_sandbox(daemon: Daemon, jar: bytes) -> None:
    sandbox = daemon.spawn(pool="j")
    sandbox.wait_ready()
    daemon.send(LIMITS, sandbox.id, Limits(memory_bytes=128 * MIB).encode())
    daemon.wait_for(LIMITS_SET, sandbox.id)
    sandbox.start(jar, in_memfd=True, method="Hoard")
    out = sandbox.finish()
    sandbox.close()
    assert out.kind == FINISH_MEMORY or (out.status and out.status.out_of_memory), out


def test_too_little_memory_for_java(daemon: Daemon) -> None:
    """The process ends at once, perhaps before the daemon has learned its number."""
    causes = "Java in less than 128 MiB|ended before it was ready"
    with (
        pytest.raises((RuntimeError, PermissionError), match=causes),
        closing(daemon.spawn(Limits(memory_bytes=64 * MIB), "j")) as sandbox,
    ):
        sandbox.wait_ready()


@pytest.mark.parametrize(
    ("name", "args", "kind", "code"),
    [
        ("Exit", b"", FINISH_OK, 0),
        ("Exit", b"\3", FINISH_EXIT, 3),
        ("Exit", b"\xff", FINISH_EXIT, 255),
        ("Halt", b"\5", FINISH_EXIT, 5),
        ("ExitBeside", b"", FINISH_EXIT, 4),
    ],
)
def test_exit(daemon: Daemon, jar: bytes, name: str, args: bytes, kind: int, code: int) -> None:
    out = run(daemon, jar, Limits(processes=4), method=name, args=args)
    assert (out.kind, out.exit_code) == (kind, code), out


def test_threads_that_are_left_end_with_the_call(daemon: Daemon, jar: bytes) -> None:
    out = run(daemon, jar, Limits(processes=8), method="Left", args=b"done")
    assert (out.kind, out.result) == (FINISH_OK, b"done"), out


def test_threads_are_limited(daemon: Daemon, jar: bytes) -> None:
    out = run(daemon, jar, method="Bomb")
    fails(out, FINISH_THREADS, "unable to create native thread")


def test_streams_may_be_parallel(daemon: Daemon, jar: bytes) -> None:
    assert bytes(run(daemon, jar, method="Pool").result) == b"499500"


@pytest.mark.parametrize(
    ("name", "kind", "cause"),
    [
        ("None", FINISH_BAD_CODE, "has no class None"),
        ("Abstract", FINISH_BAD_CODE, "no public class with a public constructor"),
        ("Alien", FINISH_BAD_CODE, "does not implement iosd.Function"),
        ("java.lang.String", FINISH_BAD_CODE, "does not implement"),
        ("iosd.Host", FINISH_BAD_CODE, "does not implement"),
        ("iosd.Function", FINISH_BAD_CODE, "does not implement"),
        ("\0", FINISH_BAD_CODE, "has no class"),
        ("../Echo", FINISH_BAD_CODE, "has no class|NoClassDefFound"),
        ("Static", FINISH_EXCEPTION, "ExceptionInInitializerError"),
        ("Maker", FINISH_EXCEPTION, "Error: made"),
    ],
)
def test_entry_points(daemon: Daemon, jar: bytes, name: str, kind: int, cause: str) -> None:
    fails(run(daemon, jar, method=name), kind, cause)


def test_code_that_is_no_jar(daemon: Daemon, classes: dict[str, bytes]) -> None:
    echo = classes["Echo.class"]
    whole = packed({"Echo.class": echo}, "Echo")
    cases = [
        (b"x", "no JAR"),
        (b"print('python')", "no JAR"),
        (whole[:100], "cannot be read|no JAR|no class|no Main"),
        (whole.replace(b"PK", b"PX"), "no JAR"),
        (packed({"Echo.class": echo}), "names no Main-Class"),
        (packed({"META-INF/MANIFEST.MF": b"\0: x\n", "Echo.class": echo}), "manifest"),
        (packed({"Echo.class": b""}, "Echo"), "ClassFormatError"),
        (packed({"Echo.class": echo[:100]}, "Echo"), "ClassFormatError"),
        (
            packed({"Echo.class": echo[:6] + b"\0\x45" + echo[8:]}, "Echo"),
            "UnsupportedClassVersion",
        ),
        (packed({"Echo.class": classes["Alien.class"]}, "Echo"), "NoClassDefFoundError"),
        (packed({"iosd/Osd.class": echo, "Echo.class": echo}, "Echo"), "class of the package iosd"),
        (packed({"java/lang/Evil.class": echo}, "java.lang.Evil"), "SecurityException|no class"),
    ]
    for code, cause in cases:
        fails(run(daemon, code), FINISH_BAD_CODE, cause)
    bomb = packed({"Echo.class": echo, "bomb": bytes(17 * MIB)}, "Echo")
    fails(run(daemon, bomb), FINISH_CODE_LIMIT, "more than 16 MiB")
    out = run(daemon, whole, form=1)
    assert (out.kind, "not packed" in out.line) == (FINISH_BAD_CODE, True)


@pytest.mark.parametrize("cut", range(1, 10))
def test_a_truncated_jar(daemon: Daemon, classes: dict[str, bytes], cut: int) -> None:
    whole = packed({"Echo.class": classes["Echo.class"]}, "Echo")
    out = run(daemon, whole[: len(whole) * cut // 10], args=b"x")
    assert out.kind == FINISH_BAD_CODE or (out.kind, out.result) == (FINISH_OK, b"x"), out


def test_twisted_byte_code_is_refused(daemon: Daemon, classes: dict[str, bytes]) -> None:
    """A return of an int in place of a reference: the verifier finds it before it runs."""
    echo = classes["Echo.class"]
    at = echo.rindex(b"\x2b\xb0")  # aload_1, areturn
    twisted = echo[:at] + b"\x04\xb0" + echo[at + 2 :]
    out = run(daemon, packed({"Echo.class": twisted}, "Echo"))
    fails(out, FINISH_BAD_CODE, "VerifyError")


def test_a_loop_ends_with_its_processor_time(daemon: Daemon, jar: bytes) -> None:
    sandbox = daemon.spawn(pool="j")
    sandbox.wait_ready()
    daemon.send(LIMITS, sandbox.id, Limits(cpu_seconds=1).encode())
    daemon.wait_for(LIMITS_SET, sandbox.id)
    sandbox.start(jar, in_memfd=True, method="Spin")
    out = sandbox.finish()
    sandbox.close()
    assert out.kind is None
    assert out.status
    assert out.status.code == -signal.SIGKILL
    assert run(daemon, jar).kind == FINISH_OK


def start(daemon: Daemon, code: bytes, method: str) -> Sandbox:
    sandbox = daemon.spawn(pool="j")
    sandbox.wait_ready()
    sandbox.start(code, in_memfd=True, method=method)
    return sandbox


@pytest.mark.parametrize("name", ["Spin", "Clean", "Flood"])
def test_a_call_ends_when_told(daemon: Daemon, jar: bytes, name: str) -> None:
    """A loop, a sleep, and a write to a full pipe: finally blocks run, and there is a report."""
    sandbox = start(daemon, jar, name)
    sandbox.read_until(b"on")
    sandbox.control(CONTROL_END)
    out = sandbox.finish()
    sandbox.close()
    assert (out.kind, out.exit_code) == (FINISH_ENDED, 1), out
    assert "ThreadDeath" in out.line


def test_a_call_that_does_not_end_is_killed(daemon: Daemon, jar: bytes) -> None:
    sandbox = start(daemon, jar, "Stay")
    sandbox.read_until(b"on")
    sandbox.control(CONTROL_END)
    sandbox.kill()
    out = sandbox.finish()
    sandbox.close()
    assert out.kind is None and out.status and out.status.code == -signal.SIGKILL


def test_surroundings(daemon: Daemon, jar: bytes) -> None:
    out = run(daemon, jar, method="Where")
    where, rest = bytes(out.result).decode().split(" ", 1)
    assert where.startswith("/scratch/")
    assert "PATH=/nonexistent" in rest and rest.endswith("} 0 1"), rest
    out = run(daemon, jar, method="Scratch")
    assert bytes(out.result) == b"texttrue", out
    out = run(daemon, jar, method="Crypto", args=b"0123")
    assert bytes(out.result) == b"\x14", out


def test_every_thread_is_confined(daemon: Daemon) -> None:
    """The machine has its threads before the filter.  No memory but that of its code is executable and
    writable."""
    sandbox = daemon.spawn(pool="j")
    sandbox.wait_ready()
    tasks = [path.read_text() for path in Path(f"/proc/{sandbox.pid}/task").glob("*/status")]
    maps = Path(f"/proc/{sandbox.pid}/maps").read_text()
    sandbox.kill()
    sandbox.wait_exit()
    sandbox.close()
    users = set()
    for status in tasks:
        fields = dict(line.split(":\t", 1) for line in status.splitlines())
        assert (fields["Seccomp"], fields["NoNewPrivs"]) == ("2", "1")
        assert int(fields["CapEff"], 16) == int(fields["CapPrm"], 16) == 0
        users |= set(fields["Uid"].split())
    assert 8 < len(tasks) < 24
    assert len(users) == 1 and users != {"0"}
    both = re.findall(r"^(\w+)-(\w+) .wx", maps, re.MULTILINE)
    assert 0 < sum(int(end, 16) - int(begin, 16) for begin, end in both) <= 24 * MIB


def test_a_function_can_forge_its_own_end_alone(daemon: Daemon, jar: bytes) -> None:
    """The report of a function is its own word.  The next call is not affected."""
    out = run(daemon, jar, method="Forge", args=b"mine")
    assert out.line == "mine"
    assert run(daemon, jar, args=b"x").result == b"x"


def test_no_sandbox_runs_two_jobs(daemon: Daemon, jar: bytes) -> None:
    sandbox = start(daemon, jar, "Nothing")
    while (call := sandbox.next_call()) is not None:
        assert call[0] == 1
        sandbox.answer(a=1)  # another job would follow
    assert sandbox.wait_exit().code == 0
    sandbox.close()


def test_package_sets_are_refused(tmp_path: Path) -> None:
    (tmp_path / "pools").write_text(POOLS.replace("engine=java", "engine=java;preload=json"))
    running = Daemon(tmp_path, "--pools-file", str(tmp_path / "pools"))
    assert "no package sets" in running.wait_for_pool("j", FAILING).why
    running.stop()


def test_the_places_are_those_of_the_interface() -> None:
    """jni_api.h declares by hand what the header of Java declares."""
    native = (java_home() / "include" / "jni.h").read_text()
    ours = (ROOT / "sandbox" / "java" / "jni_api.h").read_text()
    for theirs_name, name in (
        ("JNINativeInterface_", "functions"),
        ("JNIInvokeInterface_", "vm_functions"),
    ):
        theirs = re.findall(
            r"void \*(reserved\d)|\(JNICALL \*(\w+)\)",
            native[native.index(f"struct {theirs_name} {{") :].split("\n};")[0],
        )
        places = {member: place for place, (_, member) in enumerate(theirs) if member}
        at = 0
        table = ours[ours.index(f"struct jni_{name} {{") :].split("\n};")[0]
        for gap, unused, member in re.findall(
            r"jni_unused \w+\[(\d+)\]|jni_unused (\w+);|\(\*(\w+)\)\(", table
        ):
            if member or unused:
                assert places[member or unused] == at, member or unused
            at += int(gap or 1)
        assert at > 5


def test_the_numbers_of_ends_are_those_of_the_frames() -> None:
    host = (ROOT / "sandbox" / "java" / "iosd" / "Host.java").read_text()
    frame = (ROOT / "target" / "wire" / "proxy_frame.h").read_text()
    kinds = re.findall(r"^\tOSD_FINISH_(\w+),", frame, re.MULTILINE)
    ours = re.findall(r"static final int ([A-Z_]+) = (\d);", host)
    assert ours and all(kinds[int(number)] == name for name, number in ours)
    api = (ROOT / "examples/functions/java/iosd/OsdException.java").read_text()
    codes = re.findall(r"^\tOSD_ANSWER_(\w+),", frame, re.MULTILINE)
    theirs = re.findall(r"static final int ([A-Z_]+) = (\d);", api)
    assert theirs and all(
        codes[int(number)] == {"STORAGE": "IO"}.get(name, name) for name, number in theirs
    )
