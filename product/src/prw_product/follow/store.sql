-- name: tell_condition
-- Note how following goes.
insert into product.following (tenant_id, catalog_id, condition, code, message)
values (%(tenant_id)s, %(catalog_id)s, %(condition)s, %(code)s, %(message)s)
on conflict (tenant_id, catalog_id) do update set
    condition = excluded.condition, code = excluded.code, message = excluded.message,
    told_at = clock_timestamp();

-- name: find_condition
-- How following goes, as the follower last told.
select condition, code, message, told_at
from product.following
where tenant_id = %(tenant_id)s and catalog_id = %(catalog_id)s;
