"""How fast, how large, how steady: measured on seeded workloads, with the answers checked in the same run.

    schema ─▶ workload ─▶ workbench ─▶ matching, threads, loading, updating ─▶ report ─▶ table, JSON, plot
                             │              (the scenarios)
                             └── answers: the loop over lxml's XPath, peer and oracle

`python -m benchmarks` runs every scenario but that of ten million subscriptions. A number that misses its
floor (`floors`) is shown as such; an answer that is wrong ends the run with an error.
"""
