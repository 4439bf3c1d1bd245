# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd pool build` as root, in a folder of somebody else."""

from __future__ import annotations

from pathlib import Path

import pytest

from iosd_host.config.packages import PackagesError, PackageSet, build, install, seal


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


@pytest.mark.parametrize("damage", ["changed", "missing", "writable", "none"])
def test_a_damaged_set_is_replaced_by_the_same_one(tmp_path: Path, damage: str) -> None:
    """The same packages have the same id: the damaged folder stayed, and building again was the remedy.

    A whole one stays, for sandboxes import from it.
    """

    def made() -> PackageSet:
        work = tmp_path / "work"
        (work / "lib").mkdir(parents=True)
        (work / "lib" / "tool.py").write_text("ANSWER = 42\n")
        return seal("tools", work, tmp_path / "tools", {"tool"})

    (tmp_path / "tools").mkdir()
    folder = made().folder
    before, file = folder.stat().st_ino, folder / "lib" / "tool.py"
    if damage == "changed":
        file.write_text("ANSWER = 43\n")
    elif damage == "missing":
        file.unlink()
    elif damage == "writable":
        file.chmod(0o666)
    assert made().folder == folder
    assert (folder.stat().st_ino == before) is (damage == "none")
    assert file.read_text() == "ANSWER = 42\n" and file.stat().st_mode & 0o777 == 0o644
    assert sorted(each.name for each in folder.parent.iterdir()) == ["current", folder.name]
