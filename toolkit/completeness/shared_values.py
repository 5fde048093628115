"""Long lists and mappings of provenance that frames share instead of copying them.

pandas copies `frame.attrs` deeply in nearly every operation. With the names of a thousand accounts,
this copy takes longer than the operation.
"""

from typing import Any, NoReturn

__all__ = ["SharedDict", "SharedList", "share_value"]


class SharedList(list[Any]):
    """A list of constants that cannot change, so that a deep copy is the list itself."""

    __slots__ = ()

    def __deepcopy__(self, memo: object) -> "SharedList":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return SharedList, (list(self),)


class SharedDict(dict[str, Any]):
    """A dict of constants that cannot change, so that a deep copy is the dict itself."""

    __slots__ = ()

    def __deepcopy__(self, memo: object) -> "SharedDict":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return SharedDict, (dict(self),)


def _refuse_change(self: SharedList | SharedDict, *_: object, **__: object) -> NoReturn:
    kind = "list" if isinstance(self, list) else "dict"
    raise TypeError(
        f"several frames share this {kind} of their provenance, so it cannot change. Change a "
        f"copy: {kind}(...)"
    )


for _name in (
    *("__delitem__", "__iadd__", "__imul__", "__setitem__", "append", "clear", "extend"),
    *("insert", "pop", "remove", "reverse", "sort"),
):
    setattr(SharedList, _name, _refuse_change)
for _name in (
    *("__delitem__", "__ior__", "__setitem__", "clear", "pop", "popitem", "setdefault", "update"),
):
    setattr(SharedDict, _name, _refuse_change)


def share_value(value: Any) -> Any:
    """Return a list or a dict in the form that frames share; any other value as it is.

    >>> names = share_value(["a", "b"])
    >>> names == ["a", "b"], names
    (True, ['a', 'b'])
    """
    if isinstance(value, list):
        return SharedList(value)
    return SharedDict(value) if isinstance(value, dict) else value
