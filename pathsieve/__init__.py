"""What programs that use a PathSieve server import."""

__all__: list[str] = []
