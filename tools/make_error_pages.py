"""Write a page of the docs for every error code from the one table, or check that the pages are the table's.

python tools/make_error_pages.py [--check]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from prw.errors import TABLE, Code, Entry

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "errors"
NOTICE = "<!-- Made by `make docs` from the table in `proto/src/prw/errors.py`. Do not edit. -->"


def pages() -> Iterator[tuple[Path, str]]:
    """Every page with its text: the index, then one for each code."""
    yield FOLDER / "README.md", _index()
    for code, entry in TABLE.items():
        yield FOLDER / f"{code.value}.md", _page(code, entry)


def _index() -> str:
    rows = [
        f"| [{code.value}]({code.value}.md) | {entry.http} | {entry.grpc} | {_yes(entry.retryable)} |"
        for code, entry in TABLE.items()
    ]
    head = ["| code | HTTP | gRPC | may be sent again |", "| --- | --- | --- | --- |"]
    intro = (
        "Every error has one stable code. On gRPC it is the `reason` of `google.rpc.ErrorInfo` with the domain `prw`;\n"
        "on HTTP it is the member `code` of `application/problem+json` (RFC 9457)."
    )
    return "\n".join([NOTICE, "", "# Errors", "", intro, "", *head, *rows, ""])


def _page(code: Code, entry: Entry) -> str:
    facts = [
        f"- HTTP status: {entry.http}",
        f"- gRPC status: {entry.grpc}",
        f"- may the same call be sent again: {_yes(entry.retryable)}",
    ]
    back = "[All codes](README.md)"
    return "\n".join(
        [
            NOTICE,
            "",
            f"# {code.value}",
            "",
            entry.meaning,
            "",
            *facts,
            "",
            "## What to do",
            "",
            entry.remedy,
            "",
            back,
            "",
        ]
    )


def _yes(truth: bool) -> str:
    return "yes" if truth else "no"


def main() -> int:
    """Write the pages, or with ``--check`` name those that differ."""
    wanted = dict(pages())
    if "--check" in sys.argv[1:]:
        wrong = [
            path
            for path, text in wanted.items()
            if not path.exists() or path.read_text("utf-8") != text
        ]
        wrong += [path for path in sorted(FOLDER.glob("*.md")) if path not in wanted]
        for path in wrong:
            print(
                f"{path.relative_to(FOLDER.parent.parent)} is not what the table gives; run: make docs"
            )
        return 1 if wrong else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path, text in wanted.items():
        path.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
