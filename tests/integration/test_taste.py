"""What `make run` shows of a server is true, the first time and again."""

import asyncio
import re
from pathlib import Path

import pytest

from pathsieve.taste import taste
from server.server_process import ServerProcess
from tests.oracle import holds, read
from xpathfilter.taste import NAMED, generate_documents

pytestmark = pytest.mark.slow

N_DOCUMENTS = 300


async def test_the_taste_shows_what_lxml_says_however_often_it_is_had(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    roots = [read(document) for document in generate_documents(N_DOCUMENTS)]
    wanted = {name.lower(): sum(holds(text, root) for root in roots) for name, text in NAMED.items()}
    async with ServerProcess(tmp_path) as server:
        for _ in range(2):
            await asyncio.to_thread(taste, server.address, 500, N_DOCUMENTS)
            printed = capsys.readouterr().out
            assert f"{N_DOCUMENTS} documents published" in printed
            shown = {
                name: int(count) for name, count in re.findall(r"^  (\w+) +(\d+) × first as", printed, re.MULTILINE)
            }
            assert shown == {name: count for name, count in wanted.items() if count}
