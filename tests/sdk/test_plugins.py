"""Finding plugins: one that is bad is reported, and the rest load."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import pytest

from prw_sdk.adapter import Adapter, Excluded
from prw_sdk.evidence import AdapterVersion
from prw_sdk.hookspecs import hookimpl
from prw_sdk.plugins import GROUP, Plugins, RunObservers, UnknownAdapter, load, vocabularies
from tests.sdk.test_declarations import Sound


def sound(**declared: Any) -> type[Adapter]:
    """A sound adapter with something else declared."""
    return type("Made", (Sound,), declared)


@pytest.fixture
def made() -> Iterator[list[str]]:
    """Names of modules to forget afterwards."""
    names: list[str] = []
    yield names
    for name in names:
        sys.modules.pop(name, None)


def plugin(made: list[str], name: str, *adapters: object, hook: bool = True) -> EntryPoint:
    """An installed distribution's entry point whose module brings those adapters."""
    module = ModuleType(f"prw_test_plugin_{name}")
    if hook:

        @hookimpl
        def prw_adapters() -> list[object]:
            return list(adapters)

        module.prw_adapters = prw_adapters  # type: ignore[attr-defined]  # a module made here
    sys.modules[module.__name__] = module
    made.append(module.__name__)
    return EntryPoint(name, module.__name__, GROUP)


def test_the_installed_plugins_are_found() -> None:
    """The schemaorg plugin comes by its entry point, without a problem."""
    found = load()
    assert found.problems == ()
    assert found.find("schemaorg").name == "schemaorg"


def test_an_adapter_is_found_by_name_and_version(made: list[str]) -> None:
    """The newest under its name, each under its version, and an unknown one with what is installed."""
    versions = ("1.9.0", "1.10.0", "1.10.0-rc.1")
    adapters = [sound(version=version) for version in versions]
    found = load([plugin(made, "a", *adapters)])
    assert found.problems == ()
    assert found.find("sound").version == "1.10.0"
    assert found.find("sound", "1.9.0").version == "1.9.0"
    assert set(found.versions) == {AdapterVersion("sound", version) for version in versions}
    with pytest.raises(UnknownAdapter, match=r"sound@2\.0\.0 \(installed: sound@1\.10\.0, "):
        found.find("sound", "2.0.0")
    with pytest.raises(UnknownAdapter, match="installed: none"):
        Plugins().find("other")


def test_a_plugin_that_cannot_be_imported_stops_no_other(made: list[str]) -> None:
    """Its problem names the plugin and what went wrong."""
    broken = EntryPoint("broken", "prw_test_no_such_module", GROUP)
    found = load([broken, plugin(made, "good", Sound)])
    assert list(found.adapters) == ["sound"]
    assert [problem.plugin for problem in found.problems] == ["broken"]
    assert "ModuleNotFoundError" in str(found.problems[0])


def test_a_plugin_whose_hook_raises_stops_no_other(made: list[str]) -> None:
    """Foreign code may raise anything."""

    class Raising:
        @hookimpl
        def prw_adapters(self) -> list[type[Adapter]]:
            raise RuntimeError("no licence")

    module = ModuleType("prw_test_plugin_raising")
    module.instance = Raising()  # type: ignore[attr-defined]  # a module made here
    sys.modules[module.__name__] = module
    made.append(module.__name__)
    bad = EntryPoint("bad", "prw_test_plugin_raising:instance", GROUP)
    found = load([bad, plugin(made, "good", Sound)])
    assert list(found.adapters) == ["sound"]
    assert "no licence" in str(found.problems[0])


def test_a_bad_adapter_stops_no_other_of_its_plugin(made: list[str]) -> None:
    """A refusal says which adapter, and what to write."""
    bad = sound(name="bad", fields={"Seller": Excluded("not read today")})
    found = load([plugin(made, "mixed", bad, Sound)])
    assert list(found.adapters) == ["sound"]
    assert {problem.adapter for problem in found.problems} == {"Made"}
    assert any("puts it off" in problem.message for problem in found.problems)


def test_two_adapters_of_one_name_and_version_are_one_too_many(made: list[str]) -> None:
    """The first is kept; the second is told who has the name."""
    found = load([plugin(made, "a", Sound), plugin(made, "b", sound())])
    assert found.find("sound") is Sound
    (problem,) = found.problems
    assert problem.plugin == "b"
    assert "sound@1.0.0 is already brought by" in problem.message


@pytest.mark.parametrize("adapter", [Sound(), "sound", None, int])
def test_what_is_no_adapter_class_is_refused(made: list[str], adapter: object) -> None:
    """An instance, a name, another class."""
    found = load([plugin(made, "a", adapter)])
    assert not found.adapters
    assert "return the class" in found.problems[0].message


def test_a_plugin_without_a_hook_is_told_to_write_one(made: list[str]) -> None:
    """An entry point to a module that implements nothing is a mistake."""
    found = load([plugin(made, "empty", hook=False)])
    assert "write @hookimpl" in found.problems[0].message


def test_vocabularies_are_had_by_plugin_and_one_that_raises_stops_no_other(made: list[str]) -> None:
    """TOML texts, for the resolver to publish."""

    class Speaking:
        def __init__(self, text: str | None) -> None:
            self.text = text

        @hookimpl
        def prw_vocabulary(self) -> str:
            if self.text is None:
                raise RuntimeError("no words")
            return self.text

    points = [plugin(made, "adapters", Sound)]
    for name, text in (("speaking", "classes = []"), ("silent", None)):
        module = ModuleType(f"prw_test_plugin_{name}")
        module.instance = Speaking(text)  # type: ignore[attr-defined]  # a module made here
        sys.modules[module.__name__] = module
        made.append(module.__name__)
        points.append(EntryPoint(name, f"{module.__name__}:instance", GROUP))
    found, problems = vocabularies(points)
    assert found == {"speaking": "classes = []"}
    assert [(problem.plugin, "no words" in problem.message) for problem in problems] == [
        ("silent", True)
    ]


def observing(made: list[str], name: str, observer: object) -> EntryPoint:
    """A plugin that observes runs; a class of exception as the observer is raised by the hook itself."""
    module = ModuleType(f"prw_test_plugin_{name}")

    @hookimpl
    def prw_run_observer() -> object:
        if isinstance(observer, type) and issubclass(observer, Exception):
            raise observer("no licence")
        return observer

    module.prw_run_observer = prw_run_observer  # type: ignore[attr-defined]  # a module made here
    sys.modules[module.__name__] = module
    made.append(module.__name__)
    return EntryPoint(name, module.__name__, GROUP)


def test_observers_see_a_run_and_one_that_raises_takes_nothing_down(made: list[str]) -> None:
    """It is reported once and told no more; the others see everything."""
    seen: list[object] = []
    told: list[object] = []

    def failing(event: object) -> None:
        told.append(event)
        raise ZeroDivisionError("oh")

    observers = RunObservers(
        [
            observing(made, "failing", failing),
            observing(made, "refusing", RuntimeError),
            EntryPoint("missing", "prw_test_no_such_module", GROUP),
            observing(made, "seeing", seen.append),
            plugin(made, "adapters", Sound),
        ]
    )
    for event in ("started", "ended"):
        observers(event)
    assert seen == ["started", "ended"]
    assert told == ["started"]
    assert [problem.plugin for problem in observers.problems] == ["refusing", "missing", "failing"]
    assert "ZeroDivisionError: oh; it is told no more" in observers.problems[-1].message


def test_a_plugin_that_observes_alone_is_no_problem(made: list[str]) -> None:
    """It brings no adapter, and need not."""
    assert load([observing(made, "seeing", print)]).problems == ()
