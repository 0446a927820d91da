"""What all consumers of a server share."""

from collections.abc import Callable
from dataclasses import dataclass

from server.deliveries.graveyard import Graveyard
from server.deliveries.ports import Counters, Cursors, MatchLog
from server.deliveries.routes import Routes
from server.deliveries.settings import DeliverySettings
from server.deliveries.tasks import Tasks
from server.deliveries.timers import TimerWheel

__all__ = ["Environment"]


@dataclass(frozen=True, slots=True)
class Environment:
    """The parts that a consumer works with."""

    settings: DeliverySettings
    clock: Callable[[], float]
    timers: TimerWheel
    routes: Routes
    log: MatchLog
    cursors: Cursors
    graveyard: Graveyard
    counters: Counters
    tasks: Tasks
