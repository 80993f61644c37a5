"""Requests to one model: where they go, with which key, and what their errors mean."""

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping

import httpx

from aileron_core.errors import (
    ExternalApiError,
    InvalidRequest,
    ModelFormatError,
    NetworkError,
)
from aileron_core.launch.interfaces import LaunchedSession
from aileron_core.models import ANTHROPIC_MESSAGES, CHAT_COMPLETIONS, Format
from aileron_core.models.format import write_body
from aileron_core.models.json_values import JsonDict
from aileron_core.models.neutral import Answer, Event, Limits, RefusalDelta, TextDelta
from aileron_tui.cli.output import EXIT, CliError

_KEY_VARIABLES: Mapping[str, str] = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
_FORMATS: Mapping[str, Format] = {"openai": CHAT_COMPLETIONS, "anthropic": ANTHROPIC_MESSAGES}
_PATHS: Mapping[str, str] = {"openai": "/chat/completions", "anthropic": "/v1/messages"}
"""After a base URL, as each provider's own SDK has it."""
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_TIMEOUT = httpx.Timeout(600.0, connect=15.0)
"""Seconds: a model may think for minutes before its first word."""
_LIMITS = Limits(event_bytes=1024 * 1024)
_LONGEST_ERROR = 65_536
_SHOWN_ERROR = 500


class ModelClient:
    """The model's server, reached over HTTP.

    Attributes:
        format: in which it is asked and answers.
    """

    def __init__(
        self, api: str, base_url: str, key: str, *, name: str, without_key: str = "", proxies: bool
    ) -> None:
        """Connect to nothing yet.

        Args:
            api: `openai` or `anthropic`.
            base_url: without the path of a request.
            key: empty where none is sent.
            name: what errors call the server.
            without_key: a sentence that is added if the server refuses a request without a key.
            proxies: whether the environment's proxies apply.

        Raises:
            InvalidRequest: the key cannot be sent, or a proxy of the environment not be used.
        """
        # Checked here: httpx quotes a header that it refuses in its error.
        if not re.fullmatch(r"[!-~]*", key):
            raise InvalidRequest(
                "The key has a blank, a line break or a letter that no key has. Set it again."
            )
        self.format = _FORMATS[api]
        self._url = base_url.rstrip("/") + _PATHS[api]
        self._name = name
        self._without_key = without_key
        headers = {
            "Content-Type": "application/json",
            "Accept": "text/event-stream",
            "Accept-Encoding": "identity",  # what is compressed has no size
        }
        if api == "anthropic":
            headers["anthropic-version"] = "2023-06-01"
            if key:
                headers["x-api-key"] = key
        elif key:
            headers["Authorization"] = f"Bearer {key}"
        try:
            self._client = httpx.Client(headers=headers, timeout=_TIMEOUT, trust_env=proxies)
        except (ImportError, ValueError):  # which may quote a proxy's password
            raise InvalidRequest(
                "A proxy of the environment (ALL_PROXY, HTTPS_PROXY or HTTP_PROXY) is not one over HTTP, "
                "or has no valid URL. Set one such as http://proxy.example:3128, or unset it."
            ) from None

    def close(self) -> None:
        self._client.close()

    def ask(self, request: JsonDict, on_text: Callable[[str], object]) -> Answer:
        """Send *request*, hand over the answer's text as it comes, return the whole.

        Raises:
            NetworkError: the server was not reached, or the answer broke off.
            ExternalApiError: it answered with an error.
            ModelFormatError: it answered with something else.
        """
        try:
            with self._client.stream("POST", self._url, content=write_body(request)) as response:
                return self._answer(response, on_text)
        except httpx.HTTPError as error:
            kind = type(error).__name__
            if isinstance(error, httpx.TransportError) and not isinstance(
                error, httpx.LocalProtocolError
            ):
                kind = str(error) or kind
            raise NetworkError(
                f"{self._name} could not be reached, or its answer broke off ({kind}). Try again."
            ) from None

    def _answer(self, response: httpx.Response, on_text: Callable[[str], object]) -> Answer:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise ModelFormatError(
                f"{self._name} compressed its answer, although it was asked not to."
            )
        if response.status_code != 200:
            raise self._error(response)
        media = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media == "application/json":  # a server that does not stream
            answer = self.format.read_answer(_read(response, _LIMITS.answer_bytes), _LIMITS)
            on_text(answer.text or answer.refusal)
            return answer
        if media == "text/html":
            raise ModelFormatError(f"{self._name} answered with a web page. Check its address.")
        reader = self.format.reader(_LIMITS)
        for data in response.iter_raw():
            _hand_over(reader.feed(data), on_text)
        _hand_over(reader.finish(), on_text)
        return reader.answer()

    def _error(self, response: httpx.Response) -> ExternalApiError:
        data = _read(response, _LONGEST_ERROR)
        said = data.decode(errors="replace").strip() or response.reason_phrase
        with contextlib.suppress(ModelFormatError):
            failed = self.format.read_answer(data).error
            said = failed.message if failed is not None and failed.message else said
        status = response.status_code
        message = f"{self._name} answered with {status}: {said[:_SHOWN_ERROR]}"
        if status in (401, 403) and self._without_key:
            message = f"{message} {self._without_key}"
        return ExternalApiError(message, status=status)


