"""One Jupyter server for all tests in the browser."""

from collections.abc import Iterator

import pytest

from tests.browser.lab import Server, Visit, serving, visiting
from tests.optional import Browser


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A Jupyter server over an empty folder."""
    pytest.importorskip("jupyterlab", reason="jupyterlab is not installed")
    home = tmp_path_factory.mktemp("jupyter")
    folder = home / "notebooks"
    folder.mkdir()
    with serving(folder, home) as running:
        yield running


@pytest.fixture(scope="session")
def lab(server: Server, browser: Browser) -> Iterator[Visit]:
    """A page for JupyterLab, which is loaded once."""
    with visiting(server, browser) as page:
        yield page


@pytest.fixture
def visit(lab: Visit) -> Iterator[Visit]:
    """A page; at its end nothing was asked of another machine, and nothing went wrong on the console."""
    with lab.anew() as page:
        yield page
