"""A real server in the test's own event loop, on ports of its own, over a store in a temporary folder."""

import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from pathsieve.v1.delivery_service_pb2_grpc import DeliveryServiceStub
from pathsieve.v1.document_pb2 import Document
from pathsieve.v1.publish_service_pb2_grpc import PublishServiceStub
from pathsieve.v1.subscription_service_pb2_grpc import SubscriptionServiceStub
from server.daemon import Daemon
from server.settings import Settings
from server.settings_sources import load_settings


class Stubs:
    """A channel and the three services on it."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.channel = channel
        self.subscriptions = SubscriptionServiceStub(channel)
        self.publish = PublishServiceStub(channel)
        self.delivery = DeliveryServiceStub(channel)


def settings_in(folder: Path, **changed: object) -> Settings:
    """Settings for a test; `listen__port=0` sets listen.port."""
    flags = {
        "listen.port": 0,
        "http.port": 0,
        "store.url": str(folder / "data" / "pathsieve.db"),
        "matching.threads": 1,
        "drain_seconds": 10,
    }
    return load_settings(None, flags | {key.replace("__", "."): value for key, value in changed.items()})


@asynccontextmanager
async def stubs_of(address: str, credentials: grpc.ChannelCredentials | None = None) -> AsyncIterator[Stubs]:
    """A channel to an address."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    if credentials is None:
        channel = grpc.aio.insecure_channel(address, options=options)
    else:
        channel = grpc.aio.secure_channel(address, credentials, options=options)
    async with channel:
        yield Stubs(channel)


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[Daemon]:
    """A server that is ready."""
    async with Daemon(settings) as daemon:
        await daemon.ready()
        yield daemon


def document(document_id: str, xml: str = "<a/>", **fields: object) -> Document:
    """A document on the wire."""
    return Document(id=document_id, xml=xml.encode(), **fields)  # type: ignore[arg-type]


async def details_of(call: grpc.aio.Call) -> dict[str, str]:
    """Reason and facts of a call that failed, and the field it complains of."""
    status = await rpc_status.aio.from_call(call)
    info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    found: dict[str, str] = {}
    for detail in status.details if status else ():
        if detail.Unpack(info):
            found |= {"reason": info.reason, **info.metadata}
        elif detail.Unpack(bad):
            found |= {"field": bad.field_violations[0].field}
    return found


async def ended(call: Any) -> None:
    """Read a stream to its end, well or not; before that nobody is told how it has ended."""
    with contextlib.suppress(grpc.aio.AioRpcError):
        while await call.read() is not grpc.aio.EOF:
            pass
