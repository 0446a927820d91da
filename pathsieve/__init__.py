"""What programs that use a PathSieve server import.

    Client, AsyncClient ──▶ calls ──▶ endpoints ──▶ (server)
        │
        ├── publish_many ──▶ pipeline ──▶ publish_stream      answered in order, sent again after a break
        └── attach ──▶ attaching ──▶ attach_stream            inbox: what came; outbox: what is said about it

`wishes`, `documents`, `values` and `statuses` translate between Python and the messages of `pathsieve.v1`. There is one
core, for `async`; `Client` runs it on a loop in the background. No engine is imported, so this is quick.
"""

from pathsieve import errors
from pathsieve.async_client import AsyncClient
from pathsieve.attaching import AsyncAttachment
from pathsieve.attachment import Attachment
from pathsieve.client import Client
from pathsieve.cluster import Cluster, Replica, Token
from pathsieve.documents import Document
from pathsieve.errors import PathSieveError
from pathsieve.messages import DeadLetter, Message, Notification, Page, Pulled, Range
from pathsieve.results import Committed, Imported, Published, Staged, Tested
from pathsieve.subscriptions import DeliveryPolicy, Email, Filter, Progress, Schedule, Subscription, Webhook
from pathsieve.values import Interval, Point
from pathsieve.wishes import Wish

__all__ = [
    "AsyncAttachment",
    "AsyncClient",
    "Attachment",
    "Client",
    "Cluster",
    "Committed",
    "DeadLetter",
    "DeliveryPolicy",
    "Document",
    "Email",
    "Filter",
    "Imported",
    "Interval",
    "Message",
    "Notification",
    "Page",
    "PathSieveError",
    "Point",
    "Progress",
    "Published",
    "Pulled",
    "Range",
    "Replica",
    "Schedule",
    "Staged",
    "Subscription",
    "Tested",
    "Token",
    "Webhook",
    "Wish",
    "errors",
]
