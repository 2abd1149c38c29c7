"""Sentences as a test has them: a number at the margin, and the words about that record beside it."""

import re


def numbered(text: str) -> list[tuple[int, str]]:
    """Each number with its words, whose lines are joined.

    Example:
        >>> numbered("1  Record 1 was\\n   dropped.\\n2  So was\\n   record 2.")
        [(1, 'Record 1 was dropped.'), (2, 'So was record 2.')]
    """
    found = re.findall(r"^(\d+)  (.*?)(?=^\d+  |\Z)", text.strip(), re.MULTILINE | re.DOTALL)
    return [(int(number), " ".join(words.split())) for number, words in found]
