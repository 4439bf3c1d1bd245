# SPDX-License-Identifier: GPL-2.0-or-later
"""``make install`` puts a working ``osd`` into a prefix; ``make uninstall`` takes it away."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INSTALL = ROOT / "tools" / "install.sh"


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    done = subprocess.run(
        command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


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


@pytest.mark.slow
@pytest.mark.tgtd
@pytest.mark.sandbox
def test_install_works_and_uninstall_leaves_nothing(tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    run(INSTALL, "install", "", prefix, "/usr/bin/python3")
    osd = prefix / "bin" / "osd"
    # Away from the source tree, so that nothing is found there by accident.
    assert run(osd, "version", cwd=tmp_path).startswith("iosd ")
    assert '"layer": "module", "state": "ok"' in run(osd, "doctor", "-o", "json", cwd=tmp_path)
    assert (prefix / "share/bash-completion/completions/osd").read_text().startswith("_osd")
    for page in ("man1/osd.1", "man1/osd-exec.1", "man7/iosd-reasons.7"):
        assert (prefix / "share/man" / page).read_text().startswith(".TH ")
    assert "hello" in run("bash", "-euc", SERVE_AND_RUN, "bash", osd, cwd=tmp_path)
    run(INSTALL, "uninstall", "", prefix)
    assert not prefix.exists()


def test_uninstall_keeps_what_is_not_ours(tmp_path: Path) -> None:
    other = tmp_path / "prefix" / "bin" / "other"
    other.parent.mkdir(parents=True)
    other.touch()
    run(INSTALL, "uninstall", "", tmp_path / "prefix")
    assert other.exists()
