"""SIGTERM and SIGINT as an event, so that a program can drain."""

from __future__ import annotations

import asyncio
import signal


def terminated() -> asyncio.Event:
    """An event that the first SIGTERM or SIGINT sets; a second one ends the process as usual."""
    event = asyncio.Event()
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGINT)

    def on_signal() -> None:
        event.set()
        for number in signals:
            loop.remove_signal_handler(number)

    for number in signals:
        loop.add_signal_handler(number, on_signal)
    return event
