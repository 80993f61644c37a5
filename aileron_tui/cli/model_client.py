"""Requests to one model: where they go, with which key, and what their errors mean."""

import contextlib
import os
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

import httpx

from aileron_core.errors import (
    ExternalApiError,
    InvalidRequest,
    ModelFormatError,
    NetworkError,
)
from aileron_core.models import ANTHROPIC_MESSAGES, CHAT_COMPLETIONS, Format
from aileron_core.models.format import write_body
from aileron_core.models.json_values import JsonDict
from aileron_core.models.neutral import Answer, Event, TextDelta
from aileron_tui.cli.output import EXIT, CliError

KEY_VARIABLES: Mapping[str, str] = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
_FORMATS: Mapping[str, Format] = {"openai": CHAT_COMPLETIONS, "anthropic": ANTHROPIC_MESSAGES}
_PATHS: Mapping[str, str] = {"openai": "/chat/completions", "anthropic": "/v1/messages"}
"""Behind a base URL, as each provider's own SDK has it."""
_TIMEOUT = httpx.Timeout(600.0, connect=15.0)
"""Seconds: a model may think for minutes before its first word."""
_LONGEST_ERROR = 65_536


class ModelClient:
    """The model's server, reached over HTTP. Nothing of it holds a secret in its `repr`.

    Attributes:
        format: in which it is asked and answers.
    """

    def __init__(
        self,
        api: str,
        base_url: str,
        key: str,
        *,
        name: str,
        hint: str = "",
        proxies: bool = True,
    ) -> None:
        """Connect to nothing yet.

        Args:
            api: `openai` or `anthropic`.
            base_url: without the path of a request.
            key: empty where none is sent.
            name: what errors call the server.
            hint: a sentence, after a blank, behind the server's own error.
            proxies: whether the environment's proxies apply.
        """
        self.format = _FORMATS[api]
        self._url = base_url.rstrip("/") + _PATHS[api]
        self._name = name
        self._hint = hint
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
        if api == "anthropic":
            headers["anthropic-version"] = "2023-06-01"
            if key:
                headers["x-api-key"] = key
        elif key:
            headers["Authorization"] = f"Bearer {key}"
        self._client = httpx.Client(headers=headers, timeout=_TIMEOUT, trust_env=proxies)

    def close(self) -> None:
        self._client.close()

    def ask(self, request: JsonDict, on_event: Callable[[Event], None]) -> Answer:
        """Send *request*, hand over each event of the answer as it comes, return the whole.

        Raises:
            NetworkError: the server was not reached, or the answer broke off.
            ExternalApiError: it answered with an error.
            ModelFormatError: it answered with something else.
        """
        try:
            with self._client.stream("POST", self._url, content=write_body(request)) as response:
                if response.status_code != 200:
                    raise self._error(response)
                media = response.headers.get("content-type", "").partition(";")[0].strip().lower()
                if media == "application/json":  # a server that does not stream
                    answer = self.format.read_answer(response.read())
                    said = answer.text or answer.refusal
                    on_event(Event(b"", "", None, (TextDelta(said),) if said else ()))
                    return answer
                reader = self.format.reader()
                for data in response.iter_bytes():
                    for event in reader.feed(data):
                        on_event(event)
                for event in reader.finish():
                    on_event(event)
                return reader.answer()
        except httpx.HTTPError as error:
            kind = str(error) or type(error).__name__
            raise NetworkError(
                f"{self._name} could not be reached, or its answer broke off ({kind}). Try again."
            ) from None

    def _error(self, response: httpx.Response) -> ExternalApiError:
        data = b""
        for piece in response.iter_bytes():
            data += piece
            if len(data) > _LONGEST_ERROR:
                break
        said = response.reason_phrase
        with contextlib.suppress(ModelFormatError):
            failed = self.format.read_answer(data).error
            said = failed.message if failed is not None and failed.message else said
        status = response.status_code
        message = f"{self._name} answered with {status}: {said}{self._hint}"
        return ExternalApiError(message, status=status)


def provider_for(model: str) -> str:
    """Return whose API a model of this name speaks, where nobody says."""
    return "anthropic" if model.startswith("claude") else "openai"


def direct_client(api: str, base_url: str, key_variable: str | None) -> ModelClient:
    """Return a client for a server of the person's own choice.

    Args:
        key_variable: the environment variable that holds its key; None sends none.

    Raises:
        InvalidRequest: *base_url* is no base URL, or a key would leave this machine unencrypted.
        CliError: the variable is not set.
    """
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise InvalidRequest(
            f"--base-url {base_url} is not a base URL. Give one such as http://127.0.0.1:11434/v1."
        )
    if parts.username is not None:
        raise InvalidRequest("--base-url has a user in it. Use --key-variable for a key.")
    key = ""
    if key_variable is not None:
        key = os.environ.get(key_variable, "")
        if not key:
            raise CliError(EXIT.USAGE, f"The environment variable {key_variable} is not set.")
        if parts.scheme == "http" and parts.hostname not in ("127.0.0.1", "::1", "localhost"):
            raise InvalidRequest(f"The key is not sent to {base_url} unencrypted. Use https.")
    return ModelClient(api, base_url, key, name=f"The model server at {parts.netloc}")
