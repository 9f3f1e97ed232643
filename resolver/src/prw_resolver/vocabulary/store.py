"""SQL of published definitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg.types.json import Jsonb

from prw_base.server.database import Connection
from prw_base.server.sql import Statements
from prw_resolver.vocabulary.definitions import (
    AttributeDefinition,
    ClassDefinition,
    Generation,
    Recognition,
    Vocabulary,
)

_SQL = Statements("prw_resolver.vocabulary")


class Catalog:
    """The published definitions of one catalogue, in one transaction."""

    def __init__(self, conn: Connection, tenant_id: str, catalog_id: str) -> None:
        self._conn = conn
        self._ids = {"tenant_id": tenant_id, "catalog_id": catalog_id}

    async def _rows(self, name: str, **values: object) -> list[dict[str, Any]]:
        return await _SQL.rows(self._conn, name, **self._ids, **values)

    async def lock(self) -> bool:
        """Keep other publishers out until the transaction ends; False where there is no such catalogue."""
        return bool(await self._rows("lock_catalog"))

    async def add_class(self, definition: ClassDefinition) -> bool:
        """Publish a class; False where it was published."""
        values = {"class_id": definition.id, "parent_id": definition.parent}
        return bool(await self._rows("add_class", title=definition.title, **values))

    async def add_recognition(self, class_id: str, recognition: Recognition) -> bool:
        """Publish how a class is told; False where that version was published."""
        return bool(
            await self._rows(
                "add_recognition",
                class_id=class_id,
                version=recognition.version,
                definition=Jsonb(recognition.model_dump(mode="json")),
            )
        )

    async def add_attribute(self, definition: AttributeDefinition) -> bool:
        """Publish a version of an attribute; False where it was published."""
        return bool(
            await self._rows(
                "add_attribute",
                key=definition.key,
                version=definition.version,
                type=definition.type,
                unit=definition.unit,
                applies_to=list(definition.applies_to),
                public=definition.public,
                definition=Jsonb(definition.model_dump(mode="json")),
            )
        )

    async def add_generation(self, generation: Generation) -> bool:
        """Publish a generation; False where it was published."""
        rules = Jsonb(generation.model_dump(mode="json"))
        return bool(await self._rows("add_generation", generation=generation.number, rules=rules))

    async def active_generation(self) -> int | None:
        """The number of the generation that serves lookups, or None."""
        rows = await self._rows("active_generation")
        return rows[0]["generation"] if rows else None

    async def versions(self) -> Sequence[AttributeDefinition]:
        """Every version of every attribute."""
        rows = await self._rows("attributes")
        return [AttributeDefinition.model_validate(row["definition"]) for row in rows]

    async def generations(self) -> Sequence[Generation]:
        """Every generation."""
        rows = await self._rows("generations")
        return [Generation.model_validate(row["rules"]) for row in rows]

    async def recognitions(self) -> dict[tuple[str, int], Recognition]:
        """How classes are told, by class and version, the newest version last."""
        return {
            (row["class_id"], row["version"]): Recognition.model_validate(row["definition"])
            for row in await self._rows("recognitions")
        }

    async def classes(self) -> Sequence[ClassDefinition]:
        """Every class with the newest way to tell it, each after its parent."""
        newest = {key[0]: held for key, held in (await self.recognitions()).items()}
        rows = {row["class_id"]: row for row in await self._rows("classes")}
        found: dict[str, ClassDefinition] = {}
        while len(found) < len(rows):
            for class_id, row in rows.items():
                if row["parent_id"] is None or row["parent_id"] in found:
                    found[class_id] = ClassDefinition(
                        id=class_id,
                        title=row["title"],
                        parent=row["parent_id"],
                        recognition=newest.get(class_id),
                    )
        return list(found.values())

    async def vocabulary(self) -> Vocabulary:
        """Everything published, each definition at its newest version."""
        newest = {held.key: held for held in await self.versions()}
        return Vocabulary(
            classes=tuple(await self.classes()),
            attributes=tuple(newest.values()),
            generations=tuple(await self.generations()),
        )
