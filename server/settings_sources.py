"""Where settings are from: a file, the environment, flags; and what is said of those that are wrong.

    pathsieve.toml ─┐
    PATHSIEVE_…    ─┼─▶ one table, and an origin for each key ─▶ Settings, or SettingsError
    flags          ─┘

The file is the one that is named, else ./pathsieve.toml, else /etc/pathsieve/pathsieve.toml, else none.
"""

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Secret, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import EnvSettingsSource
from pydantic_settings.exceptions import SettingsError as UnreadableVariable

from server.settings import DEFAULT_ORIGIN, Section, Settings, leaves

__all__ = ["SettingProblem", "SettingsError", "load_settings"]

USUAL_FILES = (Path("pathsieve.toml"), Path("/etc/pathsieve/pathsieve.toml"))
PREFIX = "PATHSIEVE_"
BETWEEN = "__"


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """What is wrong with the setting `key`, and where it was set."""

    key: str
    origin: str
    problem: str

    def __str__(self) -> str:
        return f"{self.key or 'settings'} ({self.origin}): {self.problem}"


class SettingsError(Exception):
    """Some settings were refused; `problems` has each of them."""

    def __init__(self, problems: Iterable[SettingProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


def load_settings(config: Path | None = None, flags: Mapping[str, object] | None = None) -> Settings:
    """The settings of this process; `flags` have dotted keys, and those that are None were not given."""
    merged: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for table, origin in _layers(config, flags or {}):
        _lay_over(merged, table)
        origins |= {key: origin.format(key=key, variable=variable_of(key)) for key, _ in leaves(table)}
    return _checked(merged, origins)


def variable_of(key: str) -> str:
    """The environment's name for a dotted key.

    >>> variable_of("listen.port")
    'PATHSIEVE_LISTEN__PORT'
    """
    return PREFIX + key.replace(".", BETWEEN).upper()


def _layers(config: Path | None, flags: Mapping[str, object]) -> Iterable[tuple[dict[str, Any], str]]:
    """From the weakest to the strongest, each with a pattern for its origins."""
    path = _file(config)
    if path is not None:
        yield _read_file(path), f"file {path.resolve()}".replace("{", "{{").replace("}", "}}")
    yield _read_environment(), "environment variable {variable}"
    yield _nested({key: value for key, value in flags.items() if value is not None}), "flag for {key}"


def _file(config: Path | None) -> Path | None:
    return config or next((path for path in USUAL_FILES if path.is_file()), None)


def _read_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise SettingsError([SettingProblem("", f"file {path}", f"cannot be read: {error.strerror}")]) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError([SettingProblem("", f"file {path}", f"is not TOML: {error}")]) from error


def _read_environment() -> dict[str, Any]:
    unknown = [name for name in os.environ if _names_a_section(name) and _section(name) not in Settings.model_fields]
    if unknown:
        raise SettingsError(SettingProblem(_section(name), _variable(name), _no_such(Settings)) for name in unknown)
    try:
        return EnvSettingsSource(Settings)()
    except UnreadableVariable as error:
        raise SettingsError([SettingProblem("", "environment", f"{error}; expected JSON")]) from error


def _names_a_section(name: str) -> bool:
    return name.startswith(PREFIX) and BETWEEN in name


def _section(name: str) -> str:
    return name.removeprefix(PREFIX).partition(BETWEEN)[0].lower()


def _variable(name: str) -> str:
    return f"environment variable {name}"


def _nested(flat: Mapping[str, object]) -> dict[str, Any]:
    """Tables in a table, of dotted keys.

    >>> _nested({"listen.port": 0, "drain_seconds": 5})
    {'listen': {'port': 0}, 'drain_seconds': 5}
    """
    nested: dict[str, Any] = {}
    for key, value in flat.items():
        *path, name = key.split(".")
        table = nested
        for part in path:
            table = table.setdefault(part, {})
        table[name] = value
    return nested


def _lay_over(lower: dict[str, Any], upper: Mapping[str, Any]) -> None:
    for name, value in upper.items():
        if isinstance(value, dict) and isinstance(lower.get(name), dict):
            _lay_over(lower[name], value)
        else:
            lower[name] = value


def _checked(merged: dict[str, Any], origins: dict[str, str]) -> Settings:
    try:
        settings = Settings.model_validate(merged)
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False)
        raise SettingsError(_problem(detail, origins) for detail in details) from None
    settings._origins.update(origins)
    return settings


def _problem(detail: Any, origins: Mapping[str, str]) -> SettingProblem:
    key = ".".join(str(part) for part in detail["loc"])
    within = (origin for longer, origin in origins.items() if longer.startswith(f"{key}."))
    origin = origins.get(key) or next(within, DEFAULT_ORIGIN)
    if detail["type"] == "extra_forbidden":
        return SettingProblem(key, origin, _no_such(_section_class(detail["loc"])))
    expected = detail["msg"].replace("Input should be", "expected")
    return SettingProblem(key, origin, expected + ("" if _is_secret(detail["loc"]) else f", found {detail['input']!r}"))


def _no_such(model: type[Section] | type[Settings]) -> str:
    return f"there is no such setting; there are {', '.join(sorted(model.model_fields))}"


def _section_class(place: tuple[int | str, ...]) -> type[Section] | type[Settings]:
    """The class that has, or should have, the last name of `place`."""
    field: FieldInfo | None = Settings.model_fields.get(str(place[0])) if len(place) > 1 else None
    annotation = field.annotation if field else None
    return annotation if isinstance(annotation, type) and issubclass(annotation, Section) else Settings


def _is_secret(place: tuple[int | str, ...]) -> bool:
    field = _section_class(place).model_fields.get(str(place[-1]))
    return field is not None and isinstance(field.annotation, type) and issubclass(field.annotation, Secret)
