"""Text from data made safe: one short line, no markup, no MathJax."""

import ast
import html
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionkit.base.text import escape_html, escape_label, html_block, keyword_arguments, literal, plural
from sessionkit.errors import LABEL_LENGTH, shorten

ANY_TEXT = st.text(st.characters(exclude_categories=()))  # lone surrogates too


@given(ANY_TEXT, st.integers(1, 80))
def test_shortened_text_is_one_printable_line_of_that_length(text: str, length: int) -> None:
    short = shorten(text, length)
    assert len(short) <= length
    assert len(short.splitlines()) <= 1
    short.encode()  # no lone surrogate is left


@given(st.text(st.characters(categories=["L", "N", "P", "S"]), max_size=LABEL_LENGTH))
def test_short_printable_text_stays_as_it_is(text: str) -> None:
    assert shorten(text) == text


@pytest.mark.parametrize(
    ("text", "length", "short"),
    [
        ("a" * 100, 9, "aaaa…aaaa"),
        ("0123456789", 6, "012…89"),
        ("0123456789", 2, "0…"),
        ("0123456789", 1, "…"),
        ("a\nb\tc\0", 60, "a\\nb\\tc\\x00"),
        ("\ud800", 60, "\\ud800"),
        ("a\u2028b\u2029c", 60, "a\\u2028b\\u2029c"),
        ("admin\u202egnp.exe", 60, "admin\\u202egnp.exe"),  # turns the reading direction
        ("é", 60, "é"),
        (17, 60, "17"),
    ],
)
def test_shortened(text: object, length: int, short: str) -> None:
    assert shorten(text, length) == short


def test_a_key_of_a_megabyte_is_cut_before_it_is_cleaned() -> None:
    assert shorten("\0" * 2**20, 9) == "\\x00…\\x00"


@given(ANY_TEXT)
def test_escaped_html_shows_as_the_text_and_holds_nothing_active(text: str) -> None:
    escaped = escape_html(text)
    assert html.unescape(escaped) == html.unescape(html.escape(text))
    assert not set(escaped) & set("<>\"'$")


@given(ANY_TEXT)
def test_a_label_is_one_short_line_without_markup(text: str) -> None:
    label = escape_label(text)
    assert not set(label) & set("<>\"'$\n")
    assert len(html.unescape(label)) <= LABEL_LENGTH


def test_escaped_as_expected() -> None:
    assert escape_html("""<a href='x'>"$1" & co</a>""") == (
        "&lt;a href=&#x27;x&#x27;&gt;&#34;&#36;1&#34; &amp; co&lt;/a&gt;"
    )
    assert escape_label("<br>" * 40, 9) == "&lt;br&gt;…&lt;br&gt;"


def test_a_block_is_left_alone_by_mathjax() -> None:
    # An entity is not enough in a page: MathJax looks at the text after the browser has read it.
    assert html_block("<p>x</p>") == '<div class="mathjax_ignore tex2jax_ignore"><p>x</p></div>'


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 records"), (1, "1 record"), (2, "2 records"), (28_491, "28,491 records")]
)
def test_plural(count: int, words: str) -> None:
    assert plural(count, "record") == words


def test_plural_that_is_not_regular() -> None:
    assert (plural(1, "entry", "entries"), plural(2, "entry", "entries")) == ("1 entry", "2 entries")


def test_names_of_arguments() -> None:
    code = keyword_arguments({"n": "1", "class": "2", "per cent": "3", "ª": "4", "é": "5", 'a"b': "6"})
    assert code == ["n=1", '**{"class": 2}', '**{"per cent": 3}', '**{"ª": 4}', "é=5", '**{"a\\"b": 6}']


@given(ANY_TEXT)
def test_text_as_code_is_the_text_and_hides_nothing(text: str) -> None:
    code = literal(text)
    assert ast.literal_eval(code) == text
    assert not any(unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for character in code)
