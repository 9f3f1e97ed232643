-- name: add_class
-- Publish a class; nothing comes back where it is published already.
insert into resolver.class_definition (tenant_id, catalog_id, class_id, parent_id, title)
values (%(tenant_id)s, %(catalog_id)s, %(class_id)s, %(parent_id)s, %(title)s)
on conflict (tenant_id, catalog_id, class_id) do nothing
returning class_id;

-- name: add_recognition
-- Publish how records of a class are told; nothing comes back where that version is published already.
insert into resolver.class_recognition (tenant_id, catalog_id, class_id, version, definition)
values (%(tenant_id)s, %(catalog_id)s, %(class_id)s, %(version)s, %(definition)s)
on conflict (tenant_id, catalog_id, class_id, version) do nothing
returning class_id;

-- name: add_attribute
-- Publish a version of an attribute; nothing comes back where it is published already.
insert into resolver.attribute_definition (
    tenant_id, catalog_id, attribute_key, version, value_type, unit, applies_to, is_public, definition
)
values (
    %(tenant_id)s, %(catalog_id)s, %(key)s, %(version)s, %(type)s, %(unit)s, %(applies_to)s, %(public)s,
    %(definition)s
)
on conflict (tenant_id, catalog_id, attribute_key, version) do nothing
returning attribute_key;

-- name: add_generation
-- Publish a generation: a catalogue's first one is active at once, since nothing has to be moved to it.
insert into resolver.identity_generation (tenant_id, catalog_id, generation, status, rules)
values (
    %(tenant_id)s, %(catalog_id)s, %(generation)s,
    case
        when exists (
            select from resolver.identity_generation as g
            where g.tenant_id = %(tenant_id)s and g.catalog_id = %(catalog_id)s
        ) then 'candidate' else 'active'
    end,
    %(rules)s
)
on conflict (tenant_id, catalog_id, generation) do nothing
returning generation;

-- name: classes
-- The classes of a catalogue.
select class_id, parent_id, title from resolver.class_definition
where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s order by class_id;

-- name: recognitions
-- Every version of how classes are told, the newest last.
select class_id, version, definition from resolver.class_recognition
where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s order by class_id, version;

-- name: attributes
-- Every version of every attribute, the newest last.
select attribute_key, version, definition from resolver.attribute_definition
where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s order by attribute_key, version;

-- name: generations
-- The generations of a catalogue.
select generation, status, rules from resolver.identity_generation
where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s order by generation;

-- name: active_generation
-- The generation that serves lookups now.
select generation from resolver.identity_generation
where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s and status = 'active';

-- name: lock_catalog
-- One publisher at a time for a catalogue; nothing comes back where there is no such catalogue.
select catalog_id from resolver.catalog
where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s for update;
