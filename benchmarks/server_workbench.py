"""What scenarios of the server share: workloads with the engine's own answers, and servers in processes of their own.

    workload ─▶ engine in this process ─▶ the answers to expect
           └─▶ server process ◀─ gRPC ─▶ this process: publishes, is notified, compares

Client and server share the machine, as they would on a small one.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.answers import Checks
from benchmarks.workbench import Load, Sizes, Workbench
from benchmarks.workload import SELECTIVE, USUAL, QueryShape
from pathsieve import AsyncClient
from server.server_process import ServerProcess

__all__ = ["ServerWorkbench", "Workload", "serving"]

PATIENT = 300.0


class Workload:
    """`n` expressions, documents, and which of the expressions want each of these."""

    def __init__(self, bench: Workbench, n: int) -> None:
        self.n = n
        self.expressions = bench.expressions(n)
        self.documents = bench.documents
        self.load: Load = bench.load(n)
        self.answers: Sequence[np.ndarray] = [
            self.load.positions(self.load.index.match(document)) for document in self.documents
        ]

    @property
    def n_matches(self) -> float:
        """Of a document, on average."""
        return float(np.mean([len(answer) for answer in self.answers]))


class ServerWorkbench:
    """Two kinds of expressions: those of the other scenarios, of which a document matches 5%, and selective ones."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self.checks = Checks()
        self._benches = {shape: Workbench(sizes, shape) for shape in (USUAL, SELECTIVE)}
        self._workloads: dict[QueryShape, Workload] = {}
        self.documents = self._benches[USUAL].documents

    def workload(self, shape: QueryShape = USUAL) -> Workload:
        """As many expressions as the middle size has."""
        if shape not in self._workloads:
            self._workloads[shape] = Workload(self._benches[shape], self.sizes.many)
        return self._workloads[shape]

    def million(self) -> list[str]:
        """The expressions of the largest size."""
        return self._benches[USUAL].expressions(self.sizes.million)


@asynccontextmanager
async def serving(**settings: str) -> AsyncIterator[tuple[ServerProcess, AsyncClient]]:
    """A server with an empty store, and a client of it."""
    with TemporaryDirectory() as folder:
        async with (
            ServerProcess(Path(folder), **settings) as server,
            AsyncClient(server.address, timeout=PATIENT) as client,
        ):
            yield server, client
