# SPDX-License-Identifier: GPL-2.0-or-later
"""The client of a security manager: requests, credentials, names of rights and roles.

client.py asks.  capabilities.py decodes the credentials that it gets.  The server is the package
iosd_secmgr; docs/secmgr.md is the manual.
"""
