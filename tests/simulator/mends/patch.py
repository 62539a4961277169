"""How a mend takes the place of a function of moto."""

from __future__ import annotations

import functools
from typing import Any, Callable


def replace(owner: Any, name: str) -> "Callable[[Callable[..., Any]], Callable[..., Any]]":
    """Decorator: the function stands in for `owner.name` and gets the original as first argument.

    Fails with AttributeError if moto no longer has `name`, so that a mend that lost its
    object is noticed at start.
    """

    def put(mended: Callable[..., Any]) -> Callable[..., Any]:
        original = getattr(owner, name)

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            return mended(original, *args, **kwargs)

        setattr(owner, name, call)
        return mended

    return put


def replace_property(owner: Any, name: str) -> "Callable[[Callable[[Any], Any]], Callable[[Any], Any]]":
    """Decorator: the function becomes the property `owner.name`."""

    def put(getter: Callable[[Any], Any]) -> Callable[[Any], Any]:
        if not hasattr(owner, name):
            raise AttributeError(f"{owner.__name__} has no {name}")
        setattr(owner, name, property(getter))
        return getter

    return put


def add(owner: Any) -> "Callable[[Callable[..., Any]], Callable[..., Any]]":
    """Decorator: a new method, for an operation that moto lacks; fails if moto has it now."""

    def put(method: Callable[..., Any]) -> Callable[..., Any]:
        if hasattr(owner, method.__name__):
            raise AttributeError(f"{owner.__name__} has {method.__name__} of its own now")
        setattr(owner, method.__name__, method)
        return method

    return put
