"""A core of its own for each test that asks for one; the example connector is compiled once."""

from collections.abc import AsyncIterator, Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
import wasmtime

from aileron_core.connectors.wasm.modules import CompiledModules, _deserialized
from tests.support.core_harness import ROOT, Core, Mailbox, install_examples
from tests.support.vaults import cheap_passphrases


@pytest.fixture(scope="session", autouse=True)
def _the_example_connector_is_compiled_once() -> Iterator[None]:
    """Hundreds of cores run the same module: what wasmtime made of it once is what it makes again."""
    example = (ROOT / "examples" / "connectors" / "mail-drafts" / "connector.wasm").read_bytes()
    made: list[bytes] = []
    load = CompiledModules.load

    @wraps(load)
    def load_once(
        modules: CompiledModules, name: str, module: Callable[[], bytes], **named: Any
    ) -> wasmtime.Module:
        # An engine without a compiler is a trial's, and may compile it otherwise. With a vault's key
        # the compiled form is a file, which tests look at.
        if modules._compiler is None or modules._key() is not None or module() != example:
            return load(modules, name, module, **named)
        if made:
            return _deserialized(modules._engine, made[0])
        compiled = load(modules, name, module, **named)
        made.append(bytes(compiled.serialize()))
        return compiled

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CompiledModules, "load", load_once)
        yield


@pytest.fixture(scope="session", autouse=True)
def _passphrases_are_tried_quickly() -> Iterator[None]:
    """Real vaults cost a sixth of a second for each."""
    with cheap_passphrases():
        yield


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    """The mail service of the example."""
    with Mailbox() as running:
        yield running


@pytest.fixture
async def core(home: Path, mailbox: Mailbox, request: pytest.FixtureRequest) -> AsyncIterator[Core]:
    """A core on the example and its mailbox; closing it sends nothing."""
    marker = request.node.get_closest_marker("actions")
    install_examples(home, **(marker.kwargs if marker else {}))
    async with Core.open(home, mailbox) as running:
        yield running
        sent = mailbox.state()["sent"]
    assert mailbox.state()["sent"] == sent
