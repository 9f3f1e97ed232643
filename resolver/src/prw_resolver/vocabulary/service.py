"""Publish a vocabulary, and hand out what is published."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from pydantic import ValidationError

from prw.errors import Code, PrwError
from prw_base.server.database import Connection, Database
from prw_resolver.vocabulary.definitions import Vocabulary
from prw_resolver.vocabulary.normalisers import NORMALISERS
from prw_resolver.vocabulary.store import Catalog

PACKAGED = "storage.toml"
"""The vocabulary that comes with the resolver."""


@dataclass(frozen=True, slots=True)
class Published:
    """How many definitions were new, how many stood there already, and the active generation after it."""

    new: int
    known: int
    active_generation: int


def packaged() -> str:
    """The text of the vocabulary that comes with the resolver, to be published or changed."""
    return resources.files("prw_resolver.vocabulary").joinpath(PACKAGED).read_text("utf-8")


def read(file: Path | None = None) -> Vocabulary:
    """The vocabulary of a TOML file, or the packaged one; VALIDATION_FAILED says what is wrong with it."""
    try:
        text = packaged() if file is None else file.read_text("utf-8")
        found = Vocabulary.model_validate(tomllib.loads(text))
    except (OSError, tomllib.TOMLDecodeError, ValidationError) as error:
        raise PrwError(
            Code.VALIDATION_FAILED, f"the vocabulary cannot be used: {error}", field="file"
        ) from error
    for definition in found.attributes:
        if definition.normaliser not in NORMALISERS:
            message = f"{definition.key}: there is no normaliser {definition.normaliser!r}"
            raise PrwError(Code.VALIDATION_FAILED, message, field="attributes")
    return found


async def publish(
    db: Database, tenant_id: str, catalog_id: str, file: Path | None = None
) -> Published:
    """Publish a file (or the packaged vocabulary) for a catalogue; publishing it again changes nothing.

    IMMUTABLE_METADATA_CONFLICT where something published is defined otherwise under the same version, NOT_FOUND for
    an unknown catalogue. Either leaves everything as it was. A catalogue's first generation is active at once, later
    ones are candidates until they are activated.
    """
    vocabulary = read(file)

    async def work(conn: Connection) -> Published:
        catalog = Catalog(conn, tenant_id, catalog_id)
        if not await catalog.lock():
            raise PrwError(Code.NOT_FOUND, f"no catalogue {catalog_id!r}", field="catalog_id")
        return await _publish(catalog, vocabulary)

    return await db.run(work, tenant_id)


async def load(conn: Connection, tenant_id: str, catalog_id: str) -> Vocabulary:
    """What is published for a catalogue, each definition at its newest version; empty where nothing is."""
    return await Catalog(conn, tenant_id, catalog_id).vocabulary()


async def active_generation(conn: Connection, tenant_id: str, catalog_id: str) -> int | None:
    """The generation that captures pin when they arrive; None where nothing is published."""
    return await Catalog(conn, tenant_id, catalog_id).active_generation()


async def _publish(catalog: Catalog, vocabulary: Vocabulary) -> Published:
    added = [
        *[await catalog.add_class(held) for held in vocabulary.classes],
        *[
            await catalog.add_recognition(held.id, held.recognition)
            for held in vocabulary.classes
            if held.recognition is not None
        ],
        *[await catalog.add_attribute(held) for held in vocabulary.attributes],
        *[await catalog.add_generation(held) for held in vocabulary.generations],
    ]
    await _check_unchanged(catalog, vocabulary)
    active = await catalog.active_generation()
    if active is None:
        raise PrwError(
            Code.VALIDATION_FAILED, "the vocabulary has no identity generation", field="generations"
        )
    return Published(sum(added), len(added) - sum(added), active)


async def _check_unchanged(catalog: Catalog, vocabulary: Vocabulary) -> None:
    attributes = {(held.key, held.version): held for held in await catalog.versions()}
    for held in vocabulary.attributes:
        _same(
            f"attribute {held.key} version {held.version}", attributes[held.key, held.version], held
        )
    generations = {held.number: held for held in await catalog.generations()}
    for generation in vocabulary.generations:
        _same(f"generation {generation.number}", generations[generation.number], generation)
    told = await catalog.recognitions()
    parents = {held.id: held.parent for held in await catalog.classes()}
    for cls in vocabulary.classes:
        _same(f"the parent of class {cls.id}", parents[cls.id], cls.parent)
        if cls.recognition is not None:
            name = f"the recognition of class {cls.id} version {cls.recognition.version}"
            _same(name, told[cls.id, cls.recognition.version], cls.recognition)


def _same(what: str, published: object, wanted: object) -> None:
    if published != wanted:
        raise PrwError(
            Code.IMMUTABLE_METADATA_CONFLICT,
            f"{what} is published with another content: what is published never changes, raise the version",
        )
