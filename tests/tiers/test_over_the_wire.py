# SPDX-License-Identifier: GPL-2.0-or-later
"""Two roots below a tgtd: requests across the border over iSCSI, and the options of `osd target serve`."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from pyosd.errors import OSDError
from tests.serving import Serving

HEAD = 2 << 20
SIZE = HEAD + (1 << 20) + 17


@pytest.mark.tgtd
def test_across_the_border() -> None:
    """With direct I/O, then without the SSD: what lies behind the head is still there."""
    folder = Path(tempfile.mkdtemp(prefix="iosd-test-"))  # tgtd's user can look into it
    folder.chmod(0o755)
    data, ssd = folder / "data", folder / "ssd"
    # The mark: whatever else the disk of the tests is full of.
    tiers = ("--ssd", str(ssd), "--head-high-water", "99", "--no-sandboxes")
    bytes_ = os.urandom(SIZE)
    try:
        with Serving(*tiers, "--io", "direct", data=data) as serving:
            session = serving.connect()
            obj = session.create(session.create_partition())
            session.write(obj, 0, bytes_)
            session.write(obj, HEAD - 7, bytes_[HEAD - 7 : HEAD + 7])
            assert session.read(obj, 0, SIZE + 1) == bytes_
            assert session.read(obj, HEAD - 1, 2) == bytes_[HEAD - 1 : HEAD + 1]
            session.close()
        shutil.rmtree(ssd)
        loss = ("--on-ssd-loss", "read-through")
        with Serving(*tiers, *loss, data=data) as serving:
            session = serving.connect()
            assert session.read(obj, HEAD, SIZE) == bytes_[HEAD:]
            with pytest.raises(OSDError) as failed:
                session.read(obj, HEAD - 9, 100)
            assert failed.value.sense_key == 4
            assert f"from byte {HEAD - 9} of the object on" in str(failed.value)
            session.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
