"""The scripts and styles that pages and widgets are made with, and what a page may do."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources


def read_asset(name: str) -> str:
    """The text of a file that comes with the package, such as "views/page/page.css"."""
    folder, _, file = name.rpartition("/")
    return resources.files("sessionkit").joinpath(folder, "_assets", file).read_text(encoding="utf-8")


def policy(scripts: Sequence[str], styles: Sequence[str]) -> str:
    """The policy that a browser holds a page to: it may use the code and styles inside it, and load nothing."""
    rules = {
        "default-src": "'none'",
        "script-src": " ".join(map(_digest, scripts)),
        "style-src": " ".join(map(_digest, styles)),
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    directives = "; ".join(f"{name} {value}" for name, value in rules.items())
    return f'<meta http-equiv="Content-Security-Policy" content="{directives}">'


def whole_page(title: str, css: str, js: str, body: str) -> str:
    """A page of its own, in the reader's theme; the title is escaped already."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{policy([js], [css])}<title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><style>{css}</style></head><body><main><h1>{title}</h1>'
        f"{body}</main><script>{js}</script></body></html>"
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
