"""Keeping a source's credentials out of parts, logs and errors."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, urlsplit, urlunsplit

MARK = "[redacted]"


@dataclass(frozen=True, slots=True)
class Redactor:
    """Removes known secrets from text, and user information from URLs."""

    secrets: frozenset[str] = frozenset()

    def text(self, value: str) -> str:
        """The text with every known secret replaced by a mark."""
        for secret in self.secrets:
            for form in (secret, quote(secret, safe="")):
                if form:
                    value = value.replace(form, MARK)
        return value

    def url(self, value: str) -> str:
        """The URL without user information and known secrets; a mark where it cannot be taken apart."""
        if "@" not in value:
            return self.text(value)
        try:
            parts = urlsplit(value)
        except ValueError:
            return MARK
        host = parts.netloc.rpartition("@")[2]
        return self.text(urlunsplit(parts._replace(netloc=host)))
