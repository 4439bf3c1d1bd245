# SPDX-License-Identifier: GPL-2.0-or-later
"""The security manager: the rules of access, the credentials it issues, and the keys of targets.

A request passes http/ (TLS, login, rate limits), methods/ (one row a method), access/ (the decision by
rules) and keys/ (the key that signs the credential).  records/ keeps all of it in a database.  process.py
puts these together.  Clients use pyosd.secmgr.  docs/secmgr.md is the manual.
"""
