"""Structured logs on standard error: one line an event, with secrets taken out."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

_SECRET_KEY = re.compile(
    r"token|authorization|password|secret|cookie|assertion|private_key", re.IGNORECASE
)
_SECRET_VALUE = re.compile(
    r"(?i:bearer\s+)\S+"
    r"|\beyJ[\w-]+\.[\w-]+\.[\w-]*"
    r"|(?<=://)[^\s/:@]+:[^\s/@]+(?=@)"
    r"|(?<=\bpassword=)('[^']*'|\S+)"
)
HIDDEN = "[hidden]"


def redact(
    _logger: object, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Hide values of secret keys, bearer tokens, JWTs and passwords in URLs and DSNs."""
    for key, value in event.items():
        if _SECRET_KEY.search(key) and value is not None:
            event[key] = HIDDEN
        elif isinstance(value, str):
            event[key] = hide_secrets(value)
    return event


def hide_secrets(text: str) -> str:
    """``text`` without the tokens and passwords that are recognised in it."""
    return _SECRET_VALUE.sub(HIDDEN, text)


def configure(json: bool = False, level: int = logging.INFO) -> None:
    """Set up the logs of this process, those of libraries that use ``logging`` included.

    ``json`` writes one JSON object a line, else a line for people.
    """
    shared = _shared_processors()
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_formatter(json, shared))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)


def _shared_processors() -> list[Any]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]


def _formatter(json: bool, shared: list[Any]) -> structlog.stdlib.ProcessorFormatter:
    renderer: Any = (
        structlog.processors.JSONRenderer()
        if json
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    )
    finish = [structlog.processors.format_exc_info] if json else []
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[structlog.stdlib.ExtraAdder(), *shared],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            *finish,
            redact,
            renderer,
        ],
    )
