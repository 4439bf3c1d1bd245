# SPDX-License-Identifier: GPL-2.0-or-later
"""A file system of a target: FUSE over its names and objects (docs/howto/mount.md).

The kernel's protocol is spoken here, without a library: an event loop reads requests from /dev/fuse and
carries the commands of many of them at the same time.
"""
