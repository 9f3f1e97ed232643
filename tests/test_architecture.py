"""Rules that the import rules cannot express: where SQL stands, who commits, how long a file may be."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MEMBERS = (
    "base",
    "sdk",
    *(f"plugins/{path.name}" for path in sorted((ROOT / "plugins").iterdir())),
    "resolver",
    "product",
)

# Statements of SQL, told from English by the word that has to follow.
STATEMENT = re.compile(
    r"""\s*(--.*\n\s*)*(
        select\s+([\w*"'%(]|$) (?=[\s\S]*\bfrom\b|[\s\S]*\()
        | insert\s+into\s | update\s+[\w.]+\s+set\s | delete\s+from\s | merge\s+into\s
        | with\s+(recursive\s+)?\w+\s+(\([^)]*\)\s+)?as\s+(materialized\s+)?\(
        | (create|alter|drop)\s+(or\s+replace\s+)?(unique\s+)?
          (table|index|schema|role|database|function|policy|view|type|extension|trigger)\s
        | lock\s+table\s | truncate\s+(table\s)? [\w.]+$ | copy\s+[\w.]+\s*\([^)]*\)\s+(from|to)\s
        | set\s+(local|session|role)\s | listen\s+\w+$ | notify\s+\w+$
    )""",
    re.IGNORECASE | re.VERBOSE,
)
CONTROL = re.compile(
    r"\s*(BEGIN|COMMIT|ROLLBACK|SAVEPOINT|START TRANSACTION|END TRANSACTION|RELEASE SAVEPOINT)\b"
)
ENGLISH = re.compile(r"\b(the|a|an|is|are|its)\b", re.IGNORECASE)

# The unit of work and what prepares a database for it speak to PostgreSQL about itself, not about any room's tables.
DATABASE = re.compile(r"base/src/prw_base/server/(database|migrations|postgres|provision)\.py$")
# Who ends transactions: the unit of work, the stream's committer, and the collector's spool on SQLite.
COMMITTERS = re.compile(
    r"(base/src/prw_base/server/database|resolver/src/prw_resolver/stream/committer"
    r"|sdk/src/prw_sdk/spool/sqlite)\.py$"
)
GENERATED = re.compile(r"_pb2(_grpc)?\.py$")
LONGEST = 400


def test_sql_stands_only_in_stores_and_sql_files() -> None:
    """A statement in any other module would be one that nobody looks for there (who may import whom, rule 4)."""
    wrong = [
        f"{name}:{line}: {text.strip()[:60]}"
        for name, tree in _modules()
        if not (name.endswith("/store.py") or "/migrations/" in name or DATABASE.search(name))
        for line, text in _literals(tree)
        if _is_statement(text)
    ]
    assert wrong == []


ENDINGS = {"commit", "rollback", "set_autocommit"}


def test_only_the_unit_of_work_and_the_committer_end_transactions() -> None:
    """Anybody else who commits would publish half of somebody's change (who may import whom, rule 4)."""
    wrong = [
        f"{name}:{line}: {what}"
        for name, tree in _modules()
        if not COMMITTERS.search(name)
        for line, what in _endings(tree)
    ]
    assert wrong == []


def test_sql_files_of_rooms_end_no_transactions() -> None:
    """A named statement never commits; a migration's transaction belongs to the migration tool."""
    wrong = [
        str(path.relative_to(ROOT))
        for path in _files("*.sql")
        if any(CONTROL.match(line) and line.rstrip().endswith(";") for line in _lines(path))
    ]
    assert wrong == []


def test_no_file_is_longer_than_can_be_read() -> None:
    """A module of more than 400 lines holds more than one thing."""
    wrong = [
        f"{path.relative_to(ROOT)}: {len(_lines(path))}"
        for folder in (*MEMBERS, "examples", "proto/src/prw", "tests", "tools")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if not GENERATED.search(path.name) and len(_lines(path)) > LONGEST
    ]
    assert wrong == []


def test_statements_are_told_from_english() -> None:
    """The two rules above would be worthless if they took prose for SQL, or SQL for prose."""
    sql = (
        "SELECT 1 FROM resolver.item",
        "select set_config('app.tenant_id', %s, true)",
        "\n  insert into resolver.item (item_id) values (%s)",
        "-- name: find_item\nselect * from resolver.item",
        "UPDATE resolver.item SET revision = 2",
        "with known as (select 1) select 2 from known",
        "LISTEN changes",
        "set local statement_timeout = 5",
    )
    prose = (
        "select a case (by its id)",
        "Update the case",
        "delete from the list",
        "with care",
        "set role",
    )
    assert [text for text in sql if not _is_statement(text)] == []
    assert [text for text in prose if _is_statement(text)] == []


def _modules() -> Iterator[tuple[str, ast.Module]]:
    for path in _files("*.py"):
        if not GENERATED.search(path.name):
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text("utf-8"))


def _files(pattern: str) -> Iterator[Path]:
    for member in MEMBERS:
        yield from sorted((ROOT / member / "src").rglob(pattern))


def _lines(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines()


def _literals(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every string literal that is not a docstring; of a formatted one, its constant beginning."""
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if id(node) in prose:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            text = node.value
            yield node.lineno, text if isinstance(text, str) else text.decode("latin-1")


def _is_statement(text: str) -> bool:
    return bool(STATEMENT.match(text)) and not ENGLISH.search(text)


def _is_committer(owner: ast.expr) -> bool:
    """Whether a change is handed to the stream's committer, which ends the transaction itself."""
    name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
    return name.endswith("committer")


def _endings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and node.attr in ENDINGS
            and not _is_committer(node.value)
        ):
            yield node.lineno, f".{node.attr}"
    yield from ((line, text) for line, text in _literals(tree) if CONTROL.match(text))
