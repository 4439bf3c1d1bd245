# SPDX-License-Identifier: GPL-2.0-or-later
"""target/shim/tgt_abi.h against tgt's own headers: every offset and size it pins.

tgt installs no headers.  `make test` unpacks the distribution's source package into build/tgt-source, and
`make tgtd` leaves the patched headers in build/tgtd; IOSD_TGT_SOURCE names another one (the folder
that holds usr/tgtd.h).
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEADER = ROOT / "target" / "shim" / "tgt_abi.h"
THEIRS = {
    "tgt_vpd": "vpd",
    "tgt_lu_attributes": "lu_phy_attr",
    "tgt_backing_store": "backingstore_template",
    "tgt_lu": "scsi_lu",
    "tgt_data_buffer": "scsi_data_buffer",
    "tgt_cmd": "scsi_cmd",
    "tgt_text": "concat_buf",
    "tgt_peer": "it_nexus_peer",
}
MEMBERS = {
    ("tgt_vpd", "update"): "vpd_update",
    ("tgt_lu", "config"): "dev_type_template.lu_config",
    ("tgt_backing_store", "siblings"): "backingstore_siblings",
}


def _tgt_headers(folder: str) -> Path:
    named = os.environ.get("IOSD_TGT_SOURCE")
    place = Path(named) if named else ROOT / "build" / folder
    if (place / "usr" / "tgtd.h").exists():
        return place / "usr"
    pytest.skip("no tgt source: set IOSD_TGT_SOURCE to an unpacked tgt source package")


OURS = {"tgt_peer"}  # structures that our patches add: not in a stock tgtd


def _asserts(*, stock: bool) -> list[str]:
    text = HEADER.read_text(encoding="utf-8")
    pins = re.findall(r"^PIN\((\w+), (\w+), (\d+)\);", text, re.MULTILINE)
    sizes = re.findall(r"sizeof\(struct (\w+)\) == (\d+)", text)
    shown = re.search(r"TGT_SHOW_CONNECTIONS (\d+)", text)
    assert len(pins) > 30 and shown
    assert len(sizes) >= 5
    if stock:
        sizes = [(struct, size) for struct, size in sizes if struct not in OURS]
    return (
        [
            f"_Static_assert(__builtin_offsetof(struct {THEIRS[struct]}, "
            f'{MEMBERS.get((struct, member), member)}) == {offset}, "{struct}.{member}");'
            for struct, member, offset in pins
        ]
        + [
            f'_Static_assert(sizeof(struct {THEIRS[struct]}) == {size}, "{struct}");'
            for struct, size in sizes
        ]
        + [f"_Static_assert(MODE_CONNECTION == {shown[1]}, {chr(34)}mode{chr(34)});"]
    )


@pytest.mark.parametrize("folder", ["tgt-source", "tgtd"], ids=["stock", "hardened"])
def test_layout_is_tgts(tmp_path: Path, folder: str) -> None:
    headers = _tgt_headers(folder)
    includes = ["<errno.h>", "<stddef.h>", "<stdint.h>", "<stdio.h>", "<stdlib.h>", "<string.h>"]
    includes += ["<inttypes.h>", "<limits.h>", "<sys/epoll.h>", '"list.h"', '"tgtd.h"', '"util.h"']
    includes += ['"tgtadm.h"']
    source = tmp_path / "layout.c"
    source.write_text(
        "".join(f"#include {name}\n" for name in includes)
        + "\n".join(_asserts(stock=folder == "tgt-source"))
    )
    done = subprocess.run(
        ["cc", "-D_GNU_SOURCE", f"-I{headers}", "-fsyntax-only", source],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
