"""Items of `map` on disk: taken from the caller once, one JSON line each, so that millions need no memory.

An item that can't be written as JSON is refused here, and the error names its number.
"""

import os
from collections.abc import AsyncIterable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from bulk.errors import Flaw, ManifestError
from bulk.operation import AnyOperation, Item, Operation, UnknownOperation, find
from bulk.storage.private_files import open_private

AnyItem: TypeAlias = Mapping[str, Any] | Item
Items: TypeAlias = Iterable[AnyItem] | AsyncIterable[AnyItem]


class StagedItems:
    """Items that were taken from the caller: a file of JSON lines in a temporary folder.

    Attributes:
        path: the path of the file. operation: the operation whose arguments the items are.
        count: how many items were taken (count).
    """

    def __init__(self, folder: Path, operation: AnyOperation) -> None:
        self.path, self.operation, self.count = folder / "items.jsonl", operation, 0
        self._out = os.fdopen(open_private(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb")

    def add(self, item: AnyItem) -> None:
        """Take one item.

        Raises:
            ManifestError: the item can't be written as JSON.
        """
        try:
            self._out.write(msgspec.json.encode(item) + b"\n")
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise ManifestError([Flaw(f"items[{self.count}]", 0, "", f"is not a JSON object: {error}")]) from None
        self.count += 1

    def close(self) -> None:
        """Close the file: no more items come."""
        self._out.close()


def operation_of(operation: "str | type[AnyOperation]") -> AnyOperation:
    """Return the installed operation of that name or class.

    Raises:
        TypeError: it is neither a name nor a class of operations.
        ManifestError: no operation of that name is installed, or it is not an instance of the class that was given.
    """
    given: object = operation
    if not isinstance(given, str) and not (isinstance(given, type) and issubclass(given, Operation)):
        raise TypeError(f"operation: expected the name of an operation or its class, got {given!r}")
    name = operation if isinstance(operation, str) else operation.name
    try:
        found = find(name)
    except UnknownOperation as error:
        raise ManifestError([Flaw("map", 0, "operation", str(error))]) from None
    if not isinstance(operation, str) and type(found) is not operation:
        message = f"{operation.__qualname__} is not what is installed as {name!r}, which is {type(found).__qualname__}"
        raise ManifestError([Flaw("map", 0, "operation", message)])
    return found


def stage(folder: Path, operation: AnyOperation, items: Iterable[AnyItem]) -> StagedItems:
    """Take all of `items`; raises as `StagedItems.add` does."""
    staged = StagedItems(folder, operation)
    try:
        for item in items:
            staged.add(item)
    finally:
        staged.close()
    return staged


async def stage_async(folder: Path, operation: AnyOperation, items: Items) -> StagedItems:
    """Take all of `items` as `stage` does; `items` may also be an asynchronous iterable."""
    if not isinstance(items, AsyncIterable):
        return stage(folder, operation, items)
    staged = StagedItems(folder, operation)
    try:
        async for item in items:
            staged.add(item)
    finally:
        staged.close()
    return staged
