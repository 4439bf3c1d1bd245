# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian packages that are purged, in a folder: a user goes when nothing is left that belongs to it."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

DEBIAN = Path(__file__).resolve().parents[2] / "packaging" / "debian"


class Host:
    """A folder with what the packages leave when they are removed.  removed: users that were."""

    def __init__(self, root: Path, config: str = "[target]\n# data = '/var/lib/iosd'\n") -> None:
        self.root = root
        for name in ("var/lib/iosd", "var/lib/iosd-manager", "etc/iosd", "bin", "run"):
            root.joinpath(name).mkdir(parents=True)
        self.config = root / "etc/iosd/iosd.toml"
        self.config.write_text(config)
        self.log = root / "log"
        for name in ("deluser", "delgroup"):
            tool = root / "bin" / name
            tool.write_text(f'#!/bin/sh\nfor name; do :; done\necho {name} "$name" >>{self.log}\n')
            tool.chmod(0o755)

    def run(self, package: str, action: str) -> None:
        text = (DEBIAN / f"{package}.postrm").read_text()
        text = re.sub(r"(?<!\S)/(?=(var/lib|etc|run)/)|(?<==)/(?=etc/)", f"{self.root}/", text)
        path = f"{self.root}/bin:{os.environ['PATH']}"
        command = ["sh", "-c", text, package, action]
        subprocess.run(command, check=True, env={"PATH": path}, capture_output=True)

    def purge(self, *packages: str) -> set[str]:
        """As dpkg does, which removes the configuration before the script is told to purge."""
        for each in packages:
            self.run(each, "remove")
        for each in packages:
            if each == "iosd-manager":
                self.config.unlink()
            self.run(each, "purge")
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return {line.partition(" ")[2] for line in lines if line.startswith("deluser")}


@pytest.mark.parametrize("order", [1, -1])
def test_users_go_with_all_that_they_own(tmp_path: Path, order: int) -> None:
    host = Host(tmp_path)
    assert host.purge(*("iosd-target", "iosd-manager")[::order]) == {"iosd", "iosd-manager"}
    assert not any(tmp_path.joinpath(name).exists() for name in ("var/lib/iosd", "etc/iosd"))


def test_the_owner_of_a_store_stays(tmp_path: Path) -> None:
    """Otherwise the next user of the host would own it."""
    host = Host(tmp_path)
    host.run("iosd-target", "remove")
    assert host.purge("iosd-manager") == {"iosd-manager"}
    assert tmp_path.joinpath("var/lib/iosd").exists()


@pytest.mark.parametrize("key", ["data", "ssd", "state"])
@pytest.mark.parametrize("order", [1, -1])
def test_the_owners_of_folders_elsewhere_stay(tmp_path: Path, key: str, order: int) -> None:
    host = Host(tmp_path, f"[target]\n{key} = '/srv/iosd'\n")
    assert host.purge(*("iosd-target", "iosd-manager")[::order]) == set()
