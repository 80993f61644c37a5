"""What the table of routes says of each one."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from starlette.requests import Request
from starlette.responses import Response

from aileron_core.server.request_parsing import require_page, require_peer

Endpoint = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class RouteSpec:
    """One route: where, who may call it, what does it, and the types of what it reads and writes."""

    method: Literal["GET", "POST"]
    path: str
    access: Literal["anybody", "session", "socket", "socket or its session", "a person", "a device"]
    endpoint: Endpoint
    responses: Mapping[int, type | None] = field(default_factory=dict[int, type | None])
    """By status; None for what is not JSON."""
    request_body: type | None = None

    async def serve(self, request: Request) -> Response:
        """Answer *request*, once it came the way that `access` names; a session is for the endpoint to look up."""
        if self.access == "socket":
            require_peer(request)
        if self.access == "a device":
            require_page(request)
        return await self.endpoint(request)

    @property
    def summary(self) -> str:
        return (self.endpoint.__doc__ or "").strip().splitlines()[0]
