from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, cast

import pytest
import typer
from pydantic_settings import SettingsConfigDict
from typer.testing import CliRunner

from prw.errors import Code, PrwError
from prw_base import cli
from prw_base.settings import FILE_VARIABLE, Settings, read_file


@dataclass(frozen=True)
class Point:
    """An entry point as an installed distribution would bring it."""

    name: str
    loaded: Any
    value: str = "somewhere:app"

    def load(self) -> Any:
        """Import it, or fail as an import does."""
        if isinstance(self.loaded, Exception):
            raise self.loaded
        return self.loaded


def group() -> typer.Typer:
    """A group with one command."""
    app = typer.Typer(help="A group.")
    app.callback()(lambda: None)

    @app.command()
    def hello() -> None:
        """Say hello."""
        typer.echo("hello")

    return app


def points(*given: Point) -> list[EntryPoint]:
    """What ``entry_points`` would find."""
    return cast("list[EntryPoint]", list(given))


def test_a_broken_group_is_told_in_one_line_and_the_rest_work(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One bad distribution must not take the command away."""
    broken = Point("bad", ImportError("no module\nnamed x"))
    app = cli.build(points(broken, Point("good", group()), Point("odd", 3)))
    told = capsys.readouterr().err.splitlines()
    assert told == [
        "prw: group 'bad' left out: ImportError: no module",
        "prw: group 'odd' left out: TypeError: somewhere:app is no typer.Typer",
    ]
    done = CliRunner().invoke(app, ["good", "hello"])
    assert (done.exit_code, done.stdout) == (0, "hello\n")


def test_the_version_is_told() -> None:
    """``prw --version`` needs no group and no command."""
    done = CliRunner().invoke(cli.build([]), ["--version"])
    assert done.exit_code == 0
    assert done.stdout.startswith("prw ")


def test_a_command_imports_only_its_own_group() -> None:
    """The others cost seconds, and may be broken."""
    good, other = points(Point("good", group()), Point("other", group()))
    assert cli.wanted([good, other], ["good", "hello"]) == [good]
    assert cli.wanted([good, other], ["--help"]) == [good, other]


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (Code.UNAVAILABLE, cli.TRY_AGAIN),
        (Code.RATE_LIMITED, cli.TRY_AGAIN),
        (Code.CREDENTIAL_REVOKED, cli.NOT_AUTHORISED),
        (Code.FORBIDDEN, cli.NOT_AUTHORISED),
        (Code.STALE_CASE_REVISION, cli.FAILED),
        (Code.INTERNAL, cli.DEFECT),
    ],
)
def test_a_script_learns_what_to_do_from_the_exit_status(code: Code, status: int) -> None:
    """Try again, get authorised, or give up."""
    assert cli.exit_status(PrwError(code, "x")) == status


@pytest.mark.usefixtures("logs_as_before")
def test_an_error_is_one_line_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Code, field, what happened and what to do; no trace."""
    app = group()

    @app.command()
    def fail() -> None:
        raise PrwError(Code.VALIDATION_FAILED, "must not\nbe empty", field="capture.parts")

    monkeypatch.setattr(cli, "entry_points", lambda group: points(Point("good", app)))
    monkeypatch.setattr("sys.argv", ["prw", "good", "fail"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == cli.FAILED
    assert capsys.readouterr().err == (
        "prw: VALIDATION_FAILED: capture.parts: must not be empty. "
        "Correct the field that is named.\n"
    )


def refused_by(
    command: Callable[[], object], capsys: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    """The exit status of a command that cannot work here, and its one line."""
    status = cli.run(command)
    (line,) = capsys.readouterr().err.splitlines()
    return status, line


def test_a_setting_that_breaks_its_rule_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the environment as from the file: the field, and what is wrong with it."""

    class Room(Settings):
        model_config = SettingsConfigDict(env_prefix="PRW_ROOM_", extra="forbid")
        port: int

    for variable, text, said in (
        ("PRW_ROOM_PORT", "many", "port: should be a valid integer, unable to parse string as an"),
        ("PRW_ROOM_HOST", "here", "port: must be given"),
    ):
        with monkeypatch.context() as patched:
            patched.setenv(variable, text)
            status, line = refused_by(lambda: Room.model_validate({}), capsys)
        assert status == cli.USAGE
        assert line.startswith(f"prw: settings: {said}")


def test_a_file_that_cannot_be_used_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the machine refuses is no defect of the program."""
    gone = tmp_path / "gone" / "token"
    assert refused_by(gone.touch, capsys) == (
        cli.FAILED,
        f"prw: {gone}: No such file or directory",
    )
    broken = tmp_path / "prw.toml"
    broken.write_text("a = = b")
    monkeypatch.setenv(FILE_VARIABLE, str(broken))
    status, line = refused_by(read_file, capsys)
    assert status == cli.FAILED
    assert line.startswith(f"prw: VALIDATION_FAILED: {broken}: not TOML: ")
