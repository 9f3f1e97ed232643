"""``prw resolver review``: what no rule may decide, before a person. Talks to a running resolver over gRPC."""

from __future__ import annotations

import asyncio
import json as jsonlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import grpc
import typer

from prw.errors import Code, PrwError
from prw_base.client import Tls, is_loopback, open_channel
from prw_base.files import read_token
from prw_base.ids import new_id
from prw_base.options import JsonOption
from prw_base.tables import print_json, print_table
from prw_resolver.cli.session import settings_of
from prw_resolver.review.client import ReviewClient
from prw_resolver.review.decide import Request
from prw_resolver.review.model import CaseKind, CaseStatus
from prw_resolver.stream.model import Action

T = TypeVar("T")

TOKEN_FILE_VARIABLE = "PRW_OPERATOR_TOKEN_FILE"

review = typer.Typer(
    help="List the cases that wait for a person, look at one, decide it.", no_args_is_help=True
)

AddressOption = Annotated[
    str | None,
    typer.Option("--address", help="host:port of the resolver; by default the one it serves on."),
]
TokenOption = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        envvar=TOKEN_FILE_VARIABLE,
        help="File with the token of `prw resolver operator provision`.",
    ),
]
CaOption = Annotated[
    Path | None,
    typer.Option(
        "--ca",
        metavar="FILE",
        help="PEM file of the authority of a resolver elsewhere; the system's roots without it.",
    ),
]


class Decidable(StrEnum):
    """What can be decided on a case here."""

    ACCEPT = "accept"
    CORRECT = "correct"
    REJECT = "reject"
    DEFER = "defer"
    RETRACT = "retract"


@review.command("list")
def list_cases(
    context: typer.Context,
    status: Annotated[
        CaseStatus, typer.Option("--status", help="Only these.")
    ] = CaseStatus.AWAITING_HUMAN,
    kind: Annotated[CaseKind | None, typer.Option("--kind", help="Only these.")] = None,
    address: AddressOption = None,
    token_file: TokenOption = None,
    ca: CaOption = None,
    json: JsonOption = False,
) -> None:
    """List cases, oldest first."""

    async def work(client: ReviewClient) -> list[dict[str, Any]]:
        return [
            case async for case in client.cases(status.value, None if kind is None else kind.value)
        ]

    cases = _run(context, _Call(address, token_file, ca), work)
    if json:
        print_json(cases)
    else:
        _table("Cases", ("case_id", "revision", "reason", "candidates", "title"), cases)


@review.command("show")
def show(
    context: typer.Context,
    case_id: Annotated[str, typer.Argument(metavar="CASE", help="The case's id.")],
    address: AddressOption = None,
    token_file: TokenOption = None,
    ca: CaOption = None,
    json: JsonOption = False,
) -> None:
    """Show one case: what was stated and where, the candidates, and what was decided before."""
    case = _run(context, _Call(address, token_file, ca), lambda client: client.case(case_id))
    if json:
        print_json(case)
        return
    _table(
        "Case",
        ("case_id", "kind", "status", "revision", "reason", "listing_key"),
        [case["summary"]],
    )
    _table("Proposal", ("attribute", "value", "unit", "basis"), case["proposal"])
    _table(
        "Candidates",
        ("item_id", "title", "score", "agree", "disagree", "missing"),
        case["candidates"],
    )
    evidence = [one | {"where": _where(one)} for one in case["evidence"]]
    _table("Evidence", ("attribute", "quote", "where"), evidence)
    _table(
        "History", ("decided_at", "action", "actor_kind", "actor_id", "rationale"), case["history"]
    )


@review.command("decide")
def decide(
    context: typer.Context,
    case_id: Annotated[str, typer.Argument(metavar="CASE", help="The case's id.")],
    action: Annotated[Decidable, typer.Argument(help="What is decided.")],
    revision: Annotated[
        int,
        typer.Option("--revision", min=1, help="The revision you saw; a moved case is refused."),
    ],
    rationale: Annotated[str, typer.Option("--rationale", help="Why, in your words.")],
    map_to: Annotated[
        str | None, typer.Option("--map-to", metavar="ITEM", help="The item it is.")
    ] = None,
    create_item: Annotated[
        bool, typer.Option("--create-item", help="It is an item of its own.")
    ] = False,
    corrections: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="A corrected value, for the action correct."
        ),
    ] = None,
    key: Annotated[
        str | None, typer.Option("--idempotency-key", help="Give it again to repeat a lost call.")
    ] = None,
    address: AddressOption = None,
    token_file: TokenOption = None,
    ca: CaOption = None,
    json: JsonOption = False,
) -> None:
    """Decide a case: accept, correct, reject, defer or retract."""
    if create_item and map_to is not None:
        message = "it is an item of its own or another: give --create-item or --map-to"
        raise PrwError(Code.VALIDATION_FAILED, message, field="--map-to")
    request = Request(
        case_id=case_id,
        expected_revision=revision,
        action=Action(action.value),
        rationale=rationale,
        idempotency_key=key or new_id("key"),
        corrections=_pairs(corrections or []),
        create_item=create_item,
        map_to=map_to,
    )
    decided = _run(context, _Call(address, token_file, ca), lambda client: client.decide(request))
    columns = ("decision_id", "case_id", "case_revision", "event_ids", "replayed")
    print_table("Decision", columns, [tuple(decided[column] for column in columns)], json)


def _pairs(settings: list[str]) -> dict[str, str]:
    pairs = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise PrwError(Code.VALIDATION_FAILED, f"{setting!r} is not KEY=VALUE", field="--set")
        pairs[name] = value
    return pairs


def _where(evidence: dict[str, Any]) -> str:
    """The locator for people: the part, then each step into it; JSON has it exactly."""
    steps, step = [evidence["part_role"]], jsonlib.loads(evidence["selector"])
    while step is not None:
        attribute = f"/@{step['attribute']}" if step.get("attribute") else ""
        steps.append(f"{step['value']}{attribute}")
        step = step.get("refined_by")
    return " → ".join(steps)


def _table(title: str, columns: tuple[str, ...], rows: list[dict[str, Any]]) -> None:
    print_table(title, columns, [tuple(row[column] for column in columns) for row in rows])


@dataclass(frozen=True, slots=True)
class _Call:
    """Where the options lead, and as whom."""

    address: str | None
    token_file: Path | None
    ca: Path | None

    def open(self, default_address: str) -> grpc.aio.Channel:
        """A channel: over TLS, but for this machine's own resolver."""
        target = self.address or default_address
        clear = self.ca is None and is_loopback(target)
        tls = None if clear else Tls(None if self.ca is None else _read(self.ca))
        return open_channel(target, _token(self.token_file), tls=tls)


def _run(context: typer.Context, call: _Call, work: Callable[[ReviewClient], Awaitable[T]]) -> T:
    async def run() -> T:
        async with call.open(settings_of(context).address) as channel:
            return await work(ReviewClient(channel))

    return asyncio.run(run())


def _read(ca: Path) -> bytes:
    try:
        return ca.read_bytes()
    except OSError as error:
        raise PrwError(Code.VALIDATION_FAILED, str(error), field="--ca") from error


def _token(token_file: Path | None) -> str:
    if token_file is None:
        raise PrwError(
            Code.INVALID_TOKEN,
            f"say who you are: --token-file, or {TOKEN_FILE_VARIABLE}; `prw resolver operator provision` makes one",
            field="--token-file",
        )
    return read_token(token_file, "--token-file")
