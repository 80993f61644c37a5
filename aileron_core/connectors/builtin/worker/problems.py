"""Why a worker refuses or fails an op, as its answer says it."""

from typing import Any


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
