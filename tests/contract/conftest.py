"""Each test of the contract that asks for `windows` runs over every kind."""

from collections.abc import Iterator

import pytest

from sessionkit.windows import WINDOW_KINDS, WindowKind
from tests.contract.kinds import EXAMPLES, KINDS


@pytest.fixture(autouse=True, scope="module")
def _registered() -> Iterator[None]:
    for example in EXAMPLES.values():
        WINDOW_KINDS.append(type(example))
    yield
    for example in EXAMPLES.values():
        WINDOW_KINDS.remove(type(example))


@pytest.fixture(params=KINDS)
def windows(request: pytest.FixtureRequest) -> WindowKind:
    return KINDS[request.param]
