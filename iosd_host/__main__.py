# SPDX-License-Identifier: GPL-2.0-or-later
"""``python -m iosd_host``: the resource manager, as the program iosd-manager runs it."""

from iosd_host.cli.iosd_manager import main

if __name__ == "__main__":
    main(prog_name="iosd-manager")
