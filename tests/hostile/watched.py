"""A tab that is watched: what it asks for, what its console says, and whether hostile text ran."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.optional import Browser, Dialog, Page


@dataclass
class Watched:
    """A tab, and what happened in it."""

    tab: Page
    asked: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)

    @property
    def complaints(self) -> list[str]:
        """Errors and warnings of its console."""
        return [words for words in self.told if words.startswith(("error", "warning"))]

    def stop(self, dialog: Dialog) -> None:
        self.ran.append(dialog.message)
        dialog.dismiss()


@contextlib.contextmanager
def watching(browser: Browser, **options: Any) -> Iterator[Watched]:
    """A tab in which a call of `alert` and the like is written down."""
    with browser.new_context(**options) as context:
        tab = context.new_page()
        watched = Watched(tab)
        tab.on("request", lambda request: watched.asked.append(request.url))
        tab.on("console", lambda message: watched.told.append(f"{message.type}: {message.text}"))
        tab.on("pageerror", lambda error: watched.told.append(f"error: {error}"))
        tab.on("dialog", watched.stop)
        tab.expose_function("__told", lambda text: watched.ran.append(str(text)))
        tab.add_init_script("window.alert = window.confirm = window.prompt = text => window.__told(String(text))")
        yield watched
