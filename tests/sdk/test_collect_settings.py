"""What settings of a collector may be: every fault is told by its field before anything is fetched."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from prw_sdk.adapter import AdapterSettings
from prw_sdk.cli import settings as module
from prw_sdk.cli.secrets import SettingsUnusable
from prw_sdk.cli.settings import CollectorSettings, load
from tests.sdk.commanding import invoke

SECRET = "s3cr3t-value"


def told(config: Path, tmp_path: Path, before: str, after: str) -> str:
    """What a run says of that change of the settings; it is refused, and shows no secret."""
    text = config.read_text("utf-8")
    assert before in text
    config.write_text(text.replace(before, after), "utf-8")
    result = invoke("run", "-c", config, "--local", tmp_path / "spool")
    assert result.exit_code == 2, result.output
    assert SECRET not in result.output
    assert not (tmp_path / "spool").exists()
    return result.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff\xfe" + SECRET.encode(), "is not UTF-8 text"),
        (f"{SECRET}\nX-More: 1".encode(), "must hold one line"),
        (f"{SECRET}\u200b{SECRET}".encode(), "must hold one line"),
        (b" \n", "is empty"),
        (None, "No such file"),
    ],
)
def test_a_secret_that_no_header_can_carry_is_told_by_its_field(
    config: Path, tmp_path: Path, content: bytes | None, said: str
) -> None:
    """Never with its value."""
    if content is not None:
        (tmp_path / "key").write_bytes(content)
    headers = 'headers = {"a.example" = {Authorization = "file:key"}}'
    line = told(config, tmp_path, 'currency = "EUR"', headers)
    assert "source src_list: headers.a.example.Authorization" in line
    assert said in line


@pytest.mark.parametrize("value", ["", " ", f"{SECRET}\r\nX: 1"])
def test_a_secret_of_the_environment_is_held_to_the_same(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    """It is named by field and variable."""
    monkeypatch.setenv("SHOP_KEY", value)
    headers = 'headers = {"a.example" = {X-Key = "env:SHOP_KEY"}}'
    assert "headers.a.example.X-Key: SHOP_KEY" in told(
        config, tmp_path, 'currency = "EUR"', headers
    )


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ('{"a.example" = {"X Key" = "env:HOME"}}', "'X Key' is no name of a header"),
        ('{"a.example" = {"X:Key" = "env:HOME"}}', "'X:Key' is no name of a header"),
        ('{"a.example" = {"" = "env:HOME"}}', "'' is no name of a header"),
        ('{"a.example" = {"Höhe" = "env:HOME"}}', "'Höhe' is no name of a header"),
        ('{"a.example" = {"Host" = "env:HOME"}}', "leave it out"),
        ('{"https://a.example" = {X = "env:HOME"}}', "is no host"),
        ('{"a.example:443" = {X = "env:HOME"}}', "without port"),
    ],
)
def test_headers_that_no_request_can_have_are_told_as_the_settings_are_read(
    config: Path, tmp_path: Path, headers: str, said: str
) -> None:
    """Also of sources that are not run now."""
    line = told(config, tmp_path, 'currency = "EUR"', f"headers = {headers}")
    assert "source.0.headers" in line
    assert said in line


def test_a_token_that_no_call_can_carry_is_told(
    config: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By its field."""
    section = '[resolver]\naddress = "127.0.0.1:1"\n'
    config.write_text(config.read_text("utf-8") + section, "utf-8")
    for wrong in ("  ", f"{SECRET}\n{SECRET}"):
        monkeypatch.setenv("PRW_COLLECT_RESOLVER__TOKEN", wrong)
        result = invoke("run", "-c", config)
        assert (result.exit_code, "resolver.token: " in result.stderr) == (2, True)
        assert SECRET not in result.output


def _numbers(model: type[BaseModel], path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every setting that is a number, in sections and their sections."""
    found = []
    for name, field in model.model_fields.items():
        kind = field.annotation
        if kind in (int, float):
            found.append((*path, name))
        elif isinstance(kind, type) and issubclass(kind, BaseModel):
            found += _numbers(kind, (*path, name))
    return found


NUMBERS = [
    *_numbers(CollectorSettings),
    *[("resolver", *path) for path in _numbers(module.ResolverSection)],
]
MAY_BE_ZERO = {
    ("fetch", "max_redirects"),
    ("fetch", "patience"),
    ("fetch", "breaker_failures"),
    ("rate", "max_crawl_delay"),
}


@pytest.mark.parametrize("value", ["inf", "-inf", "nan", "-1", "0"])
def test_no_number_of_the_settings_is_infinite_undefined_negative_or_idly_zero(
    config: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    """Rates, delays, timeouts and sizes, one by one."""
    assert len(NUMBERS) > 15
    monkeypatch.setenv("PRW_COLLECT_RESOLVER__ADDRESS", "127.0.0.1:1")
    for path in NUMBERS:
        name = "__".join(("PRW_COLLECT", *path)).upper().replace("COLLECT__", "COLLECT_", 1)
        with monkeypatch.context() as patched:
            patched.setenv(name, value)
            if value == "0" and path in MAY_BE_ZERO:
                load(config)
                continue
            with pytest.raises(SettingsUnusable, match=r"\.".join(path)):
                load(config)


def test_bounds_and_the_settings_of_adapters_are_finite_too(config: Path, tmp_path: Path) -> None:
    """A bound that nothing breaches is none."""
    bounds = 'bounds = [{ measure = "records", minimum = inf }]'
    assert "source.0.bounds.0.minimum" in told(config, tmp_path, 'currency = "EUR"', bounds)

    class Of(AdapterSettings):
        ratio: float

    with pytest.raises(ValueError, match="finite"):
        Of(ratio=float("nan"))
