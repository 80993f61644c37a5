"""The arguments of an op, each of the type that its schema gives it, and the failure of one."""

from collections.abc import Mapping
from typing import Any, cast


class OpFailed(Exception):
    """An op that was refused or failed.

    Args:
        class_: of the answer: `invalid_arguments`, `not_found`, `forbidden`, `conflict`, `too_large`, `io`,
            `stopped`, `timed_out` or `unsupported`.
        message: whole sentences: what failed, on what, what to do next.
    """

    def __init__(self, class_: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.class_ = class_
        self.message = message
        self.details = details

    def to_json(self) -> dict[str, Any]:
        """Return it as the member `error` of an answer."""
        body: dict[str, Any] = {"class": self.class_, "message": self.message}
        return {**body, "details": self.details} if self.details else body


class Arguments:
    """What an op was called with.

    Raises:
        OpFailed: from each method, `invalid_arguments`: the argument is missing, or of another type.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def text(self, name: str) -> str:
        value = self.optional_text(name)
        if value is None:
            raise OpFailed("invalid_arguments", f"{name} is missing; it must be a string.")
        return value

    def optional_text(self, name: str) -> str | None:
        value = self._values.get(name)
        if value is not None and not isinstance(value, str):
            raise OpFailed("invalid_arguments", f"{name} must be a string.")
        return value

    def number(self, name: str, default: int, *, least: int = 0) -> int:
        value = self._values.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise OpFailed("invalid_arguments", f"{name} must be a whole number from {least} on.")
        return value

    def flag(self, name: str, *, default: bool = False) -> bool:
        value = self._values.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise OpFailed("invalid_arguments", f"{name} must be true or false.")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._values.get(name) or ()
        items = cast("list[Any]", value) if isinstance(value, list) else None
        if value and (items is None or not all(isinstance(each, str) for each in items)):
            raise OpFailed("invalid_arguments", f"{name} must be a list of strings.")
        return tuple(items or ())

    def record(self, name: str) -> Mapping[str, Any] | None:
        value = self._values.get(name)
        if value is not None and not isinstance(value, dict):
            raise OpFailed("invalid_arguments", f"{name} must be an object.")
        return cast("Mapping[str, Any] | None", value)
