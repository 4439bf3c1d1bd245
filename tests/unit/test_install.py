# SPDX-License-Identifier: GPL-2.0-or-later
"""``make install`` puts a working ``osd`` and its units into a prefix; ``make uninstall`` removes them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INSTALL = ROOT / "tools" / "install.sh"
PYTHON = "/usr/bin/python3"


def run(*command: str | Path, cwd: Path = ROOT, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env=os.environ | (environment or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture
def top() -> Iterator[Path]:
    """A folder that other users can read, like /usr/local."""
    with tempfile.TemporaryDirectory(prefix="iosd-test-", dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def places(top: Path) -> dict[str, str]:
    """Folders of the installation other than the prefix."""
    return {"SYSCONFDIR": str(top / "etc"), "MODULEDIR": str(top / "tgt")}


# $1: the installed osd.  A store where tgtd's user can reach it, a script, its output.
SERVE_AND_RUN = """
store=$(mktemp -d /var/tmp/iosd-test.XXXXXX)
trap 'kill $serve; wait $serve; rm -r "$store"' EXIT
chmod 711 "$store"
mkfifo "$store/url"
"$1" target serve --data "$store/data" --portal 127.0.0.1:0 --isolation best >"$store/url" &
serve=$!
read -r IOSD_TARGET <"$store/url"
export IOSD_TARGET
echo 'print("hello")' | "$1" exec - --wait
"""


def check_units(prefix: Path) -> None:
    """systemd finds nothing wrong with them, nor with tgt.service as it is then; it needs no systemd."""
    folder = prefix / "lib/systemd/system"
    units = [path for path in folder.iterdir() if path.is_file()]
    assert len(units) == 5
    for unit in [*units, Path("/lib/systemd/system/tgt.service")]:
        done = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", unit],
            env=os.environ | {"SYSTEMD_UNIT_PATH": f"{folder}:"},
            capture_output=True,
            text=True,
        )
        ours = re.findall(rf"^.*(?:iosd|{re.escape(str(prefix))}).*$", done.stderr, re.MULTILINE)
        assert done.returncode == 0 and not ours, done.stderr


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A file where setuptools puts its intermediate files, as if another build were running."""
    folder = ROOT / "build" / "pip"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
        yield Path(file.name)
    Path(file.name).unlink(missing_ok=True)


def metadata() -> dict[str, int]:
    """The metadata files in the source tree, with the time of the last change."""
    files = [*ROOT.glob("*.egg-info/*"), *ROOT.glob("packaging/pip/*/*.egg-info/*")]
    return {str(file): file.stat().st_mtime_ns for file in files}


@pytest.mark.slow
@pytest.mark.tgtd
@pytest.mark.sandbox
def test_install_works_and_uninstall_leaves_nothing(top: Path, scratch: Path) -> None:
    prefix = top / "prefix"
    # make exports DESTDIR to all it calls; where it leads, nothing may be left.
    astray = {"DESTDIR": str(top / "astray")}
    before = metadata()
    run(INSTALL, "install", "", prefix, PYTHON, environment=places(top) | astray)
    assert scratch.exists() and metadata() == before, "another build of this tree may be running"
    osd = prefix / "bin" / "osd"
    # Away from the source tree, so that nothing is found there by accident.
    assert run(osd, "version", cwd=top).startswith("iosd ")
    assert list(prefix.glob("lib/iosd/pyosd/__pycache__/__init__.*.pyc")), (
        "each start would compile"
    )
    for name in ("click", "aiohttp", "cryptography"):
        assert (prefix / f"lib/iosd/{name}-{version(name)}.dist-info").exists(), "as in .venv"
    assert not list(top.rglob("bs_iosd_test*")), "the module for tests is no part of the product"
    assert '"layer": "module", "state": "ok"' in run(osd, "doctor", "-o", "json", cwd=top)
    assert (prefix / "share/bash-completion/completions/osd").read_text().startswith("_osd")
    assert "#compdef osd" in (prefix / "share/zsh/site-functions/_osd").read_text()
    assert "complete" in (prefix / "share/fish/vendor_completions.d/osd.fish").read_text()
    for page in ("man1/osd.1", "man1/osd-exec.1", "man5/iosd.toml.5", "man8/iosd-manager.8"):
        assert (prefix / "share/man" / page).read_text().count("\n.TH ") == 1
    for name in ("iosd.rules.yml", "iosd.json"):
        assert "iosd_head_errors_total" in (prefix / "share/iosd" / name).read_text()
    run(osd, "config", "check", top / "etc/iosd/iosd.toml", cwd=top)
    check_units(prefix)
    assert "hello" in run("bash", "-euc", SERVE_AND_RUN, "bash", osd, cwd=top)
    if os.geteuid() == 0:
        words = ("unshare", "-mn", sys.executable, "-m", "tests.packaging.units")
        assert "the units work" in run(*words, prefix)
    run(INSTALL, "uninstall", "", prefix, environment=places(top))
    assert not list(top.iterdir())


def test_uninstall_keeps_what_is_not_ours(top: Path) -> None:
    """Another program, and a configuration that somebody has changed."""
    prefix, config = top / "prefix", top / "etc/iosd/iosd.toml"
    other = prefix / "bin" / "other"
    other.parent.mkdir(parents=True)
    other.touch()
    ours = prefix / "lib/iosd"
    ours.mkdir(parents=True)
    for file in (config, ours / "iosd.toml"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("#[target]\n")
    (ours / "outside").touch()
    (ours / "folders").write_text(f"{config.parent.parent}\n{config.parent}\n{ours}\n")
    kept = shutil.copytree(ours, top / "kept")
    config.write_text("[target]\nworkers = 2\n")
    run(INSTALL, "uninstall", "", prefix, environment=places(top))
    assert other.exists() and not ours.exists()
    assert config.read_text() == "[target]\nworkers = 2\n"
    shutil.copytree(kept, ours)
    config.write_text("#[target]\n")
    run(INSTALL, "uninstall", "", prefix, environment=places(top))
    assert other.exists() and not (top / "etc").exists()
