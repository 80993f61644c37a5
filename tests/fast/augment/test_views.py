"""What an agent sees of an answer that ends early."""

from typing import Any, cast

from aileron_core.models import CHAT_COMPLETIONS
from aileron_core.server.augment.catalogue import Offer
from aileron_core.server.augment.views import WholeView


class _Begun:
    """An answer whose head and part of whose body were written."""

    begun = True
    aborted = False

    def abort(self) -> None:
        self.aborted = True


def test_no_second_head_is_written_into_an_answer() -> None:
    """The agent would read it as the answer to its next request; anything but `abort` fails here."""
    client = _Begun()
    view = WholeView(CHAT_COMPLETIONS, Offer(), cast("Any", client))
    view.fail("It took too long.", 400, b"Bad Request", "invalid_request_error")
    assert client.aborted
