from __future__ import annotations

import json
import logging

import pytest
import structlog

from prw_base.logs import HIDDEN, configure, hide_secrets

JWT = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl"


pytestmark = pytest.mark.usefixtures("logs_as_before")


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Bearer {JWT}",
        f"got {JWT} from there",
        "postgresql://app:hush-hush@db/prw",
        "host=db password=hush-hush user=app",
        "host=db password='hush-hush' user=app",
    ],
)
def test_a_secret_never_reaches_the_log(text: str) -> None:
    """Tokens and passwords are recognised inside longer texts too."""
    hidden = hide_secrets(text)
    assert HIDDEN in hidden
    assert "hush" not in hidden
    assert JWT not in hidden


def test_a_log_line_is_json_with_what_is_bound(capsys: pytest.CaptureFixture[str]) -> None:
    """One object a line, with the capture bound around it and secret keys hidden."""
    configure(json=True)
    with structlog.contextvars.bound_contextvars(capture_id="cap_1"):
        structlog.get_logger("prw.test").info("stored", token="abc", bytes=3)
    line = json.loads(capsys.readouterr().err)
    assert (line["event"], line["capture_id"], line["token"], line["bytes"]) == (
        "stored",
        "cap_1",
        HIDDEN,
        3,
    )


def test_libraries_log_the_same_way(capsys: pytest.CaptureFixture[str]) -> None:
    """A library that uses ``logging`` is redacted like we are."""
    configure(json=True)
    logging.getLogger("library").warning("sent %s", f"Bearer {JWT}")
    line = json.loads(capsys.readouterr().err)
    assert (line["logger"], line["level"]) == ("library", "warning")
    assert JWT not in line["event"]


def test_an_unexpected_error_is_logged_with_its_trace(capsys: pytest.CaptureFixture[str]) -> None:
    """The id that a caller gets is worth nothing without the trace beside it."""
    configure(json=True)
    structlog.get_logger("prw.test").error("unexpected", exc_info=ValueError("boom"))
    assert "ValueError: boom" in json.loads(capsys.readouterr().err)["exception"]
