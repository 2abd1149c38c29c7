"""The page of public questions: each has a source of its own, and an answer that is checked or a nearest way."""

import re
from collections.abc import Iterator

from tests.docs.pages import ROOT, Page

PAGE = Page(ROOT / "docs" / "questions.md")
LAST = "## What cannot be said yet"
QUESTION = re.compile(r"(?m)^(\d+)\. (.*\S)$")
SOURCE = re.compile(r"\(\[[^\]]+\]\((https://[^\s)]+)\)\)")


def sections() -> Iterator[tuple[str, str]]:
    """The heading and the text of each section."""
    for text in re.split(r"(?m)^(?=## )", PAGE.path.read_text(encoding="utf-8"))[1:]:
        yield text.splitlines()[0], text


def questions() -> list[tuple[int, str, str]]:
    """The number, the words and the section's heading of each question."""
    return [(int(number), words, heading) for heading, text in sections() for number, words in QUESTION.findall(text)]


def test_there_are_fifty_questions_and_forty_of_them_are_answered() -> None:
    assert [number for number, _, _ in questions()] == list(range(1, len(questions()) + 1))
    assert len(questions()) >= 50
    assert sum(heading != LAST for _, _, heading in questions()) >= 40


def test_each_question_has_a_public_source_of_its_own() -> None:
    sources = [(number, SOURCE.findall(words)) for number, words, _ in questions()]
    assert [number for number, found in sources if len(found) != 1] == []
    links = [found[0].rstrip("/").lower() for _, found in sources]
    assert [link for link in set(links) if links.count(link) > 1] == []


def test_each_question_is_answered_below_it_or_stands_under_what_cannot_be_said() -> None:
    for heading, text in sections():
        asked = [int(number) for number, _ in QUESTION.findall(text)]
        answers = re.split(r"(?m)^# (\d+)\b", "".join(re.findall(r"(?ms)^```python\n(.*?)^```", text)))
        if heading == LAST:
            assert not answers[1:]
            assert [words for _, words in QUESTION.findall(text) if not re.search(r"\)\)?: \S.*\.$", words)] == []
            continue
        assert [int(number) for number in answers[1::2]] == asked, heading
        unchecked = [
            number for number, code in zip(answers[1::2], answers[2::2], strict=True) if "\nassert " not in code
        ]
        assert unchecked == [], heading
