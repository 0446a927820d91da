"""What every call passes, in and out.

    call ──▶ ready? ──▶ who? ──▶ may they? ──▶ too often? ──▶ servicer
                                                               │
    status ◀──────────── what was raised ──────────────────────┘

Servicers raise the core's errors; here, and nowhere else, they become statuses. Calls of other services (health,
reflection) are nobody's business and pass as they are; peers of a cluster show their own secret.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, TypeAlias

import grpc

from server.rates import Rates
from server.readiness import Readiness
from server.rpc.statuses import status_of
from server.security import ADMIN, PUBLISH, SUBSCRIBE, Guard, Principal

__all__ = ["Gate", "caller"]

ROLES = {
    "pathsieve.v1.SubscriptionService": SUBSCRIBE,
    "pathsieve.v1.PublishService": PUBLISH,
    "pathsieve.v1.DeliveryService": SUBSCRIBE,
    "pathsieve.v1.ClusterService": ADMIN,
}

CALLER: ContextVar[Principal] = ContextVar("caller")

Behavior = Callable[[Any, Any], Awaitable[Any]]
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Found: TypeAlias = "Handler | None"


def caller() -> Principal:
    """Who has made the call that is being served."""
    return CALLER.get()


class Gate(grpc.aio.ServerInterceptor):
    """Stands before all servicers. Their methods are coroutines; those that stream write to the context."""

    def __init__(self, guard: Guard, readiness: Readiness, rates: Rates) -> None:
        self._guard = guard
        self._readiness = readiness
        self._rates = rates
        self._handlers: dict[str, Handler] = {}
        self.n_calls = 0
        self._idle = asyncio.Event()
        self._idle.set()

    async def until_idle(self) -> None:
        """Return when no call is being served."""
        await self._idle.wait()

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Found]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Found:
        method: str = handler_call_details.method
        known = self._handlers.get(method)
        if known is None:
            handler = await continuation(handler_call_details)
            role = ROLES.get(method.rpartition("/")[0].lstrip("/"))
            if handler is None or role is None:
                return handler
            known = self._handlers[method] = _wrapped(handler, lambda inner: self._guarded(inner, method, role))
        return known

    def _guarded(self, inner: Behavior, method: str, role: str) -> Behavior:
        async def guarded(request: Any, context: Any) -> Any:
            self._count(1)
            try:
                self._admit(context, role)
                return await inner(request, context)
            except grpc.aio.BaseError:
                raise
            except Exception as error:  # noqa: BLE001  whatever it is, the caller gets a status
                return await context.abort(*status_of(error, method))
            finally:
                self._count(-1)

        return guarded

    def _count(self, change: int) -> None:
        self.n_calls += change
        if self.n_calls:
            self._idle.clear()
        else:
            self._idle.set()

    def _admit(self, context: Any, role: str) -> None:
        self._readiness.must_serve()
        metadata: dict[str, str] = dict(context.invocation_metadata() or ())
        principal = self._guard.principal(metadata.get("authorization"))
        principal.must_have(role)
        self._rates.take(principal.tenant)
        CALLER.set(principal)


def _wrapped(handler: Any, wrap: Callable[[Behavior], Behavior]) -> Handler:
    """The same handler with its behaviour wrapped."""
    kind = f"{_arity(handler.request_streaming)}_{_arity(handler.response_streaming)}"
    make = getattr(grpc, f"{kind}_rpc_method_handler")
    wrapped: Handler = make(wrap(getattr(handler, kind)), handler.request_deserializer, handler.response_serializer)
    return wrapped


def _arity(streaming: bool) -> str:
    return "stream" if streaming else "unary"
