"""Messages that fit: of a line that no terminal holds the part around the caret, and each name once."""

from __future__ import annotations

import pytest

from millstream.errors import Diagnostic, Span, nearest

WORD = "wrong"


@pytest.mark.parametrize("before", [0, 30, 119, 500])
def test_the_caret_stands_under_the_word_and_the_line_is_short(before: int) -> None:
    text = "a" * before + WORD + "b" * 2000
    *_, line, caret = Diagnostic("MS008", "no", Span("p.yaml", 1, before + 1, before + 1 + len(WORD), text)).render().splitlines()
    assert line[caret.index("^") : caret.rindex("^") + 1] == WORD
    assert len(line) < 130


def test_a_caret_does_not_run_past_the_line() -> None:
    *_, line, caret = Diagnostic("MS008", "no", Span("p.yaml", 1, 300, 5000, "x" * 6000)).render().splitlines()
    assert len(caret) <= len(line)


def test_what_two_tables_have_is_listed_once() -> None:
    assert nearest("zzz", ["id", "at", "id"]) == "known: `at`, `id`"
