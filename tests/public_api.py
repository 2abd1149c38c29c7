"""Every public name with its signature, a line each: `python -m tests.public_api` writes them to public_api.txt."""

import ast
import enum
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, get_origin

LISTED = Path(__file__).parent / "public_api.txt"
COMMAND = "make public-api"
MODULES = ("sessionkit", "sessionkit.aggregations", "sessionkit.errors", "sessionkit.stores", "sessionkit.windows")
# What a user holds although no signature names it: it depends on what was handed in.
HELD = (
    "sessionkit.spark.batch_run.SparkRun", "sessionkit.spark.batch_run.SparkTrace",
    "sessionkit.spark.stream_run.StreamRun", "sessionkit.stores.memory.sessions.MemorySessionStore",
    "sessionkit.stores.memory.windows.MemoryWindowStore", "sessionkit.stores.rocksdb.sessions.RocksDBSessionStore",
    "sessionkit.stores.rocksdb.windows.RocksDBWindowStore", "sessionkit.trace.session_trace.SessionTrace",
    "sessionkit.trace.window_trace.WindowTrace",
)  # fmt: skip

Line = tuple[str, Any]  # and the function, if it is one, whose result a user then holds


def lines() -> list[str]:
    """The public names as they are: what the modules hand on, and the members of the classes that users get to hold."""
    todo: dict[str, Any] = {name: pkgutil.resolve_name(name) for name in HELD}
    for name in MODULES:
        module = importlib.import_module(name)
        todo.update({f"{name}.{public}": getattr(module, public) for public in _names(module)})
    held = {value for value in todo.values() if inspect.isclass(value)}
    said = set()
    while todo:
        name, value = todo.popitem()
        for line, function in _described(name, value):
            said.add(line)
            for kind in _results(function) - held:  # not imported by name, but handed out
                held.add(kind)
                todo[f"{kind.__module__}.{kind.__qualname__}"] = kind
    return sorted(said)


def _names(module: ModuleType) -> list[str]:
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    return getattr(module, "__all__", None) or [name for name in own if not name.startswith("_")]


def _described(name: str, value: Any) -> Iterator[Line]:
    if inspect.isclass(value):
        bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
        yield f"{name} is a class({bases})", None
        if inspect.isfunction(value.__init__) and not getattr(value, "_is_protocol", False):
            yield f"{name}{_signature(value.__init__, bound=True)}", None
        elif hasattr(value, "_fields"):
            yield f"{name}{_signature(value.__new__, bound=True)}", None
        yield from _members(name, value)
    elif inspect.isfunction(_function(value)):
        yield f"{name}{_signature(value)}", value
    elif get_origin(value) is not None:
        yield f"{name} is a type", None
    else:
        yield f"{name}: {type(value).__name__}", None


def _members(name: str, kind: type) -> Iterator[Line]:
    for member in [each for each in dir(kind) if not each.startswith("_")]:
        home = next(each for each in kind.__mro__ if member in vars(each))
        if not home.__module__.startswith("sessionkit"):
            continue
        value, place = vars(home)[member], f"{name}.{member}"
        if isinstance(value, property | cached_property):
            getter: Any = value.fget if isinstance(value, property) else value.func
            yield f"{place}: {_type(_function(getter).__annotations__.get('return', 'Any'))}", getter
        elif isinstance(value, staticmethod | classmethod):
            inner = value.__func__
            yield f"{place}{_signature(inner, bound=isinstance(value, classmethod))}", inner
        elif inspect.isroutine(value) or hasattr(value, "py_func"):
            yield f"{place}{_signature(value, bound=True)}", value
        elif not isinstance(value, type):
            yield f"{place}: {_type(inspect.get_annotations(home).get(member, type(value).__name__))}", None
    for member, wanted in inspect.get_annotations(kind).items():
        if not member.startswith("_"):
            yield f"{name}.{member}: {_type(wanted)}", None


def _function(value: Any) -> Any:
    """The Python function behind decorators, numba's too."""
    return inspect.unwrap(getattr(value, "py_func", value))


def _signature(value: Any, *, bound: bool = False) -> str:
    signature = inspect.signature(_function(value))
    shown: list[str] = []
    last = inspect.Parameter.POSITIONAL_ONLY
    for each in list(signature.parameters.values())[bound:]:
        if each.kind is each.KEYWORD_ONLY and last < each.KEYWORD_ONLY and last is not each.VAR_POSITIONAL:
            shown.append("*")
        last = each.kind
        stars = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        wanted = "" if each.annotation is each.empty else f": {_type(each.annotation)}"
        default = "" if each.default is each.empty else f" = {_code(each.default)}"
        shown.append(f"{stars}{each.name}{wanted}{default}")
    returned = signature.return_annotation
    return f"({', '.join(shown)})" + ("" if returned is signature.empty else f" -> {_type(returned)}")


_OF_ARRAYS = {
    "Longs": "np.int64",
    "Flags": "np.bool_",
    "Floats": "np.float64",
    "Codes": "np.int32",
    "Rows": "np.intp",
    "Bytes": "np.uint8",
}


def _type(annotation: Any) -> str:
    """The name of a type as it is written in the code, but those of arrays as NumPy has them."""
    written = getattr(annotation, "__forward_arg__", annotation)
    if isinstance(written, str):
        return re.sub(rf"\b({'|'.join(_OF_ARRAYS)})\b", lambda found: f"npt.NDArray[{_OF_ARRAYS[found[1]]}]", written)
    return getattr(written, "__name__", str(written))


def _code(value: Any) -> str:
    if isinstance(value, enum.Enum) or not callable(value):
        return repr(value)
    return str(getattr(value, "__qualname__", type(value).__qualname__))


def _results(value: Any) -> set[type]:
    """The classes of sessionkit's own that the annotation of a function's result names."""
    function = _function(value)
    said = _type(getattr(function, "__annotations__", {}).get("return", ""))
    if not said or not getattr(function, "__module__", "").startswith("sessionkit"):
        return set()
    known = {**_for_types(function.__module__), **function.__globals__}
    named = (known.get(word) for word in re.findall(r"\w+", said))
    classes = {each for each in named if inspect.isclass(each)}
    return {each for each in classes if each.__module__.startswith("sessionkit") and not each.__name__.startswith("_")}


@cache
def _for_types(module: str) -> dict[str, Any]:
    """What a module imports for a type checker alone, as far as it is sessionkit's."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    blocks = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    found = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    ours = [node for node in found if (node.module or "").startswith("sessionkit")]
    return {
        alias.asname or alias.name: getattr(importlib.import_module(str(node.module)), alias.name, None)
        for node in ours
        for alias in node.names
    }


def write() -> None:
    LISTED.write_text("".join(f"{line}\n" for line in lines()), encoding="utf-8")


if __name__ == "__main__":
    write()
