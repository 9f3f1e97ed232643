"""The product's settings: frozen, from ``PRW_PRODUCT_…`` or the table ``[product]`` of the settings file."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pydantic import Field, SecretStr
from pydantic_settings import SettingsConfigDict

from prw_base.server.settings import ServerSettings


class ProductSettings(ServerSettings):
    """Everything that the product's programs are told; `certificate` and `max_calls` hold for HTTP and gRPC alike."""

    model_config = SettingsConfigDict(
        frozen=True, env_prefix="PRW_PRODUCT_", env_nested_delimiter="__", extra="ignore"
    )
    toml_table: ClassVar[str | None] = "product"

    tenant_id: str = "ten_primary"
    """The tenant whose catalogue this deployment projects and serves."""
    catalog_id: str = "cat_primary"
    """Its catalogue."""

    resolver_address: str = "127.0.0.1:7600"
    """Where the resolver serves ChangeService, ``host:port``."""
    resolver_authority: Path | None = None
    """PEM file of the authority of the resolver's certificate; turns TLS on."""
    resolver_plaintext: bool = False
    """Whether the token may go to another machine without TLS: a private network's own risk."""
    token: SecretStr | None = None
    """The token of the product's machine client, with the scopes `changes:read` and `exports:read`."""
    token_file: Path | None = None
    """A file with that token, read again for each call, so that a rotated one is taken up."""
    consumer_id: str = Field(default="product", pattern=r"^[A-Za-z0-9_.-]{1,128}$")
    """The name under which this deployment follows; one for each database."""
    batch_size: int = Field(default=250, ge=1, le=1000)
    """Most changes of one message and one transaction."""
    rebuild_by_itself: bool = True
    """Whether a follower builds the projection anew where it can never go on: its changes are pruned, or the history
    was restored. Without it, it stops and an operator runs `prw product rebuild`. The client needs `exports:read`."""

    http_address: str = "127.0.0.1:7680"
    """Where HTTP is served, ``host:port``; port 0 takes a free one."""
    address: str = "127.0.0.1:7601"
    follow_in_process: bool = False
    """Whether `serve` also follows; a fleet runs `follow` on one host of its own."""
