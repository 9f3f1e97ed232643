"""The base of every program's settings: frozen, from the environment and one TOML file.

A value given by the program wins over ``PRW_…`` in the environment, that over the file.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any, ClassVar

from pydantic import ValidationError
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from prw.errors import Code, PrwError

FILE_VARIABLE = "PRW_CONFIG"
"""Names the TOML file; without it ``prw.toml`` in the working folder is read where it exists."""


class Settings(BaseSettings):
    """A frozen group of settings.

    A subclass names its prefix (``model_config = SettingsConfigDict(env_prefix="PRW_RESOLVER_")``)
    and its table of the file (``toml_table = "resolver"``); without one the file's top is read.
    Secrets are ``SecretStr``, so that they never appear in a log.
    """

    model_config = SettingsConfigDict(
        frozen=True, env_prefix="PRW_", env_nested_delimiter="__", extra="ignore"
    )
    toml_table: ClassVar[str | None] = None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Program, environment, file; in this order."""
        from_file = InitSettingsSource(settings_cls, init_kwargs=cls._file_values())
        return init_settings, env_settings, from_file

    @classmethod
    def _file_values(cls) -> dict[str, Any]:
        values = read_file()
        if cls.toml_table is not None:
            table = values.get(cls.toml_table, {})
            return dict(table) if isinstance(table, dict) else {}
        return values


def read_file() -> dict[str, Any]:
    """The settings file as it stands; empty where none is named and there is no ``prw.toml``.

    Raises OSError where ``PRW_CONFIG`` names a file that cannot be read, and PrwError
    VALIDATION_FAILED where it is not TOML.
    """
    named = os.environ.get(FILE_VARIABLE)
    path = Path(named or "prw.toml")
    if named is None and not path.is_file():
        return {}
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as bad:
        raise PrwError(Code.VALIDATION_FAILED, f"not TOML: {bad}", field=str(path)) from bad


def explain(error: ValidationError) -> str:
    """Every fault of a validation as ``field: what is wrong``."""
    return "; ".join(
        f"{'.'.join(map(str, fault['loc'])) or 'file'}: {_plain(fault['type'], fault['msg'])}"
        for fault in error.errors(include_url=False, include_input=False)
    )


def _plain(kind: str, message: str) -> str:
    if kind == "extra_forbidden":
        return "there is no such setting"
    if kind == "missing":
        return "must be given"
    return message.removeprefix("Value error, ").replace("Input should", "should", 1)
