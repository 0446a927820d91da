"""The generated code is what the protos say."""

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
STUBS = Path("pathsieve") / "v1"


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stubs")
    command = ["make", "--no-print-directory", "proto", f"STUBS={folder}", f"IN_VENV={sys.executable}"]
    subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True)
    return folder / STUBS


def test_there_is_a_stub_for_each_proto_and_no_other(generated: Path) -> None:
    checked_in = {path.name for path in (REPOSITORY / STUBS).glob("*_pb2*")}
    assert checked_in == {path.name for path in generated.iterdir()}


@pytest.mark.parametrize("name", sorted(path.name for path in (REPOSITORY / STUBS).glob("*_pb2*")))
def test_a_stub_is_what_its_proto_says(name: str, generated: Path) -> None:
    assert (REPOSITORY / STUBS / name).read_text() == (generated / name).read_text(), "run `make proto`"
