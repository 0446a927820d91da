"""The tables, and how an older store becomes a newer one.

    subscriptions ─┬─ leftovers, dead_letters          of one subscription, by its number
                   └─ tombstones                       of deleted ones, for a while
    logs ─┬─ records ──▶ documents                     a record a document: who wants it
          ├─ segments ── segment_chunks                closed stretches of records: number → positions
          └─ head_pages, cursors                       1024 subscriptions a row: newest sequence; how far each has come
    staged, commits                                    batches on their way in
    token_generations                                  replicas: whose write is an old owner's
    published                                          replicas: documents that came lately, whoever took them
    writers                                            the newest batch of each, to settle a commit that was cut off

`MIGRATIONS` are run in order, each once and in one transaction with the note that it was run. A store that has
seen more of them than this program knows is refused.
"""

from server.errors import StoreError
from server.store.databases import Connection, Database

__all__ = ["MIGRATIONS", "VERSION", "migrate"]

FIRST = (
    "CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL)",
    "INSERT INTO counters (name, value) VALUES ('number', 0), ('revision', 0)",
    "CREATE TABLE writers (writer TEXT PRIMARY KEY, batch INTEGER NOT NULL, opened REAL NOT NULL)",
    """CREATE TABLE subscriptions (
        number INTEGER PRIMARY KEY, token INTEGER NOT NULL, tenant TEXT NOT NULL, id TEXT NOT NULL,
        kind TEXT NOT NULL, expression TEXT NOT NULL, namespaces TEXT NOT NULL, options TEXT NOT NULL,
        revision INTEGER NOT NULL, create_time REAL NOT NULL, update_time REAL NOT NULL)""",
    "CREATE UNIQUE INDEX subscriptions_by_name ON subscriptions (tenant, id)",
    "CREATE INDEX subscriptions_by_token ON subscriptions (token, number)",
    "CREATE INDEX subscriptions_by_revision ON subscriptions (revision)",
    """CREATE TABLE tombstones (
        number INTEGER PRIMARY KEY, token INTEGER NOT NULL, revision INTEGER NOT NULL, time REAL NOT NULL)""",
    "CREATE INDEX tombstones_by_revision ON tombstones (revision)",
    """CREATE TABLE documents (
        number INTEGER PRIMARY KEY, tenant TEXT NOT NULL, source BLOB NOT NULL, id BLOB NOT NULL,
        publish_time REAL NOT NULL, details TEXT NOT NULL, xml BLOB NOT NULL)""",
    """CREATE TABLE logs (
        log INTEGER PRIMARY KEY, position INTEGER NOT NULL, closed INTEGER NOT NULL, expired INTEGER NOT NULL)""",
    """CREATE TABLE records (
        log INTEGER NOT NULL, position INTEGER NOT NULL, document INTEGER NOT NULL, numbers BLOB NOT NULL,
        PRIMARY KEY (log, position)) WITHOUT ROWID""",
    """CREATE TABLE segments (
        log INTEGER NOT NULL, first_position INTEGER NOT NULL, last_position INTEGER NOT NULL,
        oldest REAL NOT NULL, newest REAL NOT NULL, n_matches INTEGER NOT NULL, n_bytes INTEGER NOT NULL,
        PRIMARY KEY (log, first_position)) WITHOUT ROWID""",
    """CREATE TABLE segment_chunks (
        log INTEGER NOT NULL, chunk INTEGER NOT NULL, first_position INTEGER NOT NULL, entries BLOB NOT NULL,
        PRIMARY KEY (log, chunk, first_position))""",
    """CREATE TABLE head_pages (
        log INTEGER NOT NULL, page INTEGER NOT NULL, heads BLOB NOT NULL, PRIMARY KEY (log, page))""",
    """CREATE TABLE cursor_pages (
        page INTEGER PRIMARY KEY, floors BLOB NOT NULL, floor_positions BLOB NOT NULL, gone BLOB NOT NULL)""",
    "CREATE TABLE leftovers (number INTEGER PRIMARY KEY, state TEXT NOT NULL)",
    """CREATE TABLE dead_letters (
        number INTEGER NOT NULL, sequence INTEGER NOT NULL, source BLOB NOT NULL, id BLOB NOT NULL,
        publish_time REAL NOT NULL, details TEXT NOT NULL, xml BLOB NOT NULL,
        attempts INTEGER NOT NULL, time REAL NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (number, sequence))""",
    """CREATE TABLE staged (
        tenant TEXT NOT NULL, query TEXT NOT NULL, batch INTEGER NOT NULL, part INTEGER NOT NULL,
        attempt INTEGER NOT NULL, place INTEGER NOT NULL, time REAL NOT NULL, source BLOB NOT NULL, id BLOB NOT NULL,
        publish_time REAL NOT NULL, details TEXT NOT NULL, xml BLOB NOT NULL,
        PRIMARY KEY (tenant, query, batch, part, attempt, place))""",
    """CREATE TABLE commits (
        tenant TEXT NOT NULL, query TEXT NOT NULL, batch INTEGER NOT NULL, result TEXT NOT NULL, time REAL NOT NULL,
        PRIMARY KEY (tenant, query, batch))""",
)

SECOND = (
    """CREATE TABLE token_generations (
        kind TEXT NOT NULL, token INTEGER NOT NULL, generation INTEGER NOT NULL, replica TEXT NOT NULL,
        PRIMARY KEY (kind, token))""",
    "ALTER TABLE tombstones ADD COLUMN tenant TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE tombstones ADD COLUMN id TEXT NOT NULL DEFAULT ''",
    "CREATE TABLE published (key BLOB PRIMARY KEY, time REAL NOT NULL)",
    "CREATE INDEX published_by_time ON published (time)",
    """CREATE TABLE cursors (
        token INTEGER NOT NULL, page INTEGER NOT NULL, floors BLOB NOT NULL, floor_positions BLOB NOT NULL,
        gone BLOB NOT NULL, PRIMARY KEY (token, page))""",
)
"""`cursor_pages`, of numbers in a row, is emptied into `cursors`, of numbers that share a token, by the log itself."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (FIRST, SECOND)
VERSION = len(MIGRATIONS)


def migrate(database: Database, connection: Connection) -> None:
    """Bring a store, new or old, to this version."""
    connection.begin()
    connection.execute("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)")
    connection.commit()
    found = version_of(connection)
    if found > VERSION:
        raise StoreError(
            database.place,
            f"a newer PathSieve has written it (schema {found}, this one knows up to {VERSION}); use that version",
        )
    for number in range(found, VERSION):
        _run_migration(connection, number)


def version_of(connection: Connection) -> int:
    rows = connection.execute("SELECT version FROM schema_version")
    return int(rows[0][0]) if rows else 0


def _run_migration(connection: Connection, number: int) -> None:
    connection.begin()
    try:
        if version_of(connection) != number:  # another replica has been quicker
            connection.rollback()
            return
        connection.execute_script(MIGRATIONS[number])
        connection.execute("DELETE FROM schema_version")
        connection.execute("INSERT INTO schema_version (version) VALUES (?)", (number + 1,))
        connection.commit()
    except BaseException:
        connection.rollback()
        raise
