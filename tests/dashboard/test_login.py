"""Names and passwords as the operator gives them, and where a login leads."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.login import passwords, within
from engine.errors import BadInput


def test_names_and_passwords_are_read(tmp_path: Path) -> None:
    file = tmp_path / "users.json"
    file.write_text('{"ada": "lovelace", "bob": "ross"}')
    assert passwords(file) == {"ada": "lovelace", "bob": "ross"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ada: lovelace", "is not JSON"),
        ('["ada"]', "holds no names"),
        ("{}", "holds no names"),
        ('{"ada": ""}', "'ada' in .* has no password"),
        ('{"ada": "a", "bob": null}', "'bob' in .* has no password"),
    ],
)
def test_what_is_no_list_of_passwords_is_refused_in_a_sentence(
    text: str, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "users.json"
    file.write_text(text)
    with pytest.raises(BadInput, match=said):
        passwords(file)


def test_a_login_leads_nowhere_else() -> None:
    assert within("/redshift?run=a&seed=1") == "/redshift?run=a&seed=1"
    for elsewhere in ("//evil.example", "https://evil.example/", "/\\evil.example", "redshift", ""):
        assert within(elsewhere) == "/"
