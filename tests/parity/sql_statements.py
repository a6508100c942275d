"""Statements for SQLite, one of every kind: what tests of the grammar of SQL change and compare."""

STATEMENTS = [
    "SELECT 1",
    (
        "SELECT a, b AS c, t.*, count(*) FROM t LEFT JOIN u ON t.id = u.id WHERE a > 1 AND "
        "NOT b ORDER BY c DESC NULLS LAST LIMIT 10 OFFSET 2"
    ),
    "SELECT DISTINCT x FROM (SELECT 1 AS x UNION ALL SELECT 2) GROUP BY x HAVING x > 1",
    ("WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c WHERE n < 10) SELECT n FROM c"),
    "WITH a AS MATERIALIZED (SELECT 1), b AS NOT MATERIALIZED (SELECT 2) SELECT * FROM a, b",
    (
        "INSERT INTO t (a, b) VALUES (1, 'x'), (?2, :name) ON CONFLICT (a) WHERE b > 1 DO "
        "UPDATE SET b = excluded.b WHERE a = 1 ON CONFLICT DO NOTHING RETURNING *, a AS z"
    ),
    "INSERT OR REPLACE INTO t SELECT * FROM u WHERE true ON CONFLICT DO NOTHING",
    "REPLACE INTO main.t AS x DEFAULT VALUES",
    (
        "UPDATE OR IGNORE t AS u INDEXED BY i SET a = 1, (b, c) = (2, 3) FROM v WHERE u.id = "
        "v.id RETURNING a"
    ),
    "DELETE FROM main.t NOT INDEXED WHERE a IN (1, 2, 3) RETURNING *",
    (
        "CREATE TABLE IF NOT EXISTS main.t (id INTEGER PRIMARY KEY AUTOINCREMENT, name "
        "VARCHAR(20) NOT NULL ON CONFLICT FAIL DEFAULT 'x' COLLATE nocase, v REAL CHECK (v > "
        "0) DEFAULT -1.5e3, g INT GENERATED ALWAYS AS (v * 2) STORED, FOREIGN KEY (name) "
        "REFERENCES u (n) ON DELETE SET NULL ON UPDATE CASCADE MATCH full DEFERRABLE "
        "INITIALLY DEFERRED, UNIQUE (name, v), CONSTRAINT k CHECK (id > 0)) WITHOUT ROWID, "
        "STRICT"
    ),
    "CREATE TEMP TABLE t AS SELECT * FROM u",
    (
        "CREATE UNIQUE INDEX IF NOT EXISTS i ON t (a COLLATE binary ASC, lower(b) DESC) "
        "WHERE a IS NOT NULL"
    ),
    "CREATE VIEW v (a, b) AS SELECT 1, 2",
    (
        "CREATE TRIGGER tr AFTER UPDATE OF a, b ON t FOR EACH ROW WHEN new.a > old.a BEGIN "
        "UPDATE t SET a = 1; INSERT INTO u VALUES (new.a); DELETE FROM v WHERE x = old.a; "
        "SELECT RAISE(ABORT, 'no'); END"
    ),
    "CREATE VIRTUAL TABLE f USING fts5(a, b, tokenize = 'porter ascii', x(1, 2))",
    "ALTER TABLE t RENAME TO u",
    "ALTER TABLE t RENAME COLUMN a TO b",
    "ALTER TABLE t ADD COLUMN c TEXT DEFAULT (1 + 2)",
    "ALTER TABLE t DROP COLUMN c",
    "DROP TABLE IF EXISTS t",
    "DROP INDEX main.i",
    "BEGIN IMMEDIATE TRANSACTION",
    "COMMIT",
    "END TRANSACTION",
    "ROLLBACK TO SAVEPOINT s",
    "SAVEPOINT s",
    "RELEASE s",
    "PRAGMA main.table_info(t)",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA cache_size = -2000",
    "ATTACH DATABASE 'x.db' AS y",
    "DETACH y",
    "ANALYZE main.t",
    "REINDEX",
    "VACUUM main INTO 'f.db'",
    (
        "SELECT CASE a WHEN 1 THEN 'x' ELSE 'y' END, CAST(a AS DECIMAL(10, 2)), EXISTS "
        '(SELECT 1), x\'0aFF\', 1.5, .5, 1e3, 0xFF, "q""q", [br], `t`'
    ),
    (
        "SELECT row_number() OVER w, sum(x) FILTER (WHERE x > 1) OVER (PARTITION BY y ORDER "
        "BY z ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE TIES) FROM t WINDOW w "
        "AS (ORDER BY a)"
    ),
    "SELECT sum(x) OVER (b RANGE 1 PRECEDING), max(DISTINCT a) FROM t",
    (
        "SELECT a BETWEEN 1 AND 2 AND b LIKE 'x%' ESCAPE '\\' OR c GLOB 'a*' AND d NOT IN "
        "(SELECT 1) AND e IS NOT DISTINCT FROM f"
    ),
    (
        "SELECT a -> '$.x' ->> 'y', a || b, a << 1 | 2 & 3, ~a, -a, +a, NOT a, a ISNULL, b "
        "NOTNULL, c NOT NULL"
    ),
    (
        "SELECT * FROM a NATURAL LEFT OUTER JOIN b USING (x, y) CROSS JOIN c, d INNER JOIN "
        "json_each(d.x) AS j"
    ),
    "SELECT * FROM (a JOIN b) AS c, (VALUES (1, 2), (3, 4))",
    "SELECT $a::b(c), @v, ?1, ?, :x FROM t",
    'SELECT current_date, current_timestamp AS ts, key, abort FROM t AS "left"',
    "VALUES (1, 2), (3, 4)",
    ("SELECT (1, 2) = (3, 4), a COLLATE nocase, count(*), f(), replace(a, 'b', 'c'), glob('a', b)"),
]
