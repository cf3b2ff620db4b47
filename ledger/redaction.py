"""Texts without secrets: whoever shows an address, a setting or a foreign error shows it through here."""

import re

HIDDEN = "***"
_IN_ADDRESS = re.compile(r"(?<=//)\S*@|(?<![\w/.@-])[^\s/@,=:'\"]+:[^\s/@,'\"]+@(?=[\w.\[-])")
"""User and password before a host: of a URL up to its last @, and of `USER:PASSWORD@HOST` without a scheme."""
_NAMES = r"[\w.-]*(?:passw(?:or)?d|passfile|passphrase|secret|access[_-]?key|token|sslkey)[\w.-]*"
_BY_NAME = re.compile(
    rf"({_NAMES}['\"]?)(\s*=\s*|\s*:\s*(?=['\"]))('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^\s&,;]+)", re.IGNORECASE
)
"""`password=...` of a query or of libpq's keywords, quoted or not, percent-encoded or not, and `"password": "..."`."""


def redacted(text: str) -> str:
    """The text with every secret in it replaced, in whatever spelling a library takes it."""
    return _BY_NAME.sub(rf"\1\2{HIDDEN}", _IN_ADDRESS.sub(f"{HIDDEN}@", text))
