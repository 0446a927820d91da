"""Tokens: who is let in, until when, and what is never told."""

import hashlib
import json
import logging
import os
from pathlib import Path

import pytest

from server.errors import PermissionDenied, Unauthenticated
from server.security import OpenGuard, Principal
from server.token_file import TokenFileError, TokenGuard

TOKEN = "a-very-secret-token"
HASH = hashlib.sha256(TOKEN.encode()).hexdigest()
IN_2026 = 1_780_000_000.0
GOOD = f"""
[[tokens]]
sha256 = "{HASH}"
tenant = "acme"
roles = ["publish"]
expires = 2027-01-01T00:00:00Z
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    written = tmp_path / "tokens.toml"
    written.write_text(GOOD)
    return written


def bearer(token: str) -> str:
    return f"Bearer {token}"


def change(path: Path, text: str) -> None:
    """Write it so that its time differs, however coarse the clock of the file system."""
    before = path.stat().st_mtime_ns
    path.write_text(text)
    os.utime(path, ns=(before + 10**9, before + 10**9))


def test_a_token_is_somebody_with_a_tenant_and_roles(path: Path) -> None:
    principal = TokenGuard(path, lambda: IN_2026).principal(bearer(TOKEN))
    assert (principal.tenant, principal.roles) == ("acme", {"publish"})


def test_the_file_may_be_json_and_hold_the_token_itself(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    path.write_text(json.dumps({"tokens": [{"token": TOKEN, "roles": ["admin"]}]}))
    assert TokenGuard(path).principal(bearer(TOKEN)).tenant == "default"


STRANGERS = {
    "nobody": (None, IN_2026, "missing"),
    "another_scheme": ("Basic abc", IN_2026, "scheme"),
    "an_unknown_token": (bearer("guess"), IN_2026, "unknown"),
    "an_expired_token": (bearer(TOKEN), 1_900_000_000.0, "expired"),
}


@pytest.mark.parametrize("authorization, now, why", STRANGERS.values(), ids=STRANGERS)
def test_strangers_are_not_let_in(path: Path, authorization: str | None, now: float, why: str) -> None:
    with pytest.raises(Unauthenticated) as caught:
        TokenGuard(path, lambda: now).principal(authorization)
    assert caught.value.facts["why"] == why
    assert TOKEN not in str(caught.value)
    assert "guess" not in str(caught.value)


def test_a_changed_file_is_read_again(path: Path) -> None:
    guard = TokenGuard(path, lambda: IN_2026)
    principal = guard.principal(bearer(TOKEN))
    assert not guard.reload()
    change(path, "tokens = []")
    assert guard.is_still_valid(principal)
    assert guard.reload()
    assert not guard.is_still_valid(principal)


def test_who_has_other_roles_now_is_not_who_was_let_in(path: Path) -> None:
    guard = TokenGuard(path, lambda: IN_2026)
    principal = guard.principal(bearer(TOKEN))
    change(path, GOOD.replace("publish", "subscribe"))
    guard.reload()
    assert not guard.is_still_valid(principal)


def test_a_token_that_expires_is_no_longer_valid(path: Path) -> None:
    now = IN_2026
    guard = TokenGuard(path, lambda: now)
    principal = guard.principal(bearer(TOKEN))
    now = 1_900_000_000.0
    assert not guard.is_still_valid(principal)


@pytest.mark.parametrize("broken", ["[[tokens]", "", f"[[tokens]]\ntoken = '{TOKEN}'"])
def test_a_file_that_has_become_bad_changes_nothing(path: Path, broken: str, caplog: pytest.LogCaptureFixture) -> None:
    guard = TokenGuard(path, lambda: IN_2026)
    change(path, broken)
    with caplog.at_level(logging.ERROR):
        assert not guard.reload()
    assert "stay in force" in caplog.text
    assert TOKEN not in caplog.text
    guard.principal(bearer(TOKEN))


def test_a_file_that_goes_away_changes_nothing(path: Path) -> None:
    guard = TokenGuard(path, lambda: IN_2026)
    path.unlink()
    assert not guard.reload()
    guard.principal(bearer(TOKEN))


BAD_FILES = {
    "not_toml": ("[[tokens]", "is not TOML"),
    "no_tokens": ("x = 1", r"expected tables \[\[tokens\]\]"),
    "neither_token_nor_hash": ("[[tokens]]\nroles = ['admin']", "entry 1: .*either token or sha256"),
    "both": (
        f"[[tokens]]\nroles = ['admin']\ntoken = '{TOKEN}'\nsha256 = '{HASH}'",
        "entry 1: .*either token or sha256",
    ),
    "no_roles": (f"[[tokens]]\ntoken = '{TOKEN}'", "entry 1, roles: Field required"),
    "an_unknown_role": (
        f"[[tokens]]\ntoken = '{TOKEN}'\nroles = ['king']",
        "entry 1, roles, 0: .*'publish', 'subscribe'",
    ),
    "a_short_hash": ("[[tokens]]\nsha256 = 'ab'\nroles = ['admin']", "entry 1, sha256"),
    "a_key_that_is_not_there": (f"[[tokens]]\ntoken = '{TOKEN}'\nroles = ['admin']\nrole = 1", "entry 1, role: "),
    "a_time_without_a_zone": (
        f"[[tokens]]\ntoken = '{TOKEN}'\nroles = ['admin']\nexpires = 2027-01-01T00:00:00",
        "entry 1, expires: .*timezone",
    ),
    "no_table": ("tokens = ['x']", "entry 1: "),
}


@pytest.mark.parametrize("text, said", BAD_FILES.values(), ids=BAD_FILES)
def test_a_bad_file_is_refused_in_words_without_its_tokens(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "tokens.toml"
    path.write_text(text)
    with pytest.raises(TokenFileError, match=said) as caught:
        TokenGuard(path)
    assert TOKEN not in str(caught.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TokenFileError, match="No such file"):
        TokenGuard(tmp_path / "none.toml")


def test_no_repr_tells_a_token(path: Path) -> None:
    guard = TokenGuard(path, lambda: IN_2026)
    assert HASH not in repr(guard.principal(bearer(TOKEN))) + repr(guard)


def test_roles_are_asked_for_by_name() -> None:
    publisher = Principal("acme", frozenset(["publish"]))
    publisher.must_have("publish")
    with pytest.raises(PermissionDenied, match="needs the role subscribe, and the token has only publish"):
        publisher.must_have("subscribe")


def test_an_administrator_may_do_everything() -> None:
    OpenGuard().principal(None).must_have("subscribe")
