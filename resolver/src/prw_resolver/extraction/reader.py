"""What runs in the reading process: find the adapter, let it read, and hand back a value, whatever happens.

Foreign code may raise anything, and an exception of its own class need not survive the way back, so failures come
back as `Failed`.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import traceback
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from multiprocessing.connection import wait

from prw_resolver.extraction.model import ReadCode, Reading, ReadOutcome
from prw_sdk import plugins
from prw_sdk.adapter import NotARecord
from prw_sdk.evidence import Capture

_LOADED: list[plugins.Plugins] = []
_LONGEST_DETAIL = 2000


@dataclass(frozen=True, slots=True)
class Failed:
    """The reading failed; `detail` is for a person."""

    code: ReadCode
    detail: str


def prepare(points: tuple[EntryPoint, ...] | None) -> None:
    """Load the plugins once, and end with the parent: an orphan would wait for work for ever."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _LOADED[:] = [plugins.load(points)]


def process_id() -> int:
    """The number of the reading process, by which its owner can stop it."""
    return os.getpid()


def read(capture: Capture) -> Reading | Failed:
    """Read a capture with the adapter version that made it."""
    try:
        adapter = _LOADED[0].find(capture.adapter.name, capture.adapter.version)
        records = tuple(adapter().read(capture))
    except plugins.UnknownAdapter as error:
        return Failed(ReadCode.UNKNOWN_ADAPTER_VERSION, str(error))
    except NotARecord as reason:
        return Reading(ReadOutcome.NOT_A_RECORD, str(reason)[:_LONGEST_DETAIL])
    except Exception:  # noqa: BLE001 - an adapter may raise anything, and its own classes may not unpickle
        return Failed(ReadCode.SCHEMA_INVALID, traceback.format_exc()[-_LONGEST_DETAIL:])
    if not records:
        return Reading(ReadOutcome.NOT_A_RECORD, "the adapter found no record")
    return Reading(ReadOutcome.RECORDS, records=records)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
