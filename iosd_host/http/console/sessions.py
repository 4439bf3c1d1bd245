# SPDX-License-Identifier: GPL-2.0-or-later
"""Logins of the console: tokens in a file, sessions in memory.

The file has a line `NAME TOKEN` for each user; only the manager can read it.  A
session is a random word in a cookie, another one that each change must repeat (CSRF), and an end.  Pure
except for the file; time is an argument.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

from iosd_host.common.whole_file import write_whole

__all__ = ["Session", "Sessions", "TokenError", "make_tokens", "read_tokens"]

IDLE_S = 3600.0
MOST_S = 12 * 3600.0
SESSIONS_MOST = 64
TOKEN_LEAST = 16  # characters
FILE_MOST = 65536
WRONG_MOST = 5  # tokens of one user or address in
WRONG_S = 10.0
WRONG_WHO_MOST = 256  # users and addresses that are remembered
CROWD_MOST = 20  # wrong tokens of everybody together in WRONG_S: from then on each login waits for
CROWD_WAIT_S = 0.5
NAME = re.compile(r"[A-Za-z0-9_.@-]{1,64}")


class TokenError(Exception):
    """Nobody can log in; the text says why."""


def make_tokens(path: Path) -> None:
    """Make the file with a token for `admin`, unless it is there.  Raises: TokenError."""
    if path.exists():
        return
    try:
        write_whole(path, f"admin {secrets.token_urlsafe(24)}\n".encode())
    except OSError as error:
        raise TokenError(f"cannot make {path}: {error.strerror}") from None


def read_tokens(path: Path) -> dict[str, bytes]:
    """Digests of tokens by the name of their user.

    Raises:
        TokenError: the file cannot be read, others can, or a line is wrong.
    """
    try:
        with path.open(encoding="utf-8") as file:
            status = os.fstat(file.fileno())
            text = file.read(FILE_MOST)
    except (OSError, UnicodeDecodeError) as error:
        raise TokenError(f"the file of tokens cannot be read: {error}") from None
    if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO) or status.st_uid not in (0, os.geteuid()):
        raise TokenError(f"others can read the file of tokens: chmod 600 {path}")
    found = {}
    for count, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, token = line.strip().partition(" ")
        token = token.strip()
        if not NAME.fullmatch(name) or len(token) < TOKEN_LEAST:
            raise TokenError(f"{path}:{count}: a line is NAME TOKEN, of {TOKEN_LEAST} characters")
        found[name] = digest(token)
    if not found:
        raise TokenError(
            f"there is no token in {path}: write one there, or remove the file and restart the manager"
        )
    return found


def digest(token: str) -> bytes:
    """So that comparing takes as long whatever is compared."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()


@dataclass
class Session:
    """One login.

    Attributes:
        csrf: what a change must repeat.
        who: the user of this host, or the address, that has logged in.
        token: digest of the token.
        seen, born: monotonic seconds.
    """

    user: str
    who: str
    token: bytes
    csrf: str
    born: float
    seen: float


class Sessions:
    """All sessions.

    Args: path: the file of tokens, read at each use; None: nobody can log in.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.sessions: dict[bytes, Session] = {}
        self.wrong: dict[str, list[float]] = {}  # of each who has given a wrong token lately

    def delay(self, now: float) -> float:
        """Seconds that a login waits before it is checked, while many guess; no good token is refused."""
        self._forget(now)
        return CROWD_WAIT_S if sum(map(len, self.wrong.values())) >= CROWD_MOST else 0.0

    def _forget(self, now: float) -> None:
        """Failures of long ago."""
        recent = {
            who: [when for when in times if now - when < WRONG_S]
            for who, times in self.wrong.items()
        }
        self.wrong = {who: times for who, times in recent.items() if times}

    def _note(self, who: str, now: float) -> None:
        """A wrong token.  Beyond the limit the one who has given fewest lately is forgotten."""
        if who not in self.wrong and len(self.wrong) >= WRONG_WHO_MOST:
            del self.wrong[min(self.wrong, key=lambda each: len(self.wrong[each]))]
        self.wrong.setdefault(who, []).append(now)

    def login(self, token: str, now: float, who: str = "") -> tuple[str, Session] | None:
        """The cookie's value and the session; None: no user has this token.

        Args: who: a user of this host, or an address; wrong tokens are counted for each.

        Raises:
            TokenError: nobody can log in, or not now.
        """
        if self.path is None:
            raise TokenError("this console is read-only")
        self._forget(now)
        if len(self.wrong.get(who, ())) >= WRONG_MOST:
            raise TokenError("too many wrong tokens; wait ten seconds")
        given, user = digest(token.strip()), None
        for name, known in read_tokens(self.path).items():
            if hmac.compare_digest(given, known):
                user = name
        if user is None:
            self._note(who, now)
            return None
        cookie = secrets.token_urlsafe(32)
        session = Session(user, who, given, secrets.token_urlsafe(32), now, now)
        self._make_room(now)
        self.sessions[digest(cookie)] = session
        return cookie, session

    def _make_room(self, now: float) -> None:
        """End those that are over, and the one that is idle for longest when there are too many."""
        for key in [key for key, session in self.sessions.items() if is_over(session, now)]:
            del self.sessions[key]
        if len(self.sessions) >= SESSIONS_MOST:
            del self.sessions[min(self.sessions, key=lambda key: self.sessions[key].seen)]

    def find(self, cookie: str | None, now: float, who: str = "") -> Session | None:
        """The session of a cookie, and it is used; None: there is none (any more).

        Args: who: as for login().  A browser sends its cookies to all ports of a host, so a server of
            another user can get them: that user cannot use them.
        """
        key = digest(cookie or "")
        session = self.sessions.get(key)
        if session is None or session.who != who:
            return None
        if is_over(session, now) or not self._is_known(session):
            del self.sessions[key]
            return None
        session.seen = now
        return session

    def _is_known(self, session: Session) -> bool:
        """Whether the file still has the token that made the session."""
        try:
            return (
                self.path is not None and read_tokens(self.path).get(session.user) == session.token
            )
        except TokenError:
            return False

    def end(self, cookie: str | None) -> None:
        """Log out.  A cookie that belongs to no session is ignored."""
        self.sessions.pop(digest(cookie or ""), None)


def is_over(session: Session, now: float) -> bool:
    """Whether it has been idle for too long, or lasted too long."""
    return now - session.seen > IDLE_S or now - session.born > MOST_S
