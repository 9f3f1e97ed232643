"""Finding adapters: entry points of the group ``prw.adapters``, loaded through pluggy, validated at once.

One plugin that cannot be imported, raises or declares badly is reported as a `Problem`; the rest load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType

import pluggy
from packaging.version import InvalidVersion, Version

from prw_sdk.adapter import Adapter, declaration_faults
from prw_sdk.evidence import AdapterVersion
from prw_sdk.hookspecs import PROJECT, PluginHooks

GROUP = "prw.adapters"
NO_ADAPTERS: Mapping[AdapterVersion, type[Adapter]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a plugin, or one adapter of it, was refused, and what to write instead."""

    plugin: str
    message: str
    adapter: str | None = None
    distribution: str | None = None

    def __str__(self) -> str:
        brought = self.distribution not in (None, self.plugin)
        where = f"{self.plugin} of {self.distribution}" if brought else self.plugin
        where = where if self.adapter is None else f"{where} ({self.adapter})"
        return f"{where}: {self.message}"


class _Raised(Exception):
    """What foreign code raised, of whatever kind; its own words are kept."""


@contextmanager
def _foreign() -> Iterator[None]:
    """Run a plugin's code: whatever it raises becomes `_Raised`, a wish to end the process included.

    Only the operator's own interrupt passes.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _Raised(f"{type(error).__name__}: {error}") from error


def _problem(point: EntryPoint, message: str, adapter: str | None = None) -> Problem:
    return Problem(point.name, message, adapter, None if point.dist is None else point.dist.name)


class UnknownAdapter(LookupError):
    """No installed plugin brings that adapter; the message says what is installed."""


@dataclass(frozen=True, slots=True)
class Plugins:
    """The adapters that were found. `adapters` has the newest version under each name, `versions` every one."""

    adapters: Mapping[str, type[Adapter]] = field(default_factory=lambda: MappingProxyType({}))
    problems: tuple[Problem, ...] = ()
    versions: Mapping[AdapterVersion, type[Adapter]] = field(default_factory=lambda: NO_ADAPTERS)

    def find(self, name: str, version: str | None = None) -> type[Adapter]:
        """The adapter of that name: that very version, or the newest; raises `UnknownAdapter`."""
        found = (
            self.adapters.get(name)
            if version is None
            else self.versions.get(AdapterVersion(name, version))
        )
        if found is not None:
            return found
        wanted = name if version is None else f"{name}@{version}"
        installed = ", ".join(sorted(map(str, self.versions))) or "none"
        raise UnknownAdapter(f"no installed plugin brings {wanted} (installed: {installed})")


def load(points: Iterable[EntryPoint] | None = None) -> Plugins:
    """Load every installed plugin, or just those of the given entry points."""
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(PluginHooks)
    found: dict[AdapterVersion, type[Adapter]] = {}
    problems: list[Problem] = []
    for point in sorted(
        entry_points(group=GROUP) if points is None else points, key=lambda point: point.name
    ):
        brought, refused = _brought(manager, point)
        problems.extend(refused)
        for adapter in brought:
            problems.extend(_admit(point, adapter, found))
    return Plugins(_newest(found), tuple(problems), MappingProxyType(found))


def brought(point: EntryPoint) -> tuple[tuple[type[Adapter], ...], tuple[Problem, ...]]:
    """The adapter classes of one plugin as they are, however badly they declare, and why it could not be loaded."""
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(PluginHooks)
    found, problems = _brought(manager, point)
    classes = [one for one in found if isinstance(one, type) and issubclass(one, Adapter)]
    return tuple(classes), tuple(problems)


def vocabularies(
    points: Iterable[EntryPoint] | None = None,
) -> tuple[Mapping[str, str], tuple[Problem, ...]]:
    """The vocabularies that plugins bring (TOML texts, by plugin), and what went wrong with those of others."""
    found: dict[str, str] = {}
    problems: list[Problem] = []
    for point in entry_points(group=GROUP) if points is None else points:
        try:
            with _foreign():
                for text in _registered(point).hook.prw_vocabulary():
                    found[point.name] = str(text)
        except _Raised as error:
            problems.append(_problem(point, f"its vocabulary could not be had: {error}"))
    return MappingProxyType(found), tuple(problems)


def _registered(point: EntryPoint) -> pluggy.PluginManager:
    """A manager that knows this plugin alone."""
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(PluginHooks)
    manager.register(point.load(), name=point.name)
    return manager


class RunObservers:
    """All observers of a run as one function; whatever one of them raises is kept in `problems`, and ends it alone."""

    def __init__(self, points: Iterable[EntryPoint] | None = None) -> None:
        self.problems: list[Problem] = []
        self._observers: dict[str, Callable[[object], None]] = {}
        for point in entry_points(group=GROUP) if points is None else points:
            self._take(point)

    def _take(self, point: EntryPoint) -> None:
        try:
            with _foreign():
                for number, observer in enumerate(_registered(point).hook.prw_run_observer()):
                    self._observers[f"{point.name} {number}" if number else point.name] = observer
        except _Raised as error:
            self._report(point.name, error)

    def __call__(self, event: object) -> None:
        """Tell every observer of an event; never raises."""
        for name, observer in list(self._observers.items()):
            try:
                with _foreign():
                    observer(event)
            except _Raised as error:
                del self._observers[name]
                self._report(name, error)

    def _report(self, name: str, error: _Raised) -> None:
        told = f"as an observer it raised {error}; it is told no more"
        self.problems.append(Problem(name, told))


def _brought(
    manager: pluggy.PluginManager, point: EntryPoint
) -> tuple[list[object], list[Problem]]:
    """Run foreign code: whatever it raises is reported, and stops this plugin alone."""
    try:
        with _foreign():
            return _adapters(manager, point), []
    except _Raised as error:
        return [], [_problem(point, f"could not be loaded: {error}")]


def _adapters(manager: pluggy.PluginManager, point: EntryPoint) -> list[object]:
    plugin = point.load()
    others = manager.get_plugins()
    manager.register(plugin, name=point.name)
    if not manager.get_hookcallers(plugin):
        raise TypeError(
            "it implements no hook: write @hookimpl def prw_adapters(): return [YourAdapter]"
        )
    answers = manager.subset_hook_caller("prw_adapters", remove_plugins=others)()
    return [adapter for answer in answers for adapter in answer]


def _admit(
    point: EntryPoint, adapter: object, found: dict[AdapterVersion, type[Adapter]]
) -> list[Problem]:
    """Take an adapter into `found`, or say why it is refused."""
    if not (isinstance(adapter, type) and issubclass(adapter, Adapter)):
        wanted = "return the class, a subclass of prw_sdk.adapter.Adapter"
        return [_problem(point, f"{adapter!r} is no adapter: {wanted}")]
    try:
        with _foreign():
            faults = declaration_faults(adapter) or _name_faults(adapter, found)
    except _Raised as error:
        return [_problem(point, f"its declaration could not be looked at: {error}")]
    if not faults:
        found[AdapterVersion(adapter.name, adapter.version)] = adapter
    return [_problem(point, fault, adapter.__name__) for fault in faults]


def _name_faults(
    adapter: type[Adapter], found: Mapping[AdapterVersion, type[Adapter]]
) -> tuple[str, ...]:
    identity = AdapterVersion(adapter.name, adapter.version)
    if identity not in found:
        return ()
    other = f"{found[identity].__module__}.{found[identity].__qualname__}"
    return (f"{identity} is already brought by {other}: write another name, or raise the version",)


def _newest(found: Mapping[AdapterVersion, type[Adapter]]) -> Mapping[str, type[Adapter]]:
    ordered = sorted(found, key=_order)
    return MappingProxyType({identity.name: found[identity] for identity in ordered})


def _order(identity: AdapterVersion) -> tuple[str, Version]:
    try:
        return identity.name, Version(identity.version)
    except InvalidVersion:
        return identity.name, Version("0")
