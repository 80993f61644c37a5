"""Machine code in the home: kept once there is a vault, and loaded only with the vault's own HMAC."""

from pathlib import Path

import pytest

from aileron_core.connectors.wasm.modules import CompiledModules
from tests.support.core_harness import Start, protected_home, unlock


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The modules that were compiled, and not loaded from a file; each by its connector's hash."""
    seen: list[str] = []
    real = CompiledModules._keep

    def keep(self: CompiledModules, name: str, module: object) -> None:
        seen.append(name)
        real(self, name, module)  # type: ignore[arg-type]

    monkeypatch.setattr(CompiledModules, "_keep", keep)
    # The other tests share what one of them compiled.
    monkeypatch.setattr(CompiledModules, "load", CompiledModules.load.__wrapped__)  # type: ignore[attr-defined]
    return seen


def files(home: Path) -> list[Path]:
    return sorted((home / "store" / "compiled").glob("*"))


async def read_drafts(start: Start) -> None:
    """Unlock the vault, and make a call that uses the connector."""
    async with start() as core:
        await unlock(core)
        assert (await core.call("list-drafts", {})).row.state == "completed"


@pytest.mark.usefixtures("protected")
async def test_a_connector_is_compiled_once_for_all_starts(
    start: Start, home: Path, compiled: list[str]
) -> None:
    """The file is the owner's alone; what no connector of the home has is removed."""
    await read_drafts(start)
    (file,) = files(home)
    assert file.stat().st_mode & 0o777 == 0o600
    (home / "store" / "compiled" / f"{'0' * 64}.cwasm").write_bytes(b"of a removed connector")
    compiled.clear()
    await read_drafts(start)
    assert compiled == []
    assert files(home) == [file]


@pytest.mark.usefixtures("protected")
async def test_changed_machine_code_is_never_loaded(
    start: Start, home: Path, compiled: list[str]
) -> None:
    """One changed byte, and the connector is compiled from what was accepted."""
    await read_drafts(start)
    (file,) = files(home)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    compiled.clear()
    await read_drafts(start)
    assert len(compiled) == 1
    assert file.read_bytes() != data


async def test_without_a_vault_and_while_it_is_locked_nothing_is_written_or_loaded(
    start: Start, home: Path, compiled: list[str]
) -> None:
    """Nothing could prove what such a file holds."""
    async with start() as core:
        assert (await core.call("list-drafts", {})).row.state == "completed"
    assert files(home) == []
    await protected_home(home)
    compiled.clear()
    async with start(accept=False) as core:
        assert (await core.call("list-drafts", {})).row.state == "awaiting_vault"
    assert compiled == []
