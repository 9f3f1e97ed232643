"""The collector's settings: one TOML file, with ``PRW_COLLECT_…`` in the environment above it.

Every error names the field and says what to write.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from prw_base.client import Retry
from prw_base.settings import Settings, explain
from prw_sdk.adapter import Adapter, AdapterSettings, Bound, Measure, Source
from prw_sdk.cli.endpoints import endpoint, must_be_address
from prw_sdk.cli.secrets import (
    SettingsUnusable,
    anchored,
    check_headers,
    fit,
    read,
    secret,
    token_in,
)
from prw_sdk.collect import RunLimits, SourceJob
from prw_sdk.collect.reading import AdapterFailed, foreign
from prw_sdk.evidence import Egress, Region
from prw_sdk.fetch.breaker import BreakerPolicy
from prw_sdk.fetch.browser import BrowserConfig
from prw_sdk.fetch.classify import Rule
from prw_sdk.fetch.guard import AddressRules
from prw_sdk.fetch.http import FetchLimits, NetConfig
from prw_sdk.fetch.polite import Politeness, user_agent
from prw_sdk.fetch.rendering import Pages
from prw_sdk.fetch.retry import RetryPolicy
from prw_sdk.plugins import Plugins, UnknownAdapter
from prw_sdk.spool.model import LOCAL_TENANT
from prw_sdk.uplink.address import ResolverAddress


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class FetchSection(_Section):
    """Bounds of fetching: seconds, bytes, attempts of one GET, failed runs of one item."""

    connect_timeout: float = Field(default=10.0, gt=0, le=60)
    page_timeout: float = Field(default=30.0, gt=0, le=300)
    max_bytes: int = Field(default=20 * 1024 * 1024, gt=0)
    max_redirects: int = Field(default=8, ge=0, le=20)
    attempts: int = Field(default=4, ge=1, le=10)
    backoff: float = Field(default=1.0, gt=0, le=86_400)
    backoff_cap: float = Field(default=30.0, gt=0, le=86_400)
    patience: float = Field(default=60.0, ge=0, le=86_400)
    item_budget: int = Field(default=5, ge=1, le=100)
    targets_at_once: int = Field(default=8, ge=1, le=64)
    breaker_failures: int = Field(default=20, ge=0, le=10_000)
    breaker_cool_down: float = Field(default=60.0, gt=0, le=86_400)

    def limits(self) -> FetchLimits:
        """The bounds of one page."""
        return FetchLimits(
            self.connect_timeout, self.page_timeout, self.max_bytes, self.max_redirects
        )

    def retry(self) -> RetryPolicy:
        """How one GET is retried."""
        return RetryPolicy(self.attempts, self.backoff, self.backoff_cap, self.patience)

    def breaker(self) -> BreakerPolicy:
        """When a source is left alone, and for how long."""
        return BreakerPolicy(self.breaker_failures, self.breaker_cool_down)


class RateSection(_Section):
    """Manners towards each host."""

    per_second: float = Field(default=2.0, gt=0)
    at_once: int = Field(default=2, ge=1, le=64)
    max_crawl_delay: float = Field(default=60.0, ge=0, le=86_400)
    longest_pause: float = Field(default=3600.0, gt=0, le=86_400)

    def manners(self) -> Politeness:
        """The same, as the fetch layer takes it."""
        return Politeness(self.per_second, self.at_once, self.max_crawl_delay, self.longest_pause)


class BrowserSection(_Section):
    """The Chromium that opens pages for adapters that render; found by its usual names where none is given."""

    executable: Path | None = None
    pages_at_once: int = Field(default=2, ge=1, le=32)

    def to_config(self) -> BrowserConfig:
        """The same, as the fetch layer takes it."""
        return BrowserConfig(self.executable, self.pages_at_once)


class BoundSection(_Section):
    """What a run must come to: `records`, or the `share` of the records that have an `attribute`."""

    measure: Measure
    minimum: Decimal | None = Field(default=None, ge=0)
    maximum: Decimal | None = Field(default=None, ge=0)
    attribute: str | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> BoundSection:
        if self.minimum is None and self.maximum is None:
            raise ValueError("give a minimum, a maximum, or both")
        if (self.measure is Measure.SHARE) != (self.attribute is not None):
            raise ValueError('a measure "share" names its attribute, and no other measure has one')
        return self

    def to_bound(self) -> Bound:
        """The same, as a run takes it."""
        return Bound(self.measure, self.minimum, self.maximum, self.attribute)


class PlaceSection(_Section):
    """Where the collector runs, and the country that sources see; recorded, and never used as a market."""

    country: str = Field(default="", pattern="^([A-Z]{2})?$")
    label: str = ""
    egress_country: str = Field(default="", pattern="^([A-Z]{2})?$")


class RetrySection(_Section):
    """Backoff of calls to the resolver: seconds, their cap, and attempts; the contract's figures by default."""

    base: float = Field(default=1.0, gt=0, le=86_400)
    cap: float = Field(default=300.0, gt=0, le=86_400)
    attempts: int = Field(default=8, ge=1, le=100)

    def to_retry(self) -> Retry:
        """The same, as the client takes it."""
        seconds = timedelta(seconds=1)
        return Retry(self.attempts, self.base * seconds, self.cap * seconds)


