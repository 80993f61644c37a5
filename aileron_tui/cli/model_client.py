"""Requests to one model through the console: with which key, and what their answers and errors mean."""

import contextlib
import os
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import urlsplit

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
from aileron_core.models.json_values import JsonDict, parse_object
from aileron_core.models.neutral import Answer, Event, Limits, RefusalDelta, TextDelta
from aileron_core.settings import is_base_url
from aileron_tui.cli.output import EXIT, CliError

_KEY_VARIABLES: Mapping[str, str] = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
_FORMATS: Mapping[str, Format] = {"openai": CHAT_COMPLETIONS, "anthropic": ANTHROPIC_MESSAGES}
_PATHS: Mapping[str, str] = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}
_KEY_HEADERS: Mapping[str, tuple[str, str]] = {
    "openai": ("Authorization", "Bearer "),
    "anthropic": ("x-api-key", ""),
}
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_TIMEOUT = httpx.Timeout(600.0, connect=15.0)
"""Seconds: a model may think for minutes before its first word."""
_LIMITS = Limits(event_bytes=1024 * 1024)
_LONGEST_ERROR = 65_536
_SHOWN_ERROR = 500


class ModelClient:
    """The model, asked through the console in augment mode.

    Args:
        api: `openai` or `anthropic`.
        key: for the model's server; None: the placeholder for the vault's, or that of the environment.

    Raises:
        InvalidRequest: the key cannot be sent.

    Attributes:
        format: in which it is asked and answers.
    """

    def __init__(self, api: str, session: LaunchedSession, key: str | None) -> None:
        variable = _KEY_VARIABLES[api]
        self._without_key = ""
        if key is None:
            has_own = api in session.key_providers
            key = session.placeholder if has_own else os.environ.get(variable, "")
            if not key:
                self._without_key = f"No key was sent: store one with `aileron gateway key set {api}`, or set {variable}."
        # Checked here: httpx quotes a header that it refuses in its error.
        if not re.fullmatch(r"[!-~]*", key):
            raise InvalidRequest(
                "The key has a blank, a line break or a letter that no key has. Set it again."
            )
        self.format = _FORMATS[api]
        self._url = f"{session.url}/gw/{session.gateway_token}{_PATHS[api]}"
        word = secrets.token_hex(16)
        self._mark = f": {word} ".encode()
        headers = {
            "Content-Type": "application/json",
            "Accept": "text/event-stream",
            "Aileron-Calls": word,
            "Connection": "keep-alive, aileron-calls",  # so that it goes no further than the console
        }
        if api == "anthropic":
            headers["anthropic-version"] = "2023-06-01"
        if key:
            name, before = _KEY_HEADERS[api]
            headers[name] = before + key
        self._client = httpx.Client(headers=headers, timeout=_TIMEOUT, trust_env=False)

    def close(self) -> None:
        self._client.close()

    def ask(
        self,
        request: JsonDict,
        on_text: Callable[[str], object],
        on_call: Callable[[JsonDict], object],
    ) -> Answer:
        """Send *request*, hand over the answer's text as it comes, return the whole.

        Args:
            on_call: is told how a call of the model's stands, each time that it changes.

        Raises:
            NetworkError: the console was not reached, or the answer broke off.
            ExternalApiError: there is an error in place of an answer.
            ModelFormatError: there is something else.
        """
        try:
            with self._client.stream("POST", self._url, content=write_body(request)) as response:
                if response.status_code != 200:
                    raise self._error(response)
                reader = self.format.reader(_LIMITS)
                for data in response.iter_raw():
                    self._hand_over(reader.feed(data), on_text, on_call)
                self._hand_over(reader.finish(), on_text, on_call)
                return reader.answer()
        except httpx.HTTPError as error:
            said = str(error) or type(error).__name__
            raise NetworkError(f"The model's answer broke off ({said}). Try again.") from None

    def _hand_over(
        self,
        events: Iterator[Event],
        on_text: Callable[[str], object],
        on_call: Callable[[JsonDict], object],
    ) -> None:
        for event in events:
            if event.raw.startswith(self._mark):
                on_call(
                    parse_object(event.raw[len(self._mark) :], "what the console says of a call")
                )
            for part in event.parts:
                if isinstance(part, TextDelta | RefusalDelta):
                    on_text(part.text)

    def _error(self, response: httpx.Response) -> ExternalApiError:
        data = _read(response, _LONGEST_ERROR)
        said = data.decode(errors="replace").strip() or response.reason_phrase
        with contextlib.suppress(ModelFormatError):
            failed = self.format.read_answer(data).error
            said = failed.message if failed is not None and failed.message else said
        status = response.status_code
        message = f"The model's server answered with {status}: {said[:_SHOWN_ERROR]}"
        if status in (401, 403) and self._without_key:
            message = f"{message} {self._without_key}"
        return ExternalApiError(message, status=status)


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


def key_for(base_url: str, variable: str | None) -> str:
    """Return the key for a server of the person's own choice; empty where none is sent.

    Args:
        variable: the environment variable that holds it.

    Raises:
        InvalidRequest: *base_url* is no base URL, or the key would leave this machine unencrypted.
        CliError: the variable is not set.
    """
    if not base_url or not is_base_url(base_url):  # not quoted: it may have a password in it
        raise InvalidRequest(
            "--base-url is not a base URL without user, query and fragment. Give one such as "
            "http://127.0.0.1:11434/v1, and --key-variable for a key."
        )
    if variable is None:
        return ""
    if not os.environ.get(variable):
        raise CliError(EXIT.USAGE, f"The environment variable {variable} is not set.")
    parts = urlsplit(base_url)
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        raise InvalidRequest(f"The key is not sent to {base_url} unencrypted. Use https.")
    return os.environ[variable]
