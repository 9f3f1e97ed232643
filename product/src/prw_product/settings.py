"""The product's settings: frozen, from ``PRW_PRODUCT_…`` or the table ``[product]`` of the settings file."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pydantic import Field, SecretStr
from pydantic_settings import SettingsConfigDict

from prw_base.settings import Settings


class ProductSettings(Settings):
    """Everything that the product's programs are told; the default is one machine with a state folder."""

    model_config = SettingsConfigDict(
        frozen=True, env_prefix="PRW_PRODUCT_", env_nested_delimiter="__", extra="ignore"
    )
    toml_table: ClassVar[str | None] = "product"

    tenant_id: str = "ten_primary"
    """The tenant whose catalogue this deployment projects and serves."""
    catalog_id: str = "cat_primary"
    """Its catalogue."""

    state_folder: Path = Path("state")
    """Where the embedded PostgreSQL lives."""
    database_dsn: SecretStr | None = None
    """DSN of the login `product_app`. Without one PostgreSQL is started in the state folder."""
    owner_dsn: SecretStr | None = None
    """DSN of a login that may become `prw_owner`; only migrations use it."""
    database_pool: int = Field(default=10, ge=2, le=200)
    """Most connections to PostgreSQL of one process."""

    resolver_address: str = "127.0.0.1:7600"
    """Where the resolver serves ChangeService, ``host:port``."""
    resolver_authority: Path | None = None
    """PEM file of the authority of the resolver's certificate; turns TLS on."""
    resolver_plaintext: bool = False
    """Whether the token may go to another machine without TLS: a private network's own risk."""
    token: SecretStr | None = None
    """The token of the product's machine client, with the scope `changes:read`."""
    token_file: Path | None = None
    """A file with that token, read again for each call, so that a rotated one is taken up."""
    consumer_id: str = Field(default="product", pattern=r"^[A-Za-z0-9_.-]{1,128}$")
    """The name under which this deployment follows; one for each database."""
    batch_size: int = Field(default=250, ge=1, le=1000)
    """Most changes of one message and one transaction."""

    http_address: str = "127.0.0.1:7680"
    """Where HTTP is served, ``host:port``; port 0 takes a free one."""
    address: str = "127.0.0.1:7601"
    """Where gRPC is served, ``host:port``; port 0 takes a free one."""
    certificate: Path | None = None
    """PEM file of the servers' certificate; turns TLS on together with `certificate_key`."""
    certificate_key: Path | None = None
    """PEM file of the certificate's key."""
    max_calls: int = Field(default=512, ge=1)
    """Most calls at once, of each server; one more is OVERLOADED."""
    follow_in_process: bool = False
    """Whether `serve` also follows; a fleet runs `follow` on one host of its own."""
    json_logs: bool = False
    """Logs as one JSON object a line."""
