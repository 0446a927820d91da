"""All that can be set, in one frozen object that is read once, at the start.

    [listen]                      PATHSIEVE_LISTEN__PORT=7443          --port 7443
    port = 7443                   a variable of the environment        a flag
    a file in TOML

`extractors` is a table of attributes and the XPath expressions that find them, price = "number(//price)"; `namespaces`
binds their prefixes to URIs.

A flag wins over the environment, the environment over the file, the file over the default; `origin_of("listen.port")`
tells which it was. Nothing has to be set. Times are in seconds, sizes in bytes. `server.settings_sources` reads them.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, Secret
from pydantic_settings import BaseSettings, SettingsConfigDict

__all__ = [
    "DEFAULT_ORIGIN",
    "Cluster",
    "Delivery",
    "Http",
    "Limits",
    "Listen",
    "Log",
    "Matching",
    "Publishing",
    "Retention",
    "Security",
    "Settings",
    "Smtp",
    "Store",
    "Webhooks",
]

DEFAULT_ORIGIN = "default"
MEBIBYTE = 1 << 20
LARGEST_DOCUMENT, DEEPEST_DOCUMENT = 10**9, 2048

Port = Annotated[int, Field(ge=0, le=65535)]
Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0)]


class Password(Secret[str]):
    """Shown as stars, if there is one."""

    def _display(self) -> str:
        return "********" if self.get_secret_value() else ""


class StoreUrl(Secret[str]):
    """Shown without its password.

    >>> StoreUrl("postgresql://sieve:hush@db/sieve")
    StoreUrl('postgresql://sieve:***@db/sieve')
    """

    def _display(self) -> str:
        return re.sub(r"(://[^/@:]*:|[?&]password=)[^@&]*", r"\1***", self.get_secret_value())


class Section(BaseModel):
    """A table of the file. A key that it does not have is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Listen(Section):
    """Where gRPC is served. Port 0 takes any that is free; `ready_file` gets the addresses, as JSON, once it serves."""

    host: str = "127.0.0.1"
    port: Port = 7443
    ready_file: Path | None = None


class Http(Section):
    """Where /healthz, /readyz, /metrics and /varz are served. Nobody is asked for a token there: keep it private."""

    enabled: bool = True
    host: str = "127.0.0.1"
    port: Port = 7480


class Store(Section):
    """What must not be lost: the path of an SQLite file, or postgresql://user@host/database.

    A call that has waited for the store for `deadline` seconds is told to try again.
    """

    url: StoreUrl = StoreUrl("pathsieve-data/pathsieve.db")
    deadline: Seconds = 30.0


class Limits(Section):
    """More than these is refused, and the error has the name of the limit. Requests are counted by tenant; 0: any."""

    max_document_bytes: Annotated[int, Field(ge=1, le=LARGEST_DOCUMENT)] = 16 * MEBIBYTE
    max_document_depth: Annotated[int, Field(ge=1, le=DEEPEST_DOCUMENT)] = 1000
    max_subscriptions_per_tenant: Count = 10_000_000
    max_expression_length: Count = 65_536
    max_outstanding_bytes_per_stream: Count = 64 * MEBIBYTE
    max_batch_documents: Count = 1000
    max_message_bytes: Count = 64 * MEBIBYTE
    requests_per_second: Annotated[float, Field(ge=0)] = 0.0


class Publishing(Section):
    """How documents are taken in. The same id from the same source within `repetition_window` is a repetition."""

    repetition_window: Seconds = 600.0
    most_repetitions: Count = 1_000_000
    batch_documents: Count = 256
    most_waiting_bytes: Count = 64 * MEBIBYTE
    stream_credit_documents: Count = 4096
    stream_credit_bytes: Count = 32 * MEBIBYTE
    allow_entities: bool = False


class Delivery(Section):
    """What a subscription gets that does not say otherwise, and how much a consumer may hold."""

    ack_deadline: Seconds = 30.0
    max_attempts: Count = 10
    min_backoff: Seconds = 0.5
    max_backoff: Seconds = 300.0
    heartbeat: Seconds = 15.0
    max_unacked_messages: Count = 10_000
    ephemeral_buffer_messages: Count = 10_000
    ephemeral_buffer_bytes: Count = 16 * MEBIBYTE


