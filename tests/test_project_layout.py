"""The project keeps its shape: imports follow the arrows, and what is offered is there.

    sievecore ◀── xpathfilter, boolmatch ◀── sievefilters ◀── server      nothing imports server, but for
                                                          ◀── pyspark_pathsieve
                                         ◀── pathsieve                    `pathsieve serve`, and then lazily

Packages that do not exist yet already have their rule.
"""

import ast
import doctest
import importlib
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
NOT_SHIPPED = {"tests", "benchmarks"}

ENGINES = {"sievecore", "xpathfilter", "boolmatch"}
MAY_IMPORT = {
    "sievecore": set(),
    "xpathfilter": {"sievecore"},
    "boolmatch": {"sievecore"},
    "sievefilters": ENGINES,
    "server": ENGINES | {"sievefilters", "pathsieve"},
    "pathsieve": ENGINES,
    "pyspark_pathsieve": ENGINES | {"sievefilters", "pathsieve"},
}
MAY_IMPORT_LAZILY = {"pathsieve": {"server"}}
OURS = set(MAY_IMPORT) | NOT_SHIPPED


def packages() -> list[str]:
    """The shipped packages on disk."""
    found = {path.parent.name for path in REPOSITORY.glob("*/__init__.py")}
    return sorted(found - NOT_SHIPPED)


def modules() -> list[Path]:
    return sorted(path for package in packages() for path in (REPOSITORY / package).rglob("*.py"))


def relative(path: Path) -> str:
    return str(path.relative_to(REPOSITORY))


def imports(tree: ast.AST, lazy: bool = False) -> Iterator[tuple[str, bool]]:
    """Each imported top-level package, and whether it is imported only when a function runs, or never."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name.partition(".")[0], lazy) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0], lazy
        inside_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for_types_only = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        yield from imports(node, lazy or inside_function or for_types_only)


def wrong_imports(package: str, source: str) -> set[str]:
    """The packages of ours that a module of `package` imports against the arrows."""
    always = MAY_IMPORT[package] | {package}
    lazily = always | MAY_IMPORT_LAZILY.get(package, set())
    found = imports(ast.parse(source))
    return {name for name, lazy in found if name in OURS and name not in (lazily if lazy else always)}


RULES = {
    "the_foundation_stands_alone": ("sievecore", "import xpathfilter.parser", {"xpathfilter"}),
    "the_foundation_uses_itself": ("sievecore", "from sievecore.jit import kernel", set()),
    "an_engine_stands_on_the_foundation": ("xpathfilter", "from sievecore import jit", set()),
    "an_engine_does_not_know_the_other": ("xpathfilter", "from boolmatch import index", {"boolmatch"}),
    "not_even_lazily": ("boolmatch", "def f():\n    import xpathfilter", {"xpathfilter"}),
    "nor_under_a_condition": ("boolmatch", "if True:\n    import xpathfilter", {"xpathfilter"}),
    "both_engines_know_nobody_above": ("boolmatch", "import sievefilters", {"sievefilters"}),
    "the_client_knows_no_filters": ("pathsieve", "from sievefilters import Filter", {"sievefilters"}),
    "nobody_imports_the_server": ("pyspark_pathsieve", "def f():\n    import server", {"server"}),
    "the_client_imports_it_lazily": ("pathsieve", "def serve():\n    from server import main", set()),
    "and_only_lazily": ("pathsieve", "from server import main", {"server"}),
    "or_for_its_types": ("pathsieve", "if TYPE_CHECKING:\n    from server import main", set()),
    "nobody_imports_tests": ("server", "import tests.oracle", {"tests"}),
    "nobody_imports_benchmarks": ("xpathfilter", "from benchmarks import data", {"benchmarks"}),
    "others_are_free": ("sievecore", "import numpy, lxml.etree", set()),
    "a_relative_import_stays_inside": ("sievecore", "from . import xpathfilter", set()),
}


@pytest.mark.parametrize("package, source, expected", RULES.values(), ids=RULES)
def test_the_rule_finds_what_it_should(package: str, source: str, expected: set[str]) -> None:
    assert wrong_imports(package, source) == expected


@pytest.mark.parametrize("module", modules(), ids=relative)
def test_imports_follow_the_arrows(module: Path) -> None:
    package = module.relative_to(REPOSITORY).parts[0]
    assert not wrong_imports(package, module.read_text())


@pytest.mark.parametrize("package", packages())
def test_what_a_package_offers_is_there(package: str) -> None:
    module = importlib.import_module(package)
    assert module.__doc__, "a package opens with its idea"
    assert len(set(module.__all__)) == len(module.__all__)
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


@pytest.mark.parametrize("module", modules(), ids=relative)
def test_a_module_opens_with_its_idea(module: Path) -> None:
    assert ast.get_docstring(ast.parse(module.read_text()))


def test_the_packages_that_are_shipped_are_those_on_disk() -> None:
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]
    on_disk = {relative(path.parent).replace("/", ".") for path in modules() if path.name == "__init__.py"}
    assert set(settings["setuptools"]["packages"]) == on_disk
    assert set(packages()) <= set(MAY_IMPORT), "a new package needs its rule here"
    assert set(settings["mypy"]["files"]) == set(packages())


@pytest.mark.parametrize("package", packages())
def test_packages_tell_that_they_are_typed(package: str) -> None:
    assert (REPOSITORY / package / "py.typed").is_file()


EXAMPLES = [module for module in modules() if ">>> " in module.read_text()]


@pytest.mark.parametrize("module", EXAMPLES, ids=relative)
def test_the_examples_in_docstrings_are_true(module: Path) -> None:
    dotted = ".".join(module.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__")
    outcome = doctest.testmod(importlib.import_module(dotted))
    assert outcome.attempted > 0
    assert outcome.failed == 0
