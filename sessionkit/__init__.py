"""Kafka Streams' windowed aggregations in Python: exact, explained, drawn; in the notebook and on Spark."""

import lazy_loader

# `__init__.pyi` lists the names. Each is loaded when it is first asked for: a notebook, a command and a worker of Spark
# need different parts, and each of them starts anew.
_load, _, _names = lazy_loader.attach_stub(__name__, __file__)
_MODULES = ("aggregations", "errors", "stores", "windows")  # that hold errors and what can be extended

__version__ = "0.2.0"
__all__ = [name for name in _names if name not in _MODULES]


def __getattr__(name: str) -> object:
    try:
        return _load(name)
    except AttributeError:
        import sys

        from sessionkit.base.calls import unknown_name

        raise unknown_name(sys.modules[__name__], "sk", name) from None


def __dir__() -> list[str]:
    """What tab completion offers: the public names, and the modules that hold errors and what can be extended."""
    return sorted([*_names, "__version__"])
