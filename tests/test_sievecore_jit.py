"""Machine code is kept between runs, and never used when something it was made from has changed.

Each test writes a small package of kernels into a folder of its own and runs it in fresh processes.
"""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PACKAGE = {
    "__init__.py": "",
    "constants.py": "STEP = 1\n",
    "unrelated.py": "ANSWER = 41\n",
    "inner.py": """
from sievecore.jit import kernel
from demo.constants import STEP

@kernel
def advance(value):
    return value + STEP
""",
    "outer.py": """
from sievecore.jit import kernel
from . import inner

advance = inner.advance

@kernel
def pick(values, i):
    return advance(values[i])
""",
}

SCRIPT = """
import json, logging, sys
import numpy as np

messages = []
handler = logging.Handler(logging.WARNING)
handler.emit = lambda record: messages.append(record.getMessage())
logging.getLogger("pathsieve.jit").addHandler(handler)

from demo.outer import pick

{before_the_call}
try:
    answer = int(pick(np.array([10, 20, 30]), {index}))
except IndexError:
    answer = "IndexError"
hits = sum(pick.stats.cache_hits.values()) if hasattr(pick, "stats") else None
json.dump(dict(answer=answer, hits=hits, messages=messages), sys.stdout)
"""


class Demo:
    """A package of two kernels in a folder, `pick` calling `advance` in another file."""

    def __init__(self, folder: Path, repository: Path) -> None:
        self.folder, self.repository = folder, repository
        self.package = folder / "demo"
        self.package.mkdir()
        for name, text in PACKAGE.items():
            (self.package / name).write_text(text)

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.package / name).read_text()
        assert old in text
        (self.package / name).write_text(text.replace(old, new))

    def run(self, index: int = 0, before_the_call: str = "", **environment: str) -> dict[str, Any]:
        """What a fresh process says: the answer, how often the cache had it, what was logged."""
        script = SCRIPT.format(index=index, before_the_call=before_the_call)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
        path = os.pathsep.join([str(self.folder), str(self.repository)])
        command = [sys.executable, "-c", script]
        where = clean | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"} | environment
        done = subprocess.run(command, env=where, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def compiled(self, name: str = "*") -> set[Path]:
        return set(self.folder.rglob(f"{name}.nbc"))


@pytest.fixture
def demo(tmp_path: Path, repository: Path) -> Demo:
    return Demo(tmp_path, repository)


def test_a_second_run_compiles_nothing(demo: Demo) -> None:
    assert demo.run() == {"answer": 11, "hits": 0, "messages": []}
    assert demo.run() == {"answer": 11, "hits": 1, "messages": []}


EDITS = {
    "in_the_kernel_itself": ("outer.py", "advance(values[i])", "advance(values[i]) + 1"),
    "in_a_kernel_it_calls": ("inner.py", "value + STEP", "value + STEP + 1"),
    "in_a_constant_of_a_file_that_one_imports": ("constants.py", "1", "2"),
}


@pytest.mark.parametrize("name, old, new", EDITS.values(), ids=EDITS)
def test_a_change_is_noticed(demo: Demo, name: str, old: str, new: str) -> None:
    demo.run()
    before = demo.compiled("outer.pick.*")
    demo.edit(name, old, new)
    assert demo.run()["answer"] == 12
    assert not before & demo.compiled("outer.pick.*"), "code of older sources is swept away"


def test_a_change_in_a_file_that_is_not_imported_compiles_nothing(demo: Demo) -> None:
    demo.run()
    demo.edit("unrelated.py", "41", "42")
    assert demo.run() == {"answer": 11, "hits": 1, "messages": []}


def test_bounds_checked_code_and_plain_code_do_not_serve_for_each_other(demo: Demo) -> None:
    demo.run()
    assert demo.run(index=99, NUMBA_BOUNDSCHECK="1")["answer"] == "IndexError"
    assert demo.run(index=99, NUMBA_BOUNDSCHECK="1") == {"answer": "IndexError", "hits": 1, "messages": []}
    assert demo.run()["hits"] == 1


def test_without_jit_kernels_are_plain_functions_and_nothing_is_kept(demo: Demo) -> None:
    assert demo.run(NUMBA_DISABLE_JIT="1") == {"answer": 11, "hits": None, "messages": []}
    assert not demo.compiled()


def test_the_users_cache_directory_is_used(demo: Demo) -> None:
    chosen = demo.folder / "chosen"
    demo.run(NUMBA_CACHE_DIR=str(chosen))
    assert demo.compiled() == set(chosen.rglob("*.nbc")) != set()


def test_what_was_compiled_at_installation_serves_users_who_cannot_write_there(demo: Demo) -> None:
    demo.run()
    assert demo.run(NUMBA_CACHE_DIR=str(demo.folder / "own"))["hits"] == 1


def test_without_any_place_for_a_cache_kernels_work_and_one_warning_says_so(demo: Demo) -> None:
    blocked = demo.package / "__pycache__"
    blocked.write_text("a file where a directory would have to be")
    nowhere = {name: str(blocked) for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME")}
    outcome = demo.run(**nowhere)
    assert (outcome["answer"], len(outcome["messages"])) == (11, 1)
    assert "NUMBA_CACHE_DIR" in outcome["messages"][0]


LATER_TROUBLES = {
    "the_directory_is_replaced_by_a_file": """
import pathlib, shutil
folder = pathlib.Path(pick.stats.cache_path)
shutil.rmtree(folder)
folder.write_text("")
""",
    "files_cannot_grow_any_more": """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
""",
}


@pytest.mark.parametrize("trouble", LATER_TROUBLES.values(), ids=LATER_TROUBLES)
def test_a_cache_that_fails_later_breaks_no_call(demo: Demo, trouble: str) -> None:
    outcome = demo.run(before_the_call=trouble, NUMBA_CACHE_DIR=str(demo.folder / "chosen"))
    assert (outcome["answer"], len(outcome["messages"])) == (11, 1)
    assert not list(demo.folder.rglob("*.tmp")), "nothing half written stays behind"


FROM_ELSEWHERE = b"ca_module_that_is_gone\nArguments\n."  # a pickle

DAMAGES = {
    "emptied": lambda content: b"",
    "one_byte_changed": lambda content: content[:999] + bytes([content[999] ^ 1]) + content[1000:],
    "of_a_class_that_has_moved": lambda content: hashlib.sha256(FROM_ELSEWHERE).digest() + FROM_ELSEWHERE,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_compiled_anew(demo: Demo, damage: Any) -> None:
    demo.run()
    for path in demo.compiled():
        path.write_bytes(damage(path.read_bytes()))
    assert demo.run()["hits"] == 0
    assert demo.run() == {"answer": 11, "hits": 1, "messages": []}


def test_other_numba_functions_keep_their_own_cache(demo: Demo) -> None:
    (demo.package / "foreign.py").write_text(
        "from numba import njit\n\n@njit(cache=True)\ndef twice(x):\n    return 2 * x\n"
    )
    demo.run(before_the_call="from demo.foreign import twice; assert twice(4) == 8")
    assert list((demo.package / "__pycache__").glob("foreign.twice*.nbi"))
