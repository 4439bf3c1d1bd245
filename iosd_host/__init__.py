# SPDX-License-Identifier: GPL-2.0-or-later
"""The processes of a target's host other than tgtd, and the tools of its administrator.

serve/ supervises tgtd and iosd-sandboxd.  manager/ is the resource manager; policy/ has its
decisions, control/ its connection to a target, http/ its metrics and console.  store_tools/ check,
repair and back up a store.  config/ reads the configuration, cli/ has the commands, common/ serves
all of them.  README.md has the order of the folders.
"""