class ResolverSection(_Section):
    """The resolver to send to. The token comes from `token` or from the file `token_file`."""

    address: str = Field(min_length=3)
    token: SecretStr | None = None
    token_file: Path | None = None
    ca: Path | None = None
    plaintext: bool = False
    worker: str | None = None
    instance: str | None = None
    at_once: int = Field(default=4, ge=1, le=32)
    retry: RetrySection = RetrySection()

    def to_address(self) -> ResolverAddress:
        """The resolver and the credential for it."""
        return ResolverAddress(
            address=self.address,
            token=self._token(),
            ca=None if self.ca is None else read(self.ca, "resolver.ca"),
            plaintext=self.plaintext,
            worker=self.worker,
            instance=self.instance,
            at_once=self.at_once,
            retry=self.retry.to_retry(),
        )

    def _token(self) -> Callable[[], str]:
        if self.token is not None:
            token = fit(self.token.get_secret_value(), "resolver.token", "what is given")
            return lambda: token
        path = self.token_file
        if path is None:
            raise SettingsUnusable(
                "resolver: give token_file (or PRW_COLLECT_RESOLVER__TOKEN), "
                "as made by `prw resolver client provision`"
            )
        return lambda: token_in(path)


class SourceSection(_Section):
    """One source. `trusted` is for whoever provisions the resolver from the same file; no collector reads it."""

    id: str = Field(pattern=r"^[A-Za-z0-9_.-]{1,128}$")
    adapter: str
    locale: str = Field(default="en_US", pattern="^[a-z]{2,3}([_-][A-Za-z0-9]{2,8})*$")
    currency: str | None = Field(default=None, pattern="^[A-Z]{3}$")
    trusted: bool = False
    resolve: Mapping[str, str] = Field(default_factory=dict)
    allow_private: tuple[str, ...] = ()
    headers: Mapping[str, Mapping[str, str]] = Field(default_factory=dict)
    settings: Mapping[str, Any] = Field(default_factory=dict)
    third_parties: tuple[str, ...] = ()
    rules_off: tuple[Rule, ...] = ()
    bounds: tuple[BoundSection, ...] = ()
    may_be_empty: bool = False

    @field_validator("resolve")
    @classmethod
    def _endpoints(cls, value: Mapping[str, str]) -> Mapping[str, str]:
        for name, address in value.items():
            endpoint(name)
            must_be_address(address)
        return value

    @field_validator("headers")
    @classmethod
    def _headers(cls, value: Mapping[str, Mapping[str, str]]) -> Mapping[str, Mapping[str, str]]:
        check_headers(value)
        return value

    def rules(self) -> AddressRules:
        """What the source may connect to."""
        resolve = {endpoint(name): endpoint(to) for name, to in self.resolve.items()}
        allowed = frozenset(name.lower() for name in self.allow_private)
        return AddressRules(allowed, MappingProxyType(resolve))

    def pages(self) -> Pages:
        """How a browser opens its pages: in the source's language, with the hosts that it may ask besides."""
        third = frozenset(name.lower() for name in self.third_parties)
        return Pages(self.locale.replace("_", "-"), third)

    def credentials(self) -> Mapping[str, Mapping[str, str]]:
        """Headers by host, with ``env:NAME`` and ``file:PATH`` replaced by what they stand for."""
        return {
            host.lower(): {
                name: secret(value, f"source {self.id}: headers.{host}.{name}")
                for name, value in headers.items()
            }
            for host, headers in self.headers.items()
        }


