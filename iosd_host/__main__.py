# SPDX-License-Identifier: GPL-2.0-or-later
"""``python -m iosd_host``: the resource manager, as the program iosd-manager runs it."""

import gc

from iosd_host.cli.iosd_manager import main

if __name__ == "__main__":
    gc.freeze()  # what was imported stays: no collection need look at it, not even the last one
    main(prog_name="iosd-manager")
