"""The resolver's settings: frozen, from ``PRW_RESOLVER_…`` or the table ``[resolver]`` of the settings file."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import ClassVar

from pydantic import Field, SecretStr
from pydantic_settings import SettingsConfigDict

from prw_base.server.settings import ServerSettings

MEBIBYTE = 1024 * 1024


class ResolverSettings(ServerSettings):
    """Everything that the resolver's programs are told.

    The state folder also holds objects, the token key and the control plane, unless other places are given.
    """

    model_config = SettingsConfigDict(
        frozen=True, env_prefix="PRW_RESOLVER_", env_nested_delimiter="__", extra="ignore"
    )
    toml_table: ClassVar[str | None] = "resolver"

    address: str = "127.0.0.1:7600"

    objects_folder: Path | None = None
    """Where evidence bytes are kept; below the state folder unless given."""
    relay_dsn: SecretStr | None = None
    """DSN of the login `resolver_relay`, which marks what is published; needed where `database_dsn` is given."""
    pruner_dsn: SecretStr | None = None
    """DSN of the login `resolver_pruner`, which takes away what everybody has; needed where `database_dsn` is given."""
    doctor_dsn: SecretStr | None = None
    """DSN of the login `resolver_doctor`, which reads what the invariants are about; needed where `database_dsn` is."""
    retention_age: timedelta = Field(default=timedelta(days=7), ge=timedelta(0))
    """How long a change is kept at least, whoever has it."""
    prune_interval: timedelta = Field(default=timedelta(minutes=1), gt=timedelta(0))
    """From one round of the pruner to the next."""
    lease_lifetime: timedelta = Field(
        default=timedelta(minutes=10), ge=timedelta(seconds=1), le=timedelta(days=1)
    )
    """How long a rebuild's lease lasts from its grant and from each renewal."""
    exports_folder: Path | None = None
    """Where snapshots for projections are written; below the state folder unless given."""
    exports_kept: int = Field(default=2, ge=0, le=100)
    """Exports of one catalogue whose files are kept once nobody holds them; older ones go when another is made."""
    exports_at_once: int = Field(default=2, ge=1, le=16)
    """Exports of one catalogue that may be written at once; one more is OVERLOADED."""
    alarm_positions: int = Field(default=1_000_000, ge=0)
    """Changes that one consumer or lease may hold back before an alarm; nothing is pruned for its sake."""
    alarm_bytes: int = Field(default=1024 * MEBIBYTE, ge=0)
    """The same in bytes."""
    alarm_age: timedelta = Field(default=timedelta(days=1), ge=timedelta(0))
    """The same by the age of the oldest change that is held back."""
    artifact_limit: int = Field(default=64 * MEBIBYTE, ge=1)
    """The greatest length of one artifact, in bytes."""
    upload_lifetime: timedelta = timedelta(seconds=300)
    """How long a declared upload may be made before it must be declared again."""
    put_limit: timedelta = timedelta(seconds=120)
    """How long the bytes of one upload may take to come in."""
    clock_skew: timedelta = timedelta(minutes=5)
    """How far a collector's clock may be ahead of the resolver's; what it dates later is refused."""
    lease: timedelta = timedelta(seconds=90)
    """How long a heartbeat keeps a long-running collector live."""
    reports_kept: timedelta = Field(default=timedelta(days=90), ge=timedelta(days=1))
    """How long reports of collectors' runs are kept; the last ones of each collector and source always are."""

    token_key: Path | None = None
    """PEM file of the key that signs tokens; made below the state folder at the first use."""
    token_issuer: str = "prw-resolver"
    token_audience: str = "prw-resolver"
    token_lifetime: timedelta = timedelta(days=90)
    """How long a token of a provisioned client is good, unless the client ends before."""

    control_folder: Path | None = None
    """Where the history epoch is kept, outside the database; below the state folder unless given."""
    workers_in_process: bool = True
    """Whether `serve` also works the jobs; a fleet runs `work` on hosts of its own."""
    worker_concurrency: int = Field(default=4, ge=1, le=64)
    """Jobs worked at once in one process."""
    readers: int = Field(default=2, ge=1, le=64)
    """Processes in which one worker's adapters read."""

    @property
    def objects(self) -> Path:
        """The folder of the object store."""
        return self.objects_folder or self.state_folder / "objects"

    @property
    def exports(self) -> Path:
        """The folder of exports."""
        return self.exports_folder or self.state_folder / "exports"

    @property
    def signing_key(self) -> Path:
        """The PEM file of the key that signs tokens."""
        return self.token_key or self.state_folder / "keys" / "tokens.pem"

    @property
    def control(self) -> Path:
        """The folder of the control plane."""
        return self.control_folder or self.state_folder / "control"
