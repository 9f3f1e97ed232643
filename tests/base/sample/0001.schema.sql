-- A tenant table as every room makes it, and a function whose body no splitter may cut.
CREATE SCHEMA sample;

CREATE TABLE sample.note (
    tenant_id text NOT NULL,
    note_id bigint NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (tenant_id, note_id)
);

ALTER TABLE sample.note ENABLE ROW LEVEL SECURITY;
ALTER TABLE sample.note FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON sample.note
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), ''));

CREATE FUNCTION sample.kind(given bigint) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    IF given > 1 THEN
        RETURN '100 %; many';
    END IF;
    RETURN CASE WHEN given = 0 THEN 'none' ELSE 'one' END;
END
$$;

GRANT USAGE ON SCHEMA sample TO product_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON sample.note TO product_app;
