"""The way in of the person's own commands: an intent of the console's port, over the home's socket alone.

Every program of this user can reach the socket. What lets a connector or a request use a secret therefore
needs the vault's passphrase, each time; what only reads or takes away needs none. No secret is in an answer.
"""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, get_args

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from aileron_core.console_port.account_intents import (
    CancelLogin,
    FinishLogin,
    WaitForLogin,
    WideningIntent,
)
from aileron_core.console_port.codec import intent_from_frame, to_frame
from aileron_core.console_port.events import VaultUnlocked
from aileron_core.console_port.intents import (
    ChangePassphrase,
    CommandIntent,
    CreateVault,
    NarrowingIntent,
    SetKeyring,
    UnlockVault,
)
from aileron_core.errors import InvalidRequest
from aileron_core.server.error_responses import error_response
from aileron_core.server.request_parsing import app_of, json_object
from aileron_core.server.route_spec import RouteSpec

Proof: TypeAlias = Literal["none", "passphrase", "its own"]

PROOFS: Final[Mapping[type[CommandIntent], Proof]] = {
    **dict.fromkeys(get_args(NarrowingIntent), "none"),
    **dict.fromkeys(get_args(WideningIntent), "passphrase"),
    CreateVault: "its own",
    UnlockVault: "its own",
    ChangePassphrase: "its own",
    SetKeyring: "its own",
    WaitForLogin: "its own",
    FinishLogin: "its own",
    CancelLogin: "its own",
}
"""Every intent that is taken, and the proof that it needs.

*passphrase*: the vault's, which is checked here. *its own*: a passphrase that is checked where it is
used, or the id of a login, which only who began it knows.
"""
_KINDS: Final[Mapping[str, type[CommandIntent]]] = {each.__name__: each for each in PROOFS}


async def carry_out(request: Request) -> Response:
    """Carry out an intent of a command, and answer with the event that says what came of it."""
    try:
        intent = intent_from_frame(await json_object(request), _KINDS)
    except InvalidRequest as error:
        return _ended(error)
    except ValueError as error:
        return _ended(InvalidRequest(f"This is not a valid intent: {error}."))
    app = app_of(request)
    if PROOFS[type(intent)] == "passphrase":
        assert isinstance(intent, WideningIntent)
        if intent.passphrase is None:
            raise InvalidRequest("'passphrase' is missing.")
        await app.vault_service.verify(intent.passphrase)
    answer = await app.console.answer(intent, "command line")
    if isinstance(answer, VaultUnlocked):
        await app.vault_followed()  # whoever reads the answer may use at once what was accepted
    return Response(status_code=204) if answer is None else JSONResponse(to_frame(answer))


def _ended(refusal: InvalidRequest) -> Response:
    """Return *refusal* as the last answer of its connection."""
    response = error_response(refusal)
    response.headers["connection"] = "close"
    return response


ROUTES: tuple[RouteSpec, ...] = (
    RouteSpec("POST", "/v1/intents", "socket", carry_out, {200: dict, 204: None}),
)
