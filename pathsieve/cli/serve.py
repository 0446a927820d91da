"""pathsieve serve: a server, here."""

__all__ = ["serve"]


def serve() -> None:
    """Start a server."""
