"""What an operator may set about delivery; every limit has its name here.

A subscription's own `DeliveryPolicy` goes before the four defaults at the top.
"""

from dataclasses import dataclass, field

__all__ = ["DeliverySettings"]


@dataclass(frozen=True, slots=True)
class DeliverySettings:
    """Seconds, counts and bytes."""

    ack_deadline: float = 30.0
    max_attempts: int = 10
    min_backoff: float = 0.5
    max_backoff: float = 300.0

    heartbeat: float = 15.0
    min_heartbeat: float = 1.0
    timer_resolution: float = 0.05

    max_unacked_messages: int = 10_000
    """Of one consumer: in flight, or resting before they are delivered again. It gets nothing new beyond that."""
    max_unacked_bytes: int = 64 << 20
    max_batch_messages: int = 512
    """Of one answer to `next()`."""
    max_batch_bytes: int = 1 << 20
    max_read_messages: int = 256
    """Read from the log at once for a consumer that catches up."""
    max_read_bytes: int = 1 << 20
    max_pull_messages: int = 1000
    max_pull_bytes: int = 3 << 20
    ephemeral_buffer_messages: int = 10_000
    """Waiting for an ephemeral stream that has no credit or is not being read. Beyond that it is told goodbye."""
    ephemeral_buffer_bytes: int = 16 << 20

    push_concurrency: int = 64
    """Requests and mails on their way at once, to all targets together."""
    push_batch_messages: int = 100
    """Documents in one request or mail."""
    push_batch_bytes: int = 1 << 20
    webhook_timeout: float = 15.0
    webhook_allow_http: bool = True
    """Plain http:// targets too, not only https://."""
    webhook_allow_private: bool = False
    """Targets at private, loopback and link-local addresses too. Off, the server cannot be used to reach into its
    own network."""
    webhook_ca_file: str = ""
    """Certificates of the authorities to trust, in PEM; empty: those that browsers trust."""
    smtp_host: str = ""
    """Empty: no mail is sent, and subscriptions that ask for it wait."""
    smtp_port: int = 587
    smtp_starttls: bool = True
    smtp_username: str = ""
    smtp_password: str = field(default="", repr=False)
    smtp_sender: str = "pathsieve@localhost"
    smtp_timeout: float = 30.0
