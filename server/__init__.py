"""The daemon: subscriptions and documents in over gRPC, notifications out, nothing lost.

    rpc ──▶ broker ──▶ filters ──▶ the two engines
     ▲        │
     │        ├──▶ match log ──▶ store        durable before a publish is acknowledged
     │        ▼
     └── deliveries ──▶ attached streams, webhooks, e-mail

One event loop owns all state in memory; matching and the store's work run in threads. The core (broker, match log,
deliveries) knows no gRPC, and servicers in `rpc` only translate.
"""

__all__: list[str] = []
