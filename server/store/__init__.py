"""What must survive a crash: SQLite in one file by default, or PostgreSQL.

    Store ──┬── writer ─── committer ──┐
            │   group commit           ├── databases: sqlite, postgres
            ├── readers ───────────────┘
            └── subscriptions, dead_letters, staging, published      one module for each kind of thing

Every operation is a function of a connection. Those that write run in the writer's thread, many in one transaction.
"""

from server.store.store import Store, open_store
from server.store.writer import Commit

__all__ = ["Commit", "Store", "open_store"]
