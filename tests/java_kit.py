# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions in Java: those of examples/functions/java, and any others, compiled."""

from __future__ import annotations

import io
import subprocess
import zipfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tests.machine import unavailable

ROOT = Path(__file__).resolve().parents[1]
KIT = ROOT / "examples" / "functions" / "java"
HOMES = [Path(f"/usr/lib/jvm/java-17-openjdk-{machine}") for machine in ("amd64", "arm64")]
MANIFEST = "META-INF/MANIFEST.MF"
SHORT = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC")
"""A compiler of a few classes ends before its own code is worth optimizing."""


def java_home() -> Path:
    """The folder of Java 17 with its compiler.  Skips where there is none."""
    home = next((home for home in HOMES if home.exists()), HOMES[0])
    if not (home / "bin" / "javac").exists():
        unavailable("sandbox", "openjdk-17-jdk-headless is not installed")
    return home


def _run(*words: str | Path) -> None:
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@cache
def _build(folder: Path, home: Path) -> None:
    programs = [f"{name.upper()}={home}/bin/{name} {' '.join(SHORT)}" for name in ("javac", "jar")]
    _run("make", "-C", KIT, f"OUT={folder}", *programs)


def kit_jar(folder: Path, name: str) -> Path:
    """The compiled function of this name."""
    _build(folder, java_home())
    return folder / f"{name}.jar"


def compiled(folder: Path, bodies: Mapping[str, str]) -> dict[str, bytes]:
    """Class files by their names in a JAR.  bodies: of the method `call(byte[] args)`, by class; one that
    says what it declares itself begins with "class"."""
    sources = []
    for name, body in bodies.items():
        if not body.startswith("class"):
            call = f"public byte[] call(byte[] args) throws Exception {{ {body} }}"
            body = f"class {name} implements Function {{ {call} }}"
        path = folder / f"{name}.java"
        path.write_text(
            "import iosd.*; import java.io.*; import java.net.*; import java.nio.*;"
            "import java.nio.file.*; import java.util.*; import java.lang.reflect.*;"
            f"public {body}"
        )
        sources.append(path)
    interface = sorted((KIT / "iosd").glob("*.java"))
    classes = folder / "classes"
    javac = java_home() / "bin" / "javac"
    _run(javac, *SHORT, "--release", "17", "-nowarn", "-d", classes, *interface, *sources)
    return {
        str(path.relative_to(classes)): path.read_bytes()
        for path in classes.rglob("*.class")
        if path.parent.name != "iosd"
    }


def packed(entries: Mapping[str, bytes], main: str | None = None) -> bytes:
    """A JAR with these entries, and a manifest if it has a main class."""
    text = f"Manifest-Version: 1.0\nMain-Class: {main}\n\n".encode()
    whole = ({MANIFEST: text} if main else {}) | dict(entries)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as jar:
        for name, data in whole.items():
            jar.writestr(name, data)
    return made.getvalue()