def _hand_over(events: Iterator[Event], on_text: Callable[[str], object]) -> None:
    for event in events:
        for part in event.parts:
            if isinstance(part, TextDelta | RefusalDelta):
                on_text(part.text)


def _read(response: httpx.Response, limit: int) -> bytes:
    """Return the body; of one that is over *limit*, its beginning, which is over it too."""
    data = bytearray()
    for piece in response.iter_raw():
        data += piece
        if len(data) > limit:
            break
    return bytes(data)


def provider_for(model: str) -> str:
    """Return the default API for a model of this name."""
    return "anthropic" if model.startswith("claude") else "openai"


def gateway_client(api: str, session: LaunchedSession) -> ModelClient:
    """Return a client of the console's gateway: with the vault's key, or the one in the environment.

    Raises:
        InvalidRequest: the key in the environment cannot be sent.
    """
    variable = _KEY_VARIABLES[api]
    key = session.placeholder if api in session.key_providers else os.environ.get(variable, "")
    base_url = f"{session.url}/gw/{session.gateway_token}" + ("/v1" if api == "openai" else "")
    without = f"No key was sent: store one with `aileron gateway key set {api}`, or set {variable}."
    return ModelClient(
        api, base_url, key, name="The model's provider", without_key="" if key else without,
        proxies=False,
    )  # fmt: skip


def direct_client(api: str, base_url: str, key_variable: str | None) -> ModelClient:
    """Return a client for a server of the person's own choice.

    Args:
        key_variable: the environment variable that holds its key; None sends none.

    Raises:
        InvalidRequest: *base_url* is no base URL, or a key would leave this machine unencrypted.
        CliError: the variable is not set.
    """
    try:
        parts = httpx.URL(base_url)  # read once, by what sends the request
    except httpx.InvalidURL:
        parts = httpx.URL()
    if parts.userinfo:
        raise InvalidRequest("--base-url has a user in it. Use --key-variable for a key.")
    if parts.scheme not in ("http", "https") or not parts.host or parts.query or parts.fragment:
        raise InvalidRequest(
            f"--base-url {base_url} is not a base URL. Give one such as http://127.0.0.1:11434/v1."
        )
    here = parts.host in _LOOPBACK
    key = ""
    if key_variable is not None:
        key = os.environ.get(key_variable, "")
        if not key:
            raise CliError(EXIT.USAGE, f"The environment variable {key_variable} is not set.")
        if parts.scheme == "http" and not here:
            raise InvalidRequest(f"The key is not sent to {base_url} unencrypted. Use https.")
    # A proxy for this machine's own server would get the key, the prompt and every result.
    name = f"The model server at {parts.netloc.decode()}"
    return ModelClient(api, base_url, key, name=name, proxies=not here)
