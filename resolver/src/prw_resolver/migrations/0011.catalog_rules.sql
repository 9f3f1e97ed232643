-- Catalog and review: the invariants that no constraint can hold, since they look at other rows or at the row as it was.
-- depends: 0010.stream

set local role prw_owner;

-- INV-01: a mapping targets an item that exists and is active at that revision.
create function resolver.catalog_mapping_targets_active_item() returns trigger language plpgsql as $$
begin
    if new.status = 'active' then
        perform 1 from resolver.catalog_item i
          where i.tenant_id = new.tenant_id and i.catalog_id = new.catalog_id and i.item_id = new.item_id
            and i.status = 'active' and i.revision = new.item_revision
            for share;
        if not found then
            raise exception 'ITEM_NOT_ACTIVE' using errcode = 'PRW01',
                detail = format('item %s is not active at revision %s', new.item_id, new.item_revision);
        end if;
    end if;
    return new;
end $$;
create trigger listing_mapping_targets_active_item before insert or update on resolver.listing_mapping
    for each row execute function resolver.catalog_mapping_targets_active_item();

-- INV-07: an item has an attribute only where the attribute's definition applies to its class or one above.
create function resolver.catalog_attribute_applies() returns trigger language plpgsql as $$
begin
    if not exists (
        select from resolver.catalog_item i
         where i.tenant_id = new.tenant_id and i.catalog_id = new.catalog_id and i.item_id = new.item_id
           and resolver.attribute_applies(new.tenant_id, new.catalog_id, i.class_id, new.attribute_key,
                                          new.definition_version)) then
        raise exception 'INV-07: % does not apply to the class of item %', new.attribute_key, new.item_id
            using errcode = 'check_violation', constraint = 'catalog_item_attribute_applies';
    end if;
    return new;
end $$;
create constraint trigger catalog_item_attribute_applies after insert or update on resolver.catalog_item_attribute
    for each row execute function resolver.catalog_attribute_applies();

-- Rule 8: an observation is never replaced by an older one.
create function resolver.catalog_newest_observation_counts() returns trigger language plpgsql as $$
begin
    if new.observed_at < old.observed_at then
        raise exception 'STALE_FACT_REVISION' using errcode = 'PRW01',
            detail = format('listing %s was observed later already', new.listing_id);
    end if;
    return new;
end $$;
create trigger inventory_observation_newest_counts before update on resolver.inventory_observation
    for each row execute function resolver.catalog_newest_observation_counts();

-- INV-05: what rests on former decisions rests on decisions that are there; a list can be no foreign key.
create function resolver.review_prior_decisions_exist() returns trigger language plpgsql as $$
begin
    if exists (
        select from unnest(new.prior_decisions) as prior (decision_id)
         where not exists (
            select from resolver.decision d
             where d.tenant_id = new.tenant_id and d.decision_id = prior.decision_id
               and d.catalog_id = new.catalog_id)) then
        raise exception 'a decision that decision % rests on does not exist', new.decision_id
            using errcode = 'foreign_key_violation', constraint = 'decision_prior_decisions_exist';
    end if;
    return new;
end $$;
create trigger decision_prior_decisions_exist before insert on resolver.decision
    for each row when (cardinality(new.prior_decisions) > 0)
    execute function resolver.review_prior_decisions_exist();

reset role;
