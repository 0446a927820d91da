"""gRPC, and nothing else: what comes over the wire is translated for the core, and what the core says, back.

    protobuf ──▶ gate ──▶ servicer ──▶ broker
                 who may  translate
    protobuf ◀── statuses, problems ◀── results and errors

`gate` knows who calls and turns what is raised into statuses; each service has a file of its own.
"""

__all__: list[str] = []