class Webhooks(Section):
    """Calls to others. Without `allow_private` nobody can have the server reach into its own network."""

    timeout: Seconds = 15.0
    allow_http: bool = True
    allow_private: bool = False
    concurrency: Count = 64


class Retention(Section):
    """How long things are kept: documents and their matches, acknowledged or not; the rest, until it is used.

    `traces` are what is known of deleted subscriptions. Every `interval` it is looked what is too old.
    """

    documents: Seconds = 7 * 86_400.0
    dead_letters: Seconds = 30 * 86_400.0
    staged: Seconds = 86_400.0
    traces: Seconds = 86_400.0
    interval: Seconds = 60.0


class Security(Section):
    """TLS needs a certificate and its key; with `client_ca`, clients need certificates too. `tokens` is a file.

    Without tokens everybody may do everything, so only this machine is listened to, unless `insecure_public`.
    """

    certificate: Path | None = None
    key: Path | None = None
    client_ca: Path | None = None
    tokens: Path | None = None
    insecure_public: bool = False


class Smtp(Section):
    """Who takes our e-mail. Without a host none is sent, and subscriptions by e-mail wait."""

    host: str = ""
    port: Port = 587
    username: str = ""
    password: Password = Password("")
    sender: str = "pathsieve@localhost"
    starttls: bool = True
    timeout: Seconds = 30.0


class Matching(Section):
    """Threads that match; 0: one a processor."""

    threads: Annotated[int, Field(ge=0)] = 0


class Cluster(Section):
    """With `zookeeper`, as in "zk1:2181,zk2:2181,zk3:2181", this server is one replica of several over one PostgreSQL.

    `replica` is its name, the host name if it is empty; `advertise` is where clients and peers reach it, the address it
    listens on if it is empty. Peers show each other `secret`.
    """

    zookeeper: str = ""
    root: Annotated[str, Field(pattern=r"^(/[^/]+)+$")] = "/pathsieve"
    replica: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]*$")] = ""
    advertise: str = ""
    secret: Password = Password("")
    weight: Annotated[float, Field(gt=0)] = 1.0
    session_timeout: Annotated[float, Field(ge=1)] = 6.0
    publish_deadline: Seconds = 20.0


class Log(Section):
    """Lines for people, or JSON for programs."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["plain", "json"] = "plain"


class Settings(BaseSettings):
    """Everything. `settings_sources.load_settings` makes one."""

    model_config = SettingsConfigDict(
        env_prefix="PATHSIEVE_", env_nested_delimiter="__", extra="forbid", frozen=True, validate_default=True
    )

    listen: Listen = Listen()
    http: Http = Http()
    store: Store = Store()
    limits: Limits = Limits()
    publishing: Publishing = Publishing()
    delivery: Delivery = Delivery()
    retention: Retention = Retention()
    security: Security = Security()
    webhooks: Webhooks = Webhooks()
    smtp: Smtp = Smtp()
    matching: Matching = Matching()
    cluster: Cluster = Cluster()
    log: Log = Log()
    extractors: dict[str, str] = {}
    namespaces: dict[str, str] = {}
    drain_seconds: Seconds = 30.0

    _origins: dict[str, str] = PrivateAttr(default_factory=dict)

    def origin_of(self, key: str) -> str:
        """Where the value of a dotted key is from: "default", a file, a variable, a flag."""
        return self._origins.get(key, DEFAULT_ORIGIN)

    def rows(self) -> Iterator[tuple[str, Any, str]]:
        """Each key with its value, as it may be shown, and its origin."""
        for key, value in leaves(dict(self)):
            yield key, shown(value), self.origin_of(key)


def leaves(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values of a table in tables, by dotted key."""
    for name, value in table.items():
        inner = dict(value) if isinstance(value, Section) else value
        if isinstance(inner, dict):
            yield from leaves(inner, f"{prefix}{name}.")
        else:
            yield prefix + name, inner


def shown(value: object) -> Any:
    """A value as anybody may see it."""
    return str(value) if isinstance(value, Secret | Path) else value
