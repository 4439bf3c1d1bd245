# SPDX-License-Identifier: GPL-2.0-or-later
"""The security manager: who may do what, the credentials that say so, and the keys of targets.

A request goes down this list: client.py (whoever asks) and web.py (TLS, who it is, limits),
service.py (the methods), rules.py (may they), capabilities.py (the credential), keys.py (with which
key). Below these are store.py and keystore.py (records), audit.py (what happened), database.py,
sealing.py. docs/secmgr.md is the manual.
"""
