"""Credentials out of URLs and of text that may hold URLs, before anything is printed or written."""

from __future__ import annotations

import re

_USERINFO = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)(?P<user>[^/\s'\"]*)@")
_SECRET_QUERY = re.compile(r"(?i)([?&](?:[a-z_-]*token|password|private_token|access_key|key|secret|sig)=)[^&\s'\"]+")


def redact(text: str) -> str:
    """``https://user:secret@host/x`` becomes ``https://***@host/x``; secrets in query strings become ``***``."""
    return _SECRET_QUERY.sub(r"\1***", _USERINFO.sub(r"\g<scheme>***@", text))


def without_credentials(url: str) -> str:
    """The URL as it may be written to the lock: no user information, no secret query values.

    The user name of an ssh URL is part of the address (``git@host``), so it stays when no password follows.
    """

    def plain(match: re.Match[str]) -> str:
        is_ssh = match["scheme"] in ("ssh://", "git+ssh://") and ":" not in match["user"]
        return match[0] if is_ssh else match["scheme"]

    return _SECRET_QUERY.sub(r"\1***", _USERINFO.sub(plain, url))


def has_credentials(url: str) -> bool:
    """Whether the URL carries user information or a secret query value."""
    return without_credentials(url) != url
