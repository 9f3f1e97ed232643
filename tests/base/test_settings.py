from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest
from pydantic import SecretStr, ValidationError
from pydantic_settings import SettingsConfigDict

from prw_base.settings import FILE_VARIABLE, Settings


class Room(Settings):
    model_config = SettingsConfigDict(env_prefix="PRW_ROOM_")
    toml_table: ClassVar[str | None] = "room"

    port: int = 1
    dsn: SecretStr = SecretStr("")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A settings file that is named."""
    path = tmp_path / "prw.toml"
    path.write_text('[room]\nport = 2\ndsn = "from file"\n[other]\nport = 9\n')
    monkeypatch.setenv(FILE_VARIABLE, str(path))
    return path


def test_the_file_is_read_by_table(file: Path) -> None:
    """Each program reads its own table of the one file."""
    assert Room().port == 2


def test_the_environment_wins_over_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the program's own word wins over both."""
    monkeypatch.setenv("PRW_ROOM_PORT", "3")
    assert (Room().port, Room(port=4).port, Room().dsn.get_secret_value()) == (3, 4, "from file")


def test_settings_do_not_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a program was built from is what it runs with."""
    settings = Room()
    with pytest.raises(ValidationError):
        settings.port = 5


def test_a_named_file_that_is_missing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting with defaults in its place would be a surprise."""
    monkeypatch.setenv(FILE_VARIABLE, "/nowhere/prw.toml")
    with pytest.raises(FileNotFoundError):
        Room()


def test_a_secret_is_not_shown() -> None:
    """Settings are printed and logged as a whole."""
    assert "hush" not in repr(Room(dsn=SecretStr("hush")))
