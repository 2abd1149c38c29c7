"""The page of functions: made from the docstrings as they are now, complete, and each function with an example."""

import inspect
import re

import pytest

import sessionkit as sk
from tests.docs.functions import PAGE, SECTIONS, example_of, members, text
from tests.docs.pages import pages

CLASSES = [(kind, variable) for section in SECTIONS.values() for kind, variable in section if variable]


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == text(), "`make docs` writes it anew"


def test_every_public_name_is_on_it() -> None:
    listed = {entry for section in SECTIONS.values() for entry, _ in section}
    public = (getattr(sk, name) for name in sk.__all__)
    assert {each if callable(each) else type(each) for each in public} - listed == set()


@pytest.mark.parametrize(("kind", "variable"), CLASSES, ids=[kind.__name__ for kind, _ in CLASSES])
def test_every_method_is_used_in_its_own_example_or_in_that_of_its_class(kind: type, variable: str) -> None:
    of_class = re.findall(r"\.(\w+)", example_of(kind))
    without = [name for name in members(kind) if not example_of(inspect.getattr_static(kind, name))]
    unused = [name for name in without if name not in of_class]
    assert unused == []


def test_every_function_is_in_use_on_a_page() -> None:
    """Not only listed: a page shows what it is for."""
    written = "\n".join(page.path.read_text(encoding="utf-8") for page in pages() if page.path != PAGE)
    unused = [f"sk.{name}" for name in sk.__all__ if name[0].islower() and not re.search(rf"\bsk\.{name}[(.]", written)]
    unused += [f".{name}" for name in members(sk.Run) if not re.search(rf"\b(run|other)\.{name}\b", written)]
    assert unused == []
