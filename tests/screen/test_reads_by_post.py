"""What a preview tried to read by POST: a row that says what accepting it means, and `t` accepts it."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from aileron_core.console_port import Accept, LibraryUpdated, NotAcceptedView
from aileron_tui.draw.blocks import Block
from aileron_tui.draw.document import approval_blocks
from aileron_tui.draw.file_page import file_blocks
from aileron_tui.draw.text import plain_text
from tests.screen.driving import NOW, console, short, start

CONNECTOR = "github://ALRubinger/aileron-connector-linear@1.0.0"
OFFER = NotAcceptedView(
    kind="preview",
    name=f"{CONNECTOR} GraphQL queries at api.linear.app/graphql",
    file="store/connectors/sha256/" + "ab" * 32,
    digest="sha256:" + "ab" * 32,
    change="new",
    gated=None,
    connector=CONNECTOR.partition("@")[0],
    hosts=("api.linear.app:443",),
)
ATHENA = replace(OFFER, name=f"{CONNECTOR} AWS AmazonAthena.GetQueryExecution")


def block_text(blocks: Iterable[Block]) -> str:
    return "\n".join(plain_text(block.pieces) for block in blocks)


@pytest.mark.parametrize(
    ("offer", "means"),
    [(OFFER, "each request is a single query"), (ATHENA, "cannot check that it only reads")],
)
async def test_an_offer_says_what_it_means_and_is_accepted_by_the_digest(
    offer: NotAcceptedView, means: str
) -> None:
    """The connector, its hosts and bytes, what would be read, and what follows: then the key."""
    async with console(start(held=(offer,)), size=(140, 40)) as shown:
        await shown.shows("Let this connector send POST requests in previews?")
        read = offer.name.partition(" ")[2]
        facts = block_text(file_blocks(offer))
        await shown.shows(f"by POST: {read[:12]}")
        for fact in (means, read, CONNECTOR, "api.linear.app:443", offer.digest):
            assert fact in facts, fact
        await shown.rest()
        await shown.press_alone("t")
        assert shown.port.intents == [Accept(kind="preview", name=offer.name, digest=offer.digest)]
        shown.port.tell(LibraryUpdated(not_accepted=(), problems=(), actions_ready=1))
        await shown.shows("Accepted")


async def test_an_item_says_what_its_preview_may_read_by_post_and_who_accepted_that() -> None:
    """Unseen is a warning; a person's own yes stands in the record."""
    view = short(1)
    reads = (("GraphQL queries", "--accept-installed"),)
    marked = replace(
        view, preview=replace(view.preview, status="ready", accepted_reads=reads, updated_at=NOW)
    )

    async with console(start(marked), size=(140, 40)) as shown:
        await shown.shows(
            "its preview sends POST requests, accepted without review (--accept-installed)"
        )
        facts = block_text(approval_blocks(marked, NOW))
        assert "may read by POST: GraphQL queries, accepted by --accept-installed" in facts
