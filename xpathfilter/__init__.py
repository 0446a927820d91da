"""XPath subscriptions to matching documents."""

__all__: list[str] = []
