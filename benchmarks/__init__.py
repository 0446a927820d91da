"""How fast, how large, how steady: measured on seeded workloads, with the answers checked in the same run.

    schema ─▶ workload ─▶ workbench ─▶ matching, loading ───────────────┐
                             │                  threads, updating ─────────┼─▶ report ─▶ table, JSON, markdown, plot
    bool_workload ─▶ bool_workbench ─▶ bool_matching, _table, _loading ─┤
    workload ─▶ server_workbench ─▶ server_streams, _stalled, _idle, … ─┘
                             │              (the scenarios)
                             └── answers: the loops over lxml's XPath and over columns, peers and oracles

`python -m benchmarks` runs every scenario but that of ten million subscriptions. A number that misses its
floor (`floors`) is shown as such; an answer that is wrong ends the run with an error.
"""
