# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd pool build` as root, in a folder of somebody else."""

from __future__ import annotations

from pathlib import Path

import pytest

from iosd_host.config.packages import PackagesError, build, install


def test_pip_is_not_taken_from_the_folder_that_we_are_called_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, ran = tmp_path / "here", tmp_path / "ran"
    here.mkdir()
    (here / "pip.py").write_text(f"open({str(ran)!r}, 'w')")
    monkeypatch.chdir(here)
    with pytest.raises(PackagesError, match="pip does not install it"):
        install(tmp_path / "lib", ["absent-package"], [], wheels=here)
    assert not ran.exists()


def test_a_build_that_fails_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(PackagesError, match="pip does not install it"):
        build("science", ["absent-package"], sets=tmp_path, wheels=tmp_path)
    assert not list(tmp_path.iterdir())
