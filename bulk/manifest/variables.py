"""`vars:` and `--var`: `${name}` in a string of the manifest becomes the value of that variable; `$${` stands for `${`.

Only values are filled in, never names of fields, and never anything of an items file. Inside of `vars` itself no
variable is filled in, and `$${` stands for `${` as well. A string that is one variable and nothing else takes the
variable's own type, so that `{first: "${n}"}` can be a number. No message repeats a value. Source: interface.md §2.
"""

import re
from collections.abc import Mapping
from typing import Any

from bulk.errors import UsageError
from bulk.flaws import name_shown, unknown_name
from bulk.items.yaml_text import Node, Scalar
from bulk.manifest.fields import Fields
from bulk.quantities import kind_of
from bulk.redaction import redact

SECTION = "vars"
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,99}")

_PLACE = re.compile(r"\$\$\{|\$\{([^{}]*)\}|\$\{")
_NO_SECRET = "looks like a secret, which no variable may hold: name its place instead, as env:NAME or file:PATH"
_WORDS = {"true": True, "false": False}


def escaped(text: str) -> str:
    """Return `text` escaped for a manifest, so that nothing in it is taken for a variable."""
    return text.replace("${", "$${")


def fill(fields: Fields, root: Node, given: Mapping[str, str]) -> None:
    """Put the values of all variables into `root`, the object of `fields`; flaws are noted in `fields`.

    Args:
        given: the values of `--var`, which replace those of `vars`; a text is converted to the type that the variable
            has in `vars`.

    Raises:
        UsageError: one of `given` is used nowhere, is a secret, or is not a number where `vars` has one.
    """
    known = _declared(fields)
    values = {**known, **{name: _typed(name, text, known.get(name)) for name, text in given.items()}}
    filler = _Filler(fields, values)
    if isinstance(root.value, dict):
        for name, node in root.value.items():
            if name != SECTION:
                filler.fill(node, name_shown(name))
    for name in given:
        if name not in filler.used:
            choices = filler.used | filler.unknown | known.keys()
            why = "it is declared in vars, but" if name in known else f"{unknown_name(name, choices, 'variable')};"
            raise UsageError(f"--var {name_shown(name)}: {why} no string of the manifest holds ${{{name}}}")


def _declared(fields: Fields) -> dict[str, Scalar]:
    """Return the variables of `vars` that can be used."""
    part = fields.inner(SECTION)
    found: dict[str, Scalar] = {}
    for name in part.names():
        node = part.node(name)
        value = node.value if node is not None else None
        if not NAME.fullmatch(name):
            part.flaw(name, "expected a name of letters, digits, hyphens and underscores that begins with no digit")
        elif not isinstance(value, str | int | float):
            part.flaw(name, f"expected a string, a number, true or false, got {kind_of(value)}")
        elif isinstance(value, str) and any(place[0] != "$${" for place in _PLACE.finditer(value)):
            part.flaw(
                name, "a variable can't be made from others: write its whole value out, and $${ for a ${ that it holds"
            )
        elif isinstance(value, str) and redact(value) != value:
            part.flaw(name, _NO_SECRET)
        else:
            found[name] = value.replace("$${", "${") if isinstance(value, str) else value
            continue
        found[name] = ""  # its flaw is told once, and not again wherever it is used
    return found


def _typed(name: str, text: str, declared: Scalar) -> Scalar:
    """Return `text` as the kind of value that `vars` has for the variable.

    Raises:
        UsageError: `text` is no such value, or looks like a secret.
    """
    if redact(text) != text:
        raise UsageError(f"--var {name_shown(name)}: {_NO_SECRET}")
    if isinstance(declared, bool):
        if text.lower() not in _WORDS:
            raise UsageError(f"--var {name_shown(name)}: expected true or false, which it is in vars")
        return _WORDS[text.lower()]
    if isinstance(declared, int | float):
        try:
            return int(text) if isinstance(declared, int) else float(text)
        except ValueError:
            raise UsageError(f"--var {name_shown(name)}: expected {kind_of(declared)}, which it is in vars") from None
    return text


class _Filler:
    """Fills variables into strings. `used` and `unknown`: names in strings that have a value, and that have none."""

    def __init__(self, fields: Fields, values: Mapping[str, Scalar]) -> None:
        self._fields, self._values = fields, values
        self.used: set[str] = set()
        self.unknown: set[str] = set()

    def fill(self, node: Node, name: str) -> None:
        """Fill every string in `node`, whose dotted name is `name`."""
        match node.value:
            case dict() as inner:
                for field, child in inner.items():
                    self.fill(child, f"{name}.{name_shown(field)}")
            case list() as entries:
                for number, child in enumerate(entries):
                    self.fill(child, f"{name}[{number}]")
            case str() as text if "${" in text:
                node.value = self._filled(text, node.line, name)

    def _filled(self, text: str, line: int, name: str) -> Scalar:
        whole = _PLACE.fullmatch(text)
        if whole is not None and whole[1] is not None:
            return self._value(whole, line, name)
        return _PLACE.sub(lambda place: _as_text(self._value(place, line, name)), text)

    def _value(self, place: re.Match[str], line: int, name: str) -> Scalar:
        variable = place[1]
        if place[0] == "$${":
            return "${"
        if variable is None or not NAME.fullmatch(variable):
            self._flaw(line, name, "expected ${NAME}; a ${ that stands for itself is written $${")
        elif variable in self._values:
            self.used.add(variable)
            return self._values[variable]
        else:
            self.unknown.add(variable)
            self._flaw(line, name, self._explained(variable))
        return ""

    def _explained(self, variable: str) -> str:
        if self._fields.flaws.is_full:
            return ""  # an explanation takes time, and nobody would read it
        why = unknown_name(variable, self._values, "variable")
        way = f"give it a value in vars or with --var {variable}=VALUE"
        literal = f"text that stands for itself is written $${{{variable}}}"
        return f"${{{variable}}}: {why}{'' if why.endswith('?') else ';'} {way}; {literal}"

    def _flaw(self, line: int, name: str, message: str) -> None:
        self._fields.flaws.add(self._fields.path, line, name, message)


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
