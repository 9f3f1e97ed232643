"""Who is calling: tokens, bindings, revocation, and the rules for sources (contract, "Identity of callers")."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg
import pytest

from prw.errors import Code, PrwError
from prw_base.principal import Role
from prw_base.server.tokens import Signer, load_or_create_key
from prw_resolver.access import service
from prw_resolver.access.model import COLLECTOR_SCOPES, ClientGrant, Source, role_named
from tests.resolver.collecting import CATALOG, Running, capture, gathered, refusal

Rows = psycopg.Connection[dict[str, Any]]


def grant(**other: Any) -> ClientGrant:
    """What ci_one is granted."""
    fields: dict[str, Any] = {
        "tenant_id": "ten_synth_a",
        "catalog_id": CATALOG,
        "instance_id": "ci_one",
        "scopes": COLLECTOR_SCOPES,
        "worker_id": "cw_one",
        "sources": ("ten_synth_a.src_one",),
    }
    return ClientGrant(**(fields | other))


async def test_a_token_stands_for_what_was_provisioned_and_no_more(resolver: Running) -> None:
    """Tenant, catalogue, worker, sources and scopes come from the binding in the database."""
    made = await service.provision_client(resolver.issuer, grant(scopes=("captures:write",)))
    caller = await service.authenticate(resolver.parts.access, made.token)
    assert (caller.tenant_id, caller.catalog_id) == ("ten_synth_a", CATALOG)
    assert (caller.worker_id, caller.instance_id, caller.subject) == ("cw_one", "ci_one", "ci_one")
    assert caller.sources == {"ten_synth_a.src_one"}
    assert caller.scopes == {"captures:write"}
    assert caller.role is None


async def test_a_person_s_token_stands_for_their_role(resolver: Running) -> None:
    """People have a role and neither worker, sources nor scopes."""
    made = await service.provision_operator(
        resolver.issuer, "ten_synth_a", CATALOG, "anna", Role.REVIEWER
    )
    caller = await service.authenticate(resolver.parts.access, made.token)
    assert (caller.subject, caller.role, caller.instance_id) == ("anna", Role.REVIEWER, None)
    assert not caller.scopes
    assert not caller.sources


async def test_a_revoked_client_fails_at_its_next_call(resolver: Running) -> None:
    """Not at the token's expiry, and no cache delays it."""
    collector = await resolver.collector()
    await collector.put()
    ended = await service.revoke_client(resolver.parts.db, "ten_synth_a", "ci_one")
    assert len(ended) == 1
    for call in (collector.declare(), collector.submit(capture()), collector.receipt("rcp_x")):
        assert (await refusal(call)).code is Code.CREDENTIAL_REVOKED


async def test_a_client_that_was_provisioned_again_supersedes_the_former_one(
    resolver: Running,
) -> None:
    """The instance stays, its client rotates: the former token fails at the next call."""
    former = await resolver.collector()
    latter = await resolver.collector()
    assert (await refusal(former.declare())).code is Code.CREDENTIAL_REVOKED
    assert (await latter.declare()).upload_id


async def test_a_person_s_former_role_is_superseded(resolver: Running) -> None:
    """A token of a former role is worth nothing."""
    reviewer = await resolver.person(role=Role.REVIEWER)
    await resolver.person(role=Role.VIEWER)
    assert (await refusal(reviewer.receipt("rcp_x"))).code is Code.CREDENTIAL_REVOKED


async def test_only_one_client_of_an_instance_is_active(resolver: Running, superuser: Rows) -> None:
    """The database holds it, whoever races."""
    results = await gathered(
        *(service.provision_client(resolver.issuer, grant()) for _ in range(4))
    )
    assert any(isinstance(made, service.Provisioned) for made in results)
    active = superuser.execute("select from binding where status = 'active'").fetchall()
    assert len(active) == 1


async def test_revoking_what_is_not_active_is_not_found(resolver: Running) -> None:
    """Also for the client of another tenant, which the row-level security hides."""
    await service.provision_client(resolver.issuer, grant())
    for tenant, name in (("ten_synth_a", "ci_none"), ("ten_synth_b", "ci_one")):
        with pytest.raises(PrwError) as refused:
            await service.revoke_client(resolver.parts.db, tenant, name)
        assert refused.value.code is Code.NOT_FOUND


async def test_a_token_that_is_not_a_client_s_own_is_refused(resolver: Running) -> None:
    """No token, garbage, an unknown client, another subject, another key, an expired one: INVALID_TOKEN."""
    made = await service.provision_client(resolver.issuer, grant())
    signer = resolver.issuer.signer
    hour = timedelta(hours=1)
    settings = resolver.parts.settings
    stranger = Signer(
        load_or_create_key(settings.state_folder / "other.pem"),
        settings.token_issuer,
        settings.token_audience,
    )
    tokens = [
        None,
        "garbage",
        signer.sign("ci_one", "cli_unknown", hour),
        signer.sign("ci_two", made.client_id, hour),
        signer.sign("ci_one", made.client_id, -hour),
        stranger.sign("ci_one", made.client_id, hour),
    ]
    for token in tokens:
        caller = await resolver.caller(token)
        assert (await refusal(caller.declare())).code is Code.INVALID_TOKEN


async def test_each_method_wants_its_scope(resolver: Running) -> None:
    """MISSING_SCOPE for a machine without it, PERMISSION_DENIED for a person where no role is declared."""
    machine = await resolver.collector(scopes=("checkpoints:write",))
    person = await resolver.person(role=Role.OPERATOR_ADMIN)
    body: dict[str, Any] = {"worker_id": "cw_one", "instance_id": "ci_one", "targets": ["x"]}
    for name, arguments in (
        ("register", body),
        ("declare", {}),
        ("send", {"upload_id": "x", "body": b""}),
        ("submit", {"message": capture()}),
    ):
        assert (await refusal(getattr(machine, name)(**arguments))).code is Code.MISSING_SCOPE
        denied = await refusal(getattr(person, name)(**arguments))
        assert denied.code is Code.PERMISSION_DENIED
    assert (await refusal(machine.receipt("x"))).code is Code.MISSING_SCOPE
    assert (await refusal(machine.receipts(["x"]))).code is Code.MISSING_SCOPE


