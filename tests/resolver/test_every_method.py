"""What holds for every method that the resolver serves: who may call it, and what it makes of nonsense."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc
import psycopg
import pytest
from google.protobuf.descriptor import FieldDescriptor
from psycopg import sql

from prw.errors import Code
from prw_base.client import open_channel
from prw_base.principal import Role
from prw_resolver.access import service as access
from prw_resolver.access.model import SCOPES, ClientGrant
from tests.resolver.collecting import CATALOG, Running
from tests.resolver.methods import is_map, methods, paths, place, refused, sound

Rows = psycopg.Connection[dict[str, Any]]

WHO: dict[str, tuple[set[str], Role | None]] = {
    "Register": ({"workers:register"}, None),
    "DeclareUpload": ({"artifacts:write"}, None),
    "PutArtifact": ({"artifacts:write"}, None),
    "StoreArtifacts": ({"artifacts:write"}, None),
    "Heartbeat": ({"workers:heartbeat"}, None),
    "GetCheckpoint": ({"checkpoints:write"}, None),
    "AdvanceCheckpoint": ({"checkpoints:write"}, None),
    "SubmitCapture": ({"captures:write"}, None),
    "GetReceipt": ({"receipts:read"}, Role.VIEWER),
    "BatchGetReceipts": ({"receipts:read"}, Role.VIEWER),
    "ListCases": (set(), Role.VIEWER),
    "GetCase": (set(), Role.VIEWER),
    "Decide": (set(), Role.REVIEWER),
    "StreamChanges": ({"changes:read"}, None),
    "ListChanges": ({"changes:read", "exports:read"}, None),
    "GetEpoch": ({"changes:read", "exports:read"}, None),
    "RegisterConsumer": ({"changes:read"}, None),
    "ReportProgress": ({"changes:read"}, None),
    "CreateSnapshot": ({"exports:read"}, None),
    "GetSnapshot": ({"exports:read"}, None),
    "ReadObject": ({"exports:read"}, None),
    "RenewLease": ({"exports:read"}, None),
    "ReleaseLease": ({"exports:read"}, None),
    "GetDigest": ({"exports:read"}, None),
}
"""Which scopes, any of them, and which least role a method is open to (contract, "Identity of callers")."""

DENIALS = {Code.MISSING_SCOPE, Code.FORBIDDEN, Code.PERMISSION_DENIED}
TEXT, NUMBER = FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_UINT64
GREATEST = 2**64 - 1


@pytest.fixture
async def anonymous(resolver: Running) -> AsyncIterator[grpc.aio.Channel]:
    """A channel that sends no token."""
    async with open_channel(resolver.target) as channel:
        yield channel


async def machine(resolver: Running, *scopes: str, instance: str = "ci_one") -> str:
    """The token of a machine with these scopes."""
    sources = ("ten_synth_a.src_one",)
    return await resolver.token(
        ClientGrant("ten_synth_a", CATALOG, instance, scopes, "cw_one", sources)
    )


async def person(resolver: Running, role: Role) -> str:
    """The token of a person with that role."""
    made = await access.provision_operator(
        resolver.issuer, "ten_synth_a", CATALOG, f"p{role}", role
    )
    return made.token


async def denials(resolver: Running, token: str) -> dict[str, Code | None]:
    """Whether the caller was let in by each method, and if not, the code that it was told."""
    answers: dict[str, Code | None] = {}
    async with open_channel(resolver.target, token) as channel:
        for method in await methods(channel):
            error = await refused(channel, method, sound(method))
            shut_out = error is not None and error.code in DENIALS
            answers[method.name] = error.code if error and shut_out else None
    return answers


async def test_no_method_is_missing_here(anonymous: grpc.aio.Channel) -> None:
    """Whoever adds a method says here who may call it."""
    assert {method.name for method in await methods(anonymous)} == set(WHO)


@pytest.mark.parametrize("scope", sorted(SCOPES))
async def test_a_scope_opens_its_methods_and_no_other(resolver: Running, scope: str) -> None:
    """MISSING_SCOPE where another scope is needed, PERMISSION_DENIED where the method is for persons."""
    answers = await denials(resolver, await machine(resolver, scope))
    assert answers == {
        name: None if scope in scopes else Code.MISSING_SCOPE if scopes else Code.PERMISSION_DENIED
        for name, (scopes, _) in WHO.items()
    }


@pytest.mark.parametrize("role", list(Role), ids=lambda role: role.name.lower())
async def test_a_role_opens_its_methods_and_no_other(resolver: Running, role: Role) -> None:
    """FORBIDDEN where a higher role is needed, PERMISSION_DENIED where the method is for machines."""
    answers = await denials(resolver, await person(resolver, role))
    assert answers == {
        name: Code.PERMISSION_DENIED if least is None else Code.FORBIDDEN if role < least else None
        for name, (_, least) in WHO.items()
    }


async def test_every_method_wants_a_token_that_still_holds(
    resolver: Running, anonymous: grpc.aio.Channel
) -> None:
    """INVALID_TOKEN without one, CREDENTIAL_REVOKED at the first call after it was ended."""
    token = await machine(resolver, *SCOPES)
    await access.revoke_client(resolver.parts.db, "ten_synth_a", "ci_one")
    async with open_channel(resolver.target, token) as ended:
        for method in await methods(anonymous):
            for channel, code in (
                (anonymous, Code.INVALID_TOKEN),
                (ended, Code.CREDENTIAL_REVOKED),
            ):
                error = await refused(channel, method, sound(method))
                assert error is not None
                assert error.code is code, method.name


@pytest.mark.parametrize(("kind", "value"), [(TEXT, "a\0b"), (NUMBER, GREATEST)])
async def test_no_field_of_any_method_makes_a_failure_of_ours(
    resolver: Running, superuser: Rows, kind: int, value: object
) -> None:
    """What the database cannot hold is refused by its field, before anything is read or written.

    A length that no artifact has is ARTIFACT_TOO_LARGE, as every length above the limit.
    """
    collector = await machine(resolver, *SCOPES)
    reviewer = await person(resolver, Role.REVIEWER)
    before = counts(superuser)
    async with (
        open_channel(resolver.target, collector) as as_machine,
        open_channel(resolver.target, reviewer) as as_person,
    ):
        for method in await methods(as_machine):
            channel = as_machine if WHO[method.name][0] else as_person
            for path in paths(method.input_type):
                if path[-1].type != kind and not (kind == TEXT and is_map(path[-1])):
                    continue
                request = sound(method)
                place(request, path, value)
                error = await refused(channel, method, request)
                where = f"{method.name}.{'.'.join(field.name for field in path)}"
                assert error is not None, where
                large = path[-1].name == "bytes" and method.name != "SubmitCapture"
                wanted = Code.ARTIFACT_TOO_LARGE if large else Code.VALIDATION_FAILED
                if path[-1].name != "bytes" or large:
                    assert (error.code, bool(error.field)) == (wanted, True), where
    assert counts(superuser) == before


def counts(superuser: Rows) -> dict[str, int]:
    """How many rows each table has."""
    tables = superuser.execute(
        "select tablename from pg_tables where schemaname = 'resolver' order by 1"
    ).fetchall()
    ask = sql.SQL("select count(*) as n from resolver.{}")
    rows = {row["tablename"]: ask.format(sql.Identifier(row["tablename"])) for row in tables}
    return {table: superuser.execute(query).fetchall()[0]["n"] for table, query in rows.items()}
