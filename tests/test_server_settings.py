"""Settings: three sources, one object, and the origin of every value."""

import re
from pathlib import Path

import pytest

from server.settings import Password, Settings, StoreUrl
from server.settings_sources import USUAL_FILES, SettingsError, load_settings


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(text: str) -> Path:
    path = Path("some.toml")
    path.write_text(text)
    return path


def test_nothing_has_to_be_set() -> None:
    settings = load_settings()
    assert (settings.listen.host, settings.listen.port) == ("127.0.0.1", 7443)
    assert (settings.http.host, settings.http.port) == ("127.0.0.1", 7480)
    assert settings.store.url.get_secret_value() == "pathsieve-data/pathsieve.db"
    assert {origin for _, _, origin in settings.rows()} == {"default"}


def test_a_flag_wins_over_the_environment_and_that_over_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    path = written("[listen]\nport = 1\nhost = 'a'\n[http]\nport = 1\n[log]\nlevel = 'debug'")
    monkeypatch.setenv("PATHSIEVE_LISTEN__PORT", "2")
    monkeypatch.setenv("PATHSIEVE_HTTP__PORT", "2")
    settings = load_settings(path, {"listen.port": 3, "http.port": None})
    assert (settings.listen.port, settings.http.port, settings.listen.host) == (3, 2, "a")
    assert settings.log.level == "debug"


def test_each_value_knows_its_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    path = written("[listen]\nhost = '::1'")
    monkeypatch.setenv("PATHSIEVE_HTTP__PORT", "2")
    settings = load_settings(path, {"drain_seconds": 3})
    origins = {key: origin for key, _, origin in settings.rows() if origin != "default"}
    assert origins == {
        "listen.host": f"file {path.resolve()}",
        "http.port": "environment variable PATHSIEVE_HTTP__PORT",
        "drain_seconds": "flag for drain_seconds",
    }


def test_the_usual_file_is_found_without_being_named() -> None:
    USUAL_FILES[0].write_text("[listen]\nport = 5")
    assert load_settings().listen.port == 5


def test_extractors_are_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    path = written("[extractors]\nprice = 'number(//price)'")
    monkeypatch.setenv("PATHSIEVE_EXTRACTORS__SYMBOL", "string(//@symbol)")
    assert load_settings(path).extractors == {"price": "number(//price)", "symbol": "string(//@symbol)"}


REFUSED = {
    "a_key_that_is_not_there": ("[listen]\nprot = 1", "listen.prot", "there are host, port, ready_file"),
    "a_table_that_is_not_there": ("[lisetn]\nport = 1", "lisetn", "there are cluster, delivery, drain_seconds"),
    "a_word_for_a_number": ("[listen]\nport = 'x'", "listen.port", "expected a valid integer"),
    "a_number_out_of_range": ("[listen]\nport = 70000", "listen.port", "expected less than or equal to 65535"),
    "a_word_that_is_none_of_the_words": ("[log]\nlevel = 'loud'", "log.level", "expected 'debug', 'info'"),
    "a_value_for_a_table": ("listen = 7", "listen", "found 7"),
    "what_is_not_toml": ("listen = ", "", "is not TOML: Invalid value (at end of document)"),
}


@pytest.mark.parametrize("text, key, said", REFUSED.values(), ids=REFUSED)
def test_the_error_has_the_key_the_file_and_what_was_expected(text: str, key: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(written(text))
    [problem] = caught.value.problems
    assert problem.key == key
    assert "some.toml" in problem.origin
    assert said in problem.problem


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(written("[listen]\nport = 'x'\n[http]\nport = 'y'"))
    assert [problem.key for problem in caught.value.problems] == ["listen.port", "http.port"]


def test_a_file_that_is_named_must_be_there() -> None:
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        load_settings(Path("none.toml"))


BAD_VARIABLES = {
    "a_section_that_is_not_there": ("PATHSIEVE_LISETN__PORT", "1", "lisetn"),
    "a_key_that_is_not_there": ("PATHSIEVE_LISTEN__PROT", "1", "listen.prot"),
    "a_wrong_type": ("PATHSIEVE_LISTEN__PORT", "x", "listen.port"),
    "a_table_that_is_not_json": ("PATHSIEVE_EXTRACTORS", "price", ""),
}


@pytest.mark.parametrize("name, value, key", BAD_VARIABLES.values(), ids=BAD_VARIABLES)
def test_a_bad_variable_is_refused(name: str, value: str, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        load_settings()
    [problem] = caught.value.problems
    assert problem.key == key
    assert problem.origin.startswith("environment")


def test_variables_of_clients_are_none_of_our_business(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATHSIEVE_ENDPOINT", "localhost:7443")
    load_settings()


SECRETS = {
    "a_password": (Password("hush"), "********"),
    "no_password": (Password(""), ""),
    "a_file": (StoreUrl("data/sieve.db"), "data/sieve.db"),
    "a_url": (StoreUrl("postgresql://me:hush@db/sieve"), "postgresql://me:***@db/sieve"),
    "a_url_without_a_password": (StoreUrl("postgresql://me@db/sieve"), "postgresql://me@db/sieve"),
    "a_password_in_the_query": (
        StoreUrl("postgresql:///sieve?password=hush&x=1"),
        "postgresql:///sieve?password=***&x=1",
    ),
}


@pytest.mark.parametrize("secret, shown", SECRETS.values(), ids=SECRETS)
def test_secrets_are_never_shown(secret: Password | StoreUrl, shown: str) -> None:
    assert str(secret) == shown
    assert "hush" not in repr(secret)


def test_rows_and_errors_hold_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load_settings(None, {"smtp.password": "hush", "store.url": "postgresql://me:hush@db/sieve"})
    assert "hush" not in repr(settings) + repr(list(settings.rows()))
    with pytest.raises(SettingsError) as caught:
        load_settings(None, {"smtp.password": ["hush"]})
    assert "hush" not in str(caught.value)


def test_settings_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().listen.port = 5  # type: ignore[misc]


def test_every_setting_is_described(repository: Path) -> None:
    described = (repository / "docs" / "settings.md").read_text()
    assert [key for key, _, _ in Settings().rows() if f"`{key}`" not in described] == []


def test_nothing_is_described_that_is_not_there(repository: Path) -> None:
    text = (repository / "docs" / "settings.md").read_text()
    sections = "|".join(Settings.model_fields)
    described = set(re.findall(rf"`((?:{sections})\.[a-z_]+)`", text))
    assert described == {key for key, _, _ in Settings().rows() if "." in key}
