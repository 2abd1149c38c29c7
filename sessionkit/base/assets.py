"""The scripts and styles that pages and widgets are made with."""

from importlib import resources


def read_asset(name: str) -> str:
    """The text of a file that comes with the package."""
    return resources.files("sessionkit.base").joinpath("_assets", name).read_text(encoding="utf-8")