class CollectorSettings(Settings):
    """The whole file."""

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", env_prefix="PRW_COLLECT_", env_nested_delimiter="__"
    )
    spool: Path = Path("spool")
    contact: str = Field(
        default="",
        pattern=r"^\s*(([^@\s]+@[^@\s]+|https?://\S+)\s*)?$",
        description="A mail address or URL where a source can reach the operator.",
    )
    tenant: str = LOCAL_TENANT
    fetch: FetchSection = FetchSection()
    rate: RateSection = RateSection()
    place: PlaceSection = PlaceSection()
    keep: bool = Field(
        default=True, description="False for a collector that keeps nothing between runs."
    )
    browser: BrowserSection = BrowserSection()
    resolver: ResolverSection | None = None
    source: tuple[SourceSection, ...] = ()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment above the file, which `load` hands over."""
        return env_settings, init_settings

    def limits(self) -> RunLimits:
        """The bounds of a run."""
        fetch = self.fetch
        return RunLimits(fetch.targets_at_once, fetch.item_budget, self.rate.manners())

    def jobs(self, plugins: Plugins, names: tuple[str, ...] = ()) -> tuple[SourceJob, ...]:
        """A job for each named source, or for all; raises `SettingsUnusable`."""
        known = {source.id: source for source in self.source}
        unknown = [name for name in names if name not in known]
        if unknown or not known:
            listed = ", ".join(known) or "none: add a [[source]] table"
            raise SettingsUnusable(f"no source {', '.join(unknown)} (sources: {listed})")
        return tuple(self._job(known[name], plugins) for name in names or known)

    def _job(self, section: SourceSection, plugins: Plugins) -> SourceJob:
        if not self.contact.strip():
            raise SettingsUnusable(
                "contact: write a mail address or URL where a source can reach you; "
                "it goes into the User-Agent"
            )
        source, adapter = _adapter_of(section, plugins)
        return SourceJob(
            tenant=self.tenant,
            source=source,
            adapter=adapter,
            net=NetConfig(
                user_agent(self.contact.strip()),
                section.rules(),
                self.fetch.limits(),
                self.fetch.retry(),
                section.credentials(),
                self.fetch.breaker(),
                frozenset(section.rules_off),
                section.pages(),
            ),
            region=Region(self.place.country, self.place.label),
            egress=Egress(self.place.egress_country),
            bounds=tuple(bound.to_bound() for bound in section.bounds),
            may_be_empty=section.may_be_empty,
        )


def load(path: Path) -> CollectorSettings:
    """The settings of that file; raises `SettingsUnusable`. Relative paths are taken from the file's folder."""
    if not path.is_file():
        raise SettingsUnusable(
            f"--config: no file {path}: write one with `prw collect example > {path}`"
        )
    try:
        values = tomllib.loads(read(path, "--config").decode("utf-8"))
        settings = CollectorSettings(**values)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as bad:
        raise SettingsUnusable(f"{path}: not TOML: {bad}") from bad
    except ValidationError as bad:
        raise SettingsUnusable(f"{path}: {explain(bad)}") from bad
    _refuse_twins(path, settings)
    return _anchored(settings, path.resolve().parent)


def _refuse_twins(path: Path, settings: CollectorSettings) -> None:
    ids = [source.id for source in settings.source]
    twins = sorted({name for name in ids if ids.count(name) > 1})
    if twins:
        raise SettingsUnusable(f"{path}: source id {', '.join(twins)} is given more than once")


def _anchored(settings: CollectorSettings, folder: Path) -> CollectorSettings:
    changes: dict[str, object] = {"spool": folder / settings.spool}
    if settings.resolver is not None:
        paths = {"token_file": settings.resolver.token_file, "ca": settings.resolver.ca}
        given = {name: folder / path for name, path in paths.items() if path is not None}
        changes["resolver"] = settings.resolver.model_copy(update=given)
    changes["source"] = tuple(
        one.model_copy(update={"headers": anchored(one.headers, folder)}) for one in settings.source
    )
    return settings.model_copy(update=changes)


def _adapter_of(section: SourceSection, plugins: Plugins) -> tuple[Source, Any]:
    try:
        kind = plugins.find(section.adapter)
        with foreign("its adapter"):
            adapter = kind()
            values = _values(section, adapter)
    except UnknownAdapter as unknown:
        refused = "".join(f"; refused: {problem}" for problem in plugins.problems)
        raise SettingsUnusable(f"source {section.id}: adapter: {unknown}{refused}") from unknown
    except AdapterFailed as broken:
        raise SettingsUnusable(
            f"source {section.id}: adapter {section.adapter}: {broken}"
        ) from broken
    if isinstance(values, ValidationError):
        raise SettingsUnusable(f"source {section.id}: settings: {explain(values)}") from values
    return Source(section.id, values, section.locale, section.currency), adapter


def _values(section: SourceSection, adapter: Adapter) -> AdapterSettings | ValidationError:
    try:
        return adapter.settings(**section.settings)
    except ValidationError as bad:
        return bad