SOURCES = [
    ("ten_synth_b.src_one", Code.TENANT_SCOPE_DENIED),
    ("ten_synth_a.src_two", Code.SOURCE_SCOPE_DENIED),
    ("src_nobody", Code.SOURCE_SCOPE_DENIED),
]


@pytest.mark.parametrize(("source", "code"), SOURCES)
async def test_a_source_that_is_not_granted_is_denied_by_every_method(
    resolver: Running, source: str, code: Code
) -> None:
    """Another tenant's: TENANT_SCOPE_DENIED. The own tenant's or nobody's: SOURCE_SCOPE_DENIED."""
    collector = await resolver.collector()
    await collector.put()
    targets = ["ten_synth_a.src_one", source]
    calls = {
        "targets[1]": collector.register(worker_id="cw_one", instance_id="ci_one", targets=targets),
        "source_id": collector.declare(source_id=source),
        "capture.source_id": collector.submit(capture(source)),
    }
    for field, call in calls.items():
        refused = await refusal(call)
        assert (refused.code, refused.field) == (code, field)


async def test_a_source_id_that_two_tenants_use_is_each_one_s_own(resolver: Running) -> None:
    """Ids are the tenant's; the same id elsewhere neither grants nor denies anything here."""
    for tenant in ("ten_synth_a", "ten_synth_b"):
        shared = Source(tenant, CATALOG, "src_shared", "", False, {})
        await service.put_source(resolver.parts.db, shared)
    collector = await resolver.collector()
    refused = await refusal(collector.declare(source_id="src_shared"))
    assert refused.code is Code.SOURCE_SCOPE_DENIED


async def test_a_registration_is_an_upsert_that_never_widens_a_grant(
    resolver: Running, superuser: Rows
) -> None:
    """The answer is the binding's, whatever was asked; registered again it is the same instance."""
    collector = await resolver.collector(sources=("src_one", "src_two"))
    fields: dict[str, Any] = {
        "worker_id": "cw_one",
        "instance_id": "ci_one",
        "targets": ["ten_synth_a.src_two"],
        "capabilities": ["html"],
    }
    await collector.register(version="1.0", **fields)
    answer = await collector.register(version="1.1", **fields)
    assert (answer.tenant_id, answer.catalog_id) == ("ten_synth_a", CATALOG)
    assert list(answer.granted_sources) == ["ten_synth_a.src_one", "ten_synth_a.src_two"]
    assert answer.lease.seconds == 90
    [row] = superuser.execute("select * from collector_instance").fetchall()
    assert (row["version"], row["targets"]) == ("1.1", ["ten_synth_a.src_two"])


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("worker_id", "cw_two", Code.ATTRIBUTION_DENIED),
        ("instance_id", "ci_two", Code.INSTANCE_SCOPE_DENIED),
        ("targets", [], Code.VALIDATION_FAILED),
    ],
)
async def test_a_registration_speaks_for_its_caller_only(
    resolver: Running, superuser: Rows, field: str, value: Any, code: Code
) -> None:
    """Another worker, another instance, or no target at all is refused and leaves nothing."""
    collector = await resolver.collector()
    fields: dict[str, Any] = {
        "worker_id": "cw_one",
        "instance_id": "ci_one",
        "targets": ["ten_synth_a.src_one"],
    }
    assert (await refusal(collector.register(**(fields | {field: value})))).code is code
    assert superuser.execute("select from collector_instance").fetchall() == []


async def test_provisioning_names_what_is_missing(resolver: Running) -> None:
    """An unknown catalogue or source is NOT_FOUND, and no client is made."""
    for unknown in ({"catalog_id": "none"}, {"sources": ("ten_synth_b.src_one",)}):
        with pytest.raises(PrwError) as refused:
            await service.provision_client(resolver.issuer, grant(**unknown))
        assert refused.value.code is Code.NOT_FOUND


@pytest.mark.parametrize("wrong", [{"scopes": ()}, {"scopes": ("all",)}, {"instance_id": "a b"}])
def test_a_grant_holds_known_scopes_and_plain_names(wrong: dict[str, Any]) -> None:
    """VALIDATION_FAILED before anything is written."""
    with pytest.raises(PrwError) as refused:
        grant(**wrong)
    assert refused.value.code is Code.VALIDATION_FAILED


async def test_putting_a_source_again_changes_what_is_said_and_never_its_catalogue(
    resolver: Running,
) -> None:
    """An idempotent upsert within its catalogue."""
    db = resolver.parts.db
    await service.put_catalog(db, "ten_synth_a", "other", "")
    source_id = "ten_synth_a.src_one"
    changed = Source("ten_synth_a", CATALOG, source_id, "Shop", False, {"locale": "de-DE"})
    await service.put_source(db, changed)
    async with db.transaction("ten_synth_a") as conn:
        assert await service.find_source(conn, "ten_synth_a", source_id) == changed
    with pytest.raises(PrwError) as refused:
        await service.put_source(db, Source("ten_synth_a", "other", source_id, "", True, {}))
    assert refused.value.code is Code.VALIDATION_FAILED


def test_an_unknown_role_is_named() -> None:
    """VALIDATION_FAILED lists the roles."""
    with pytest.raises(PrwError, match="viewer, reviewer, operator_admin"):
        role_named("root")
