# SPDX-License-Identifier: GPL-2.0-or-later
"""A restored store, and a security manager whose keys are newer than the backup."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from pyosd.cli import main
from pyosd.cli.frame.codes import Exit
from tests.machine import unavailable
from tests.secmgr.test_targets import DATA, Place, X
from tests.serving import Serving, missing

pytestmark = pytest.mark.tgtd

OPTIONS = "--no-sandboxes", "--security", "capkey"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that tgtd's user can reach."""
    if why := missing():
        unavailable("tgtd", why)
    with tempfile.TemporaryDirectory(prefix="iosd-test-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_a_backup_of_before_a_new_master_key(folder: Path, tmp_path: Path) -> None:
    """The security manager keeps no former master key: nobody has the one that the store knows."""

    def osd(*words: object) -> None:
        done = CliRunner().invoke(main, ["target", *map(str, words)])
        assert done.exit_code == 0, done.output

    with Serving(*OPTIONS, data=folder / "store") as serving:
        place = Place(tmp_path, serving, "CAPKEY")
        try:
            osd("backup", "make", tmp_path / "backups", "--data", folder / "store")
            place.osd("key", "set-master")
        except BaseException:
            place.stop()
            raise
    try:
        osd("restore", tmp_path / "backups", "--data", folder / "lost")
        with Serving(*OPTIONS, data=folder / "lost") as place.serving:
            words = "key", "import", folder / "store.master-key", "--method", "CAPKEY"
            assert "has another master key" in place.osd(*words, code=Exit.WRONG_STATE).output
        osd("restore", tmp_path / "backups", "--data", folder / "again", "--new-keys")
        with Serving(*OPTIONS, data=folder / "again") as place.serving:
            place.import_key()
            assert place.alice("obj", "read", X).stdout_bytes == DATA
    finally:
        place.stop()
