"""What `pathsieve doctor` looks at, one question a function.

A finding is fine, or worth a thought, or broken, and then it says what to do.
"""

import os
import platform
import shutil
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

import grpc

from pathsieve.cli.connection import Connection
from pathsieve.cli.http_pages import fetch
from pathsieve.endpoints import channel_credentials
from pathsieve.errors import PathSieveError, PermissionDenied

__all__ = ["Finding", "State", "check_machine", "check_server", "versions"]

PACKAGES = ("pathsieve", "grpcio", "protobuf", "lxml", "numba", "numpy")
LARGEST_SKEW = 2.0
LEAST_DISK = 1 << 30
LEAST_DAYS = 14
DAY = 86_400


class State(StrEnum):
    """How it looks."""

    FINE = "ok"
    DOUBTFUL = "note"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found, and what to do about it."""

    what: str
    state: State
    found: str
    hint: str = ""


def versions() -> str:
    """This installation, on a line."""
    return ", ".join([f"Python {platform.python_version()}", *(f"{name} {_version(name)}" for name in PACKAGES)])


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


# -- the server ------------------------------------------------------------------------------------


def check_server(connection: Connection, http: str) -> Iterator[Finding]:
    """Is it there, does it serve, may we do things, does its clock agree with ours?"""
    reachable = _check_reachable(connection)
    yield reachable
    if reachable.state is not State.BROKEN:
        yield _check_tls(connection)
        yield _check_health(connection)
        yield from _check_roles(connection)
    yield from _check_http(http)


def _check_reachable(connection: Connection) -> Finding:
    host, _, port = connection.address.split(",")[0].rpartition(":")
    started = time.perf_counter()
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
    except (OSError, ValueError) as error:
        hint = "`pathsieve serve` starts one here; --address or PATHSIEVE_ADDRESS say where it is."
        return Finding("server", State.BROKEN, f"no answer from {connection.address}: {error}", hint)
    milliseconds = (time.perf_counter() - started) * 1000
    return Finding("server", State.FINE, f"{connection.address} answers, in {milliseconds:.1f} ms")


def _check_tls(connection: Connection) -> Finding:
    if not connection.security:
        host = connection.address.rpartition(":")[0]
        if host in ("localhost", "127.0.0.1", "[::1]"):
            return Finding("TLS", State.FINE, "not used; the server is on this machine")
        return Finding("TLS", State.DOUBTFUL, "not used: documents and tokens can be read on the way", "See --tls-ca.")
    try:
        days = (_certificate_end(connection) - time.time()) / DAY
    except (OSError, ValueError, KeyError) as error:
        return Finding("TLS", State.BROKEN, f"{error}", "--tls-ca names the certificate of the server's authority.")
    state = State.FINE if days > LEAST_DAYS else State.DOUBTFUL
    return Finding("TLS", state, f"the server's certificate is good for {days:.0f} days")


def _certificate_end(connection: Connection) -> float:
    """When the server's certificate ends, in seconds since 1970."""
    host, _, port = connection.address.split(",")[0].rpartition(":")
    context = ssl.create_default_context(cafile=str(connection.tls_ca) if connection.tls_ca else None)
    context.set_alpn_protocols(["h2"])
    if connection.tls_cert:
        context.load_cert_chain(connection.tls_cert, connection.tls_key)
    with (
        socket.create_connection((host, int(port)), timeout=5) as plain,
        context.wrap_socket(plain, server_hostname=host) as encrypted,
    ):
        return ssl.cert_time_to_seconds(str((encrypted.getpeercert() or {})["notAfter"]))


def _check_health(connection: Connection) -> Finding:
    """Asked with a channel of gRPC's own: the health service is not PathSieve's."""
    from grpc_health.v1 import health_pb2

    credentials = channel_credentials(connection.security)
    address = connection.address.split(",")[0]
    channel = grpc.secure_channel(address, credentials) if credentials else grpc.insecure_channel(address)
    with channel:
        check = channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        try:
            status = check(health_pb2.HealthCheckRequest(), timeout=connection.timeout).status
        except grpc.RpcError as error:
            return Finding("health", State.BROKEN, f"{error.details() if isinstance(error, grpc.Call) else error}")
    name = health_pb2.HealthCheckResponse.ServingStatus.Name(status)
    if name == "SERVING":
        return Finding("health", State.FINE, "it serves")
    return Finding("health", State.BROKEN, f"it says {name}", "It loads or stops; `pathsieve top` shows more.")


def _check_roles(connection: Connection) -> Iterator[Finding]:
    """Each role is tried with a call that changes nothing."""
    with connection.open() as client:
        yield _check_role("subscribe", client.count)
        yield _check_role("publish", lambda: client.abort(f"doctor-{uuid4().hex}", 0))


def _check_role(role: str, ask: Callable[[], object]) -> Finding:
    try:
        ask()
        return Finding(f"role {role}", State.FINE, f"may {role}")
    except PermissionDenied as error:
        return Finding(f"role {role}", State.DOUBTFUL, str(error))
    except PathSieveError as error:
        return Finding(f"role {role}", State.BROKEN, str(error), "--token or PATHSIEVE_TOKEN say who you are.")


def _check_http(http: str) -> Iterator[Finding]:
    try:
        asked = time.time()
        page = fetch(http, "/readyz")
    except PathSieveError as error:
        hint = "--http or PATHSIEVE_HTTP say where it is; it may be closed to this machine."
        yield Finding("HTTP port", State.DOUBTFUL, str(error), hint)
        return
    state = State.FINE if page.status == 200 else State.DOUBTFUL
    yield Finding("HTTP port", state, f"{http} says {page.text.strip()}")
    if page.time:
        skew = max(abs(page.time + 0.5 - asked) - 0.5, 0.0)
        state = State.FINE if skew < LARGEST_SKEW else State.DOUBTFUL
        yield Finding("clock", state, f"{skew:.1f} s apart from the server's", "Times in `seek` are the server's.")


# -- this machine ----------------------------------------------------------------------------------


def check_machine(store: Path | None) -> Iterator[Finding]:
    """Can an engine start quickly here, and is there room for a store?"""
    yield _check_kernels()
    yield _check_disk(store or Path())


def _check_kernels() -> Finding:
    """Whether compiled kernels are kept, so that a server need not compile them again."""
    found = find_spec("xpathfilter")
    if found is None or found.origin is None:
        return Finding("kernels", State.DOUBTFUL, "the engines are not installed here; only a server needs them")
    folder = Path(os.environ.get("NUMBA_CACHE_DIR", Path(found.origin).parent))
    n_files = sum(1 for _ in folder.rglob("*.nbc"))
    if n_files:
        return Finding("kernels", State.FINE, f"{n_files} compiled ones in {folder}")
    hint = "The first `pathsieve serve` compiles them, which takes a minute."
    if not os.access(folder, os.W_OK):
        hint = "Set NUMBA_CACHE_DIR to a folder that can be written; else every start compiles them."
    return Finding("kernels", State.DOUBTFUL, f"none compiled yet in {folder}", hint)


def _check_disk(path: Path) -> Finding:
    folder = next(parent for parent in [path.absolute(), *path.absolute().parents] if parent.exists())
    free = shutil.disk_usage(folder).free
    state = State.FINE if free >= LEAST_DISK else State.DOUBTFUL
    return Finding("disk", state, f"{free / 1e9:,.1f} GB free at {folder}", "" if state is State.FINE else "Make room.")
