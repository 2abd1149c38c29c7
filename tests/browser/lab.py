"""A Jupyter server with a folder of notebooks, and a page of it in the browser."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from tests.optional import Browser, Page

PACKAGE = Path(__file__).parents[2]
PATIENCE_MS = 120_000
SIZE = {"width": 1300, "height": 1100}
# JupyterLab and Notebook 7 lend their commands to the page.
NEXT = "new Promise(done => setTimeout(done, 50))"
READY = f"async () => {{ while (!window.jupyterapp) await {NEXT}; await jupyterapp.restored; }}"
OPEN = """async name => {
  const panel = await jupyterapp.commands.execute('docmanager:open', {path: name, factory: 'Notebook'});
  await panel.revealed;
}"""
SETTLE = f"""async () => {{
  while (!jupyterapp.shell.currentWidget?.sessionContext) await {NEXT};
  const panel = jupyterapp.shell.currentWidget;
  await panel.context.ready;
  await panel.sessionContext.ready;
}}"""
RUN = "() => jupyterapp.commands.execute('notebook:run-all-cells')"
CLOSE = """async () => {
  await jupyterapp.commands.execute('docmanager:save-all');
  await jupyterapp.commands.execute('application:close-all');
  await jupyterapp.serviceManager.sessions.shutdownAll();
}"""


@dataclass
class Server:
    """A running Jupyter server."""

    folder: Path
    port: int
    token: str

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def url(self, kind: str, name: str = "") -> str:
        """The address of JupyterLab ("lab"), or of a notebook in "notebooks" or "voila/render"."""
        return f"{self.origin}/{kind}/{quote(name)}?token={self.token}"

    def write(self, name: str, *cells: str) -> str:
        """Writes a notebook of code cells."""
        import nbformat  # takes seconds to load

        notebook = nbformat.v4.new_notebook()
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
        nbformat.write(notebook, self.folder / name)
        return name


@dataclass
class Visit:
    """One page, with what it asked for outside of the server and what went wrong on its console."""

    server: Server
    page: Page
    outside: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def open_lab(self, name: str, *, run: bool = True) -> None:
        """Opens a notebook in JupyterLab and runs all of it."""
        if not self.page.url.startswith(self.server.origin):
            self.page.goto(self.server.url("lab") + "&reset", wait_until="domcontentloaded")
        self._wait_for(READY)
        self._wait_for(OPEN, name)
        self.settle()
        if run:
            self.run_all()

    def settle(self) -> None:
        self._wait_for(READY)
        self._wait_for(SETTLE)

    def run_all(self, patience_ms: int = PATIENCE_MS) -> None:
        """Runs all cells, and waits for the last one."""
        self._wait_for(RUN, patience_ms=patience_ms)

    def _wait_for(self, script: str, *given: str, patience_ms: int = PATIENCE_MS) -> None:
        """As `evaluate`, but not for ever."""
        called = f"async given => {{ await ({script})(...given); return true; }}"
        self.page.wait_for_function(called, arg=given, timeout=patience_ms)

    def reload(self) -> None:
        """Saves the notebook and loads the page anew."""
        self._wait_for("() => jupyterapp.commands.execute('docmanager:save')")
        self.page.reload(wait_until="domcontentloaded")
        self.settle()

    @contextlib.contextmanager
    def anew(self, **size: int) -> Iterator[Visit]:
        """The same page for another test, with nothing open: loading JupyterLab takes longer than most tests do.

        At its end nothing was asked of another machine, and nothing went wrong on the console.
        """
        self.page.set_viewport_size({**SIZE, **size})  # type: ignore[typeddict-item]
        self.outside.clear()
        self.errors.clear()
        try:
            yield self
            assert self.outside == []
            assert self.errors == []
            self._wait_for(CLOSE)
        except BaseException:
            self.page.goto("about:blank")
            raise

    def wait_drawn(self, revision: int | None = None, nth: int = 0) -> int:
        """Waits until a picture is drawn (as this revision, or a later one), and gives its revision."""
        self.page.wait_for_function(
            """([nth, least]) => { const e = document.querySelectorAll('.sessionkit-picture')[nth];
              return e && e.dataset.revision !== undefined && +e.dataset.revision >= least; }""",
            arg=[nth, revision or 0],
            timeout=PATIENCE_MS,
        )
        return int(self.page.locator(".sessionkit-picture").nth(nth).get_attribute("data-revision") or 0)


@contextlib.contextmanager
def serving(folder: Path, home: Path) -> Iterator[Server]:
    """A server over `folder` that keeps its own files in `home` and asks nobody for news."""
    settings = home / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text('{"fetchNews": "false", "checkForUpdates": false}')
    server = Server(folder, free_port(), secrets.token_hex(8))
    names = {
        "JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data", "JUPYTER_RUNTIME_DIR": "runtime",
        "IPYTHONDIR": "ipython", "JUPYTERLAB_SETTINGS_DIR": "settings", "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
    }  # fmt: skip
    environment = {
        **os.environ,
        "HOME": str(home),
        "PYTHONPATH": str(PACKAGE),
        **{name: str(home / each) for name, each in names.items()},
    }
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1"),
        *(f"--port={server.port}", f"--IdentityProvider.token={server.token}", f"--ServerApp.root_dir={folder}"),
        *("--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"),
        *("--LabApp.extension_manager=readonly", "--LabApp.expose_app_in_browser=True"),
        "--JupyterNotebookApp.expose_app_in_browser=True",
    ]
    log = home / "server.log"
    with log.open("w") as out, subprocess.Popen(command, env=environment, stdout=out, stderr=out) as process:
        try:
            wait_for_server(server.port, process, log)
            yield server
        finally:
            process.terminate()
            process.wait(20)


def free_port() -> int:
    """A port on which nobody listens just now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def wait_for_server(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Waits until something listens on this port of this machine."""
    for _ in range(600):
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 0.2).close()
            return
        assert process.poll() is None, log.read_text()
        time.sleep(0.1)
    raise AssertionError(f"the server does not listen:\n{log.read_text()}")


@contextlib.contextmanager
def visiting(server: Server, browser: Browser, **options: object) -> Iterator[Visit]:
    context = browser.new_context(**{"viewport": SIZE, **options})  # type: ignore[arg-type]
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    visit = Visit(server, page)
    home = (server.origin, server.origin.replace("http", "ws"), "data:", "blob:")
    page.on("request", lambda request: None if request.url.startswith(home) else visit.outside.append(request.url))
    page.on("websocket", lambda socket: None if socket.url.startswith(home) else visit.outside.append(socket.url))
    page.on("console", lambda line: visit.errors.append(line.text[:300]) if line.type == "error" else None)
    page.on("pageerror", lambda error: visit.errors.append(str(error)[:300]))
    page.on("dialog", lambda dialog: dialog.accept())
    # a slow machine is asked which kernel to use: the notebook's own
    # (one dialog may follow another, so the handler does not wait until none is left)
    page.add_locator_handler(
        page.locator(".jp-Dialog button.jp-mod-accept"), lambda button: button.first.click(), no_wait_after=True
    )
    try:
        yield visit
    finally:
        context.close()
