"""Small ways to break a module: each is one change of its syntax tree, which some test has to notice.

Comparisons, arithmetic, `and` and `or`, conditions, `min` and `max`, numbers, booleans and words are turned into their
neighbours; results become None; statements are left out. What only people read (docstrings, messages, logs) and what
never runs (annotations) stays.
"""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

Change = tuple[int, str, Callable[[], None]]
"""Line, what is changed, and the change itself."""

_COMPARED: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_COMPUTED: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div, ast.Mod: ast.Mult,
    ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
_NAMED: Final = {"min": "max", "max": "min", "any": "all", "all": "any"}
_UNSEEN: Final = (ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Pass, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One way to break a module.

    Attributes:
        number: its place among the changes of the module.
        line: where. what: how, for people.
        function: qualified name of the outermost function that holds it; None: it is outside of any.
    """

    number: int
    line: int
    what: str
    function: str | None


def mutants(source: str) -> list[Mutant]:
    """All of a module."""
    tree = ast.parse(source)
    spans = list(_functions(tree, ""))
    found = []
    for number, (line, what, _) in enumerate(_changes(tree)):
        holders = [name for name, first, last in spans if first <= line <= last]
        found.append(Mutant(number, line, what, holders[0] if holders else None))
    return found


def broken(source: str, number: int) -> ast.Module:
    """The module with its `number`-th change."""
    tree = ast.parse(source)
    for place, (_, _, change) in enumerate(_changes(tree)):
        if place == number:
            change()
            return ast.fix_missing_locations(tree)
    raise ValueError(f"there is no change {number}")


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, int, int]]:
    """(qualified name, first line, last line) of functions in modules and classes; what an outer one holds is its.

    The first line is that of the body: defaults and decorators belong to the module.
    """
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + child.name, child.body[0].lineno, child.end_lineno or child.lineno
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")


def _changes(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.ClassDef) and any(
        isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases
    ):
        return
    if _is_for_people(node):
        return
    yield from _own(node)
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _changes(child)


def _is_for_people(node: ast.AST) -> bool:
    """Docstrings, logs, messages of errors, `__all__`."""
    match node:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="log")))):
            return True
        case ast.Assign(targets=[ast.Name(id="__all__" | "log")]):
            return True
        case ast.JoinedStr():
            return True
    return False


def _own(node: ast.AST) -> Iterator[Change]:
    """The changes of this node, without those of its children."""
    match node:
        case ast.Compare(ops=ops):
            for place, op in enumerate(ops):
                other = _COMPARED[type(op)]
                yield node.lineno, f"{_name(op)} -> {other.__name__}", _put(ops, place, other())
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in _COMPUTED and not _is_text(node):
            other_op = _COMPUTED[type(op)]
            yield node.lineno, f"{_name(op)} -> {other_op.__name__}", _set(node, "op", other_op())
        case ast.BoolOp(op=op):
            swapped = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield node.lineno, f"{_name(op)} -> {_name(swapped)}", _set(node, "op", swapped)
        case ast.Call(func=ast.Name(id=name) as func) if name in _NAMED:
            yield node.lineno, f"{name} -> {_NAMED[name]}", _set(func, "id", _NAMED[name])
        case ast.Constant():
            yield from _of_constant(node)
        case ast.Return(value=value) if value is not None and not _is_none(value):
            yield node.lineno, "return None", _set(node, "value", ast.Constant(None))
    yield from _of_conditions(node)
    for name in ("body", "orelse", "finalbody"):
        statements = getattr(node, name, None)
        if isinstance(statements, list):
            yield from _left_out(node, statements)


def _of_conditions(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.comprehension):
        for place, test in enumerate(node.ifs):
            yield test.lineno, "not the condition", _put(node.ifs, place, ast.UnaryOp(ast.Not(), test))
    if isinstance(node, ast.If | ast.While | ast.IfExp) and not isinstance(node.test, ast.Constant):
        yield node.lineno, "not the condition", _set(node, "test", ast.UnaryOp(ast.Not(), node.test))
    if isinstance(node, ast.match_case) and node.guard is not None:
        yield node.guard.lineno, "not the guard", _set(node, "guard", ast.UnaryOp(ast.Not(), node.guard))


def _left_out(node: ast.AST, statements: list[ast.stmt]) -> Iterator[Change]:
    if isinstance(node, ast.Module | ast.ClassDef):
        return
    for place, statement in enumerate(statements):
        if _is_for_people(statement) or isinstance(statement, (*_UNSEEN, ast.Return)):
            continue
        if isinstance(
            statement, ast.Expr | ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Raise | ast.Break | ast.Continue
        ):
            yield statement.lineno, "left out", _put(statements, place, ast.copy_location(ast.Pass(), statement))


def _of_constant(node: ast.Constant) -> Iterator[Change]:
    value = node.value
    if isinstance(value, bool):
        yield node.lineno, f"{value} -> {not value}", _set(node, "value", not value)
    elif isinstance(value, int | float):
        yield node.lineno, f"{value} -> {value + 1}", _set(node, "value", value + 1)
    elif isinstance(value, str) and " " not in value:
        yield node.lineno, f"{value!r} -> {'' if value else 'mutant'!r}", _set(node, "value", "" if value else "mutant")


def _is_text(node: ast.AST) -> bool:
    """Text that is put together or types that are joined: neither is arithmetic."""
    return isinstance(node, ast.BinOp) and any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and not isinstance(side.value, int | float))
        for side in (node.left, node.right)
    )


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _name(node: ast.AST) -> str:
    return type(node).__name__


def _put(places: list[Any], place: int, what: Any) -> Callable[[], None]:
    def change() -> None:
        places[place] = what

    return change


def _set(node: ast.AST, field: str, what: Any) -> Callable[[], None]:
    return lambda: setattr(node, field, what)
