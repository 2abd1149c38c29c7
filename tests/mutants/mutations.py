"""The small changes that are tried: each is one place of the code that says something else."""

import ast
import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

OTHER_COMPARISON: dict[type[ast.cmpop], type[ast.cmpop]] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq},
    **{ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In},
}
OTHER_OPERATOR: dict[type[ast.operator], type[ast.operator]] = {
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult},
    **{ast.Mod: ast.FloorDiv, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift},
    **{ast.RShift: ast.LShift, ast.BitXor: ast.BitOr},
}
OTHER_NAME = {
    **{"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "any": "all", "all": "any"},
    **{"floor": "ceil", "ceil": "floor", "less": "less_equal", "greater": "greater_equal"},
}
OTHER_TEXT = {"left": "right", "right": "left"}  # of np.searchsorted


class Mutant(NamedTuple):
    """One change: where it is, what stood there and what stands there now."""

    file: str  # relative to the project
    first_line: int
    last_line: int
    column: int
    before: str
    after: str

    @property
    def name(self) -> str:
        return f"{self.file}:{self.first_line}:{self.column} {self.before} → {self.after}"

    def source(self, root: Path) -> str:
        """The whole file as it is with the change."""
        return "".join(_replaced((root / self.file).read_text(encoding="utf-8"), self))


def _replaced(text: str, mutant: Mutant) -> Iterator[str]:
    place = mutant._replace(after="")
    changes = _changes(ast.parse(text))
    node = next(node for node, other in changes if _mutant(mutant.file, node, other)._replace(after="") == place)
    lines = text.encode().splitlines(keepends=True)
    assert node.end_lineno is not None and node.end_col_offset is not None
    yield b"".join(lines[: node.lineno - 1]).decode() + lines[node.lineno - 1][: node.col_offset].decode()
    yield mutant.after if isinstance(node, ast.stmt) else f"({mutant.after})"
    yield lines[node.end_lineno - 1][node.end_col_offset :].decode() + b"".join(lines[node.end_lineno :]).decode()


def mutants_of(root: Path, file: Path) -> list[Mutant]:
    """Every change that is tried in this file."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return [_mutant(str(file.relative_to(root)), node, other) for node, other in _changes(tree)]


def _mutant(file: str, node: ast.expr | ast.stmt, other: ast.AST) -> Mutant:
    last_line = node.end_lineno or node.lineno
    return Mutant(file, node.lineno, last_line, node.col_offset, ast.unparse(node), ast.unparse(other))


def _changes(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, ast.AST]]:
    """Each place with what is tried there instead, from top to bottom."""
    for node in _places(tree):
        if isinstance(node, ast.stmt):
            yield from ((node, other) for other in _other_statements(node))
        elif isinstance(node, ast.expr):
            yield from ((node, other) for other in _other_expressions(node))


def _places(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that say what the program does: no types, no words, no assertions of what is always so."""
    if isinstance(node, ast.Assert | ast.JoinedStr | ast.Raise):
        return
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("TypeVar", "cast", "problem"):
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _places(child)


def _other_statements(node: ast.stmt) -> Iterator[ast.stmt]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield ast.Pass()
    elif isinstance(node, ast.AugAssign) and type(node.op) in OTHER_OPERATOR:
        yield _with(node, op=OTHER_OPERATOR[type(node.op)]())
    elif isinstance(node, ast.Break):
        yield ast.Continue()
    elif isinstance(node, ast.Continue):
        yield ast.Break()


def _other_expressions(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            ops = [*node.ops[:place], OTHER_COMPARISON[type(operator)](), *node.ops[place + 1 :]]
            yield _with(node, ops=ops)
    elif isinstance(node, ast.BinOp) and type(node.op) in OTHER_OPERATOR:
        yield _with(node, op=OTHER_OPERATOR[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        yield _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub | ast.Invert):
        if not isinstance(node.operand, ast.Constant) or isinstance(node.op, ast.Not):
            yield node.operand
    elif isinstance(node, ast.IfExp):
        yield _with(node, body=node.orelse, orelse=node.body)
    elif isinstance(node, ast.Constant):
        yield from _other_constants(node)
    elif isinstance(node, ast.Name) and node.id in OTHER_NAME:
        yield ast.Name(OTHER_NAME[node.id])
    elif isinstance(node, ast.Attribute) and node.attr in OTHER_NAME:
        yield _with(node, attr=OTHER_NAME[node.attr])


def _other_constants(node: ast.Constant) -> Iterator[ast.Constant]:
    if isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node.value, int):
        yield ast.Constant(node.value + 1)
    elif isinstance(node.value, str) and node.value in OTHER_TEXT:
        yield ast.Constant(OTHER_TEXT[node.value])


def _with(node: Any, **fields: object) -> Any:
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other
