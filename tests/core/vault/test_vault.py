"""The vault on real files: what opens it, what is in it, and what is found when a file was changed."""

import base64
import contextlib
import itertools
import json
import os
import signal
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from aileron_core import errors
from aileron_core.vault.secret import Secret
from aileron_core.vault.vault import Vault
from tests.support.frozen_clock import FrozenClock
from tests.support.vaults import CHEAP

PHRASE, OTHER = "correct horse battery", "staple tr0ub4dor"
CANARY = "canary-secret-5b1e"
PATH = "api_key/service/ana"
METADATA = {"kind": "api_key", "account": "ana@example.com"}


def vault_in(folder: Path, clock: FrozenClock | None = None) -> Vault:
    return Vault(folder, clock or FrozenClock(), kdf=CHEAP)


def another(folder: Path) -> Path:
    """Return a folder with a vault of somebody else's passphrase."""
    (folder / "another").mkdir()
    vault_in(folder / "another").create(Secret(OTHER))
    return folder / "another"


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    """An unlocked vault with one entry, which has been written twice."""
    vault = vault_in(tmp_path)
    vault.create(Secret(PHRASE))
    vault.put(PATH, Secret(CANARY), METADATA)
    return vault


def unlocked_in(folder: Path, phrase: str = PHRASE) -> Vault:
    vault = vault_in(folder)
    vault.unlock(Secret(phrase))
    return vault


def edit_file(file: Path, change: Callable[[dict[str, Any]], object]) -> None:
    content = json.loads(file.read_bytes())
    change(content)
    file.write_text(json.dumps(content))


def test_only_the_passphrase_opens_it(tmp_path: Path, vault: Vault) -> None:
    """Locked, it lists what it has, but for its own entry."""
    assert list(vault.entries()) == [PATH]
    vault.lock()
    other = vault_in(tmp_path)
    assert other.state == "locked"
    assert {path: dict(each) for path, each in other.entries().items()} == {PATH: METADATA}
    put = partial(other.put, PATH, Secret("x"), {})
    for call in (lambda: other.get(PATH), lambda: other.derive_key("x"), other.private_key, put):
        with pytest.raises(errors.VaultLocked):
            call()
    with pytest.raises(errors.WrongPassphrase):
        other.unlock(Secret(PHRASE + " "))
    assert other.state == "locked"
    other.unlock(Secret(PHRASE))
    assert other.get(PATH).reveal_text() == CANARY


def test_the_file_is_private_and_holds_no_secret(tmp_path: Path, vault: Vault) -> None:
    vault.lock()
    for file in tmp_path.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
        data = file.read_bytes()
        for hidden in (CANARY, PHRASE):
            for each in (hidden.encode(), base64.b64encode(hidden.encode()).rstrip(b"=")[:-1]):
                assert each not in data


def test_the_key_of_the_passphrase_costs_what_is_promised(tmp_path: Path) -> None:
    """docs/accounts.md#the-vaults-file"""
    Vault(tmp_path, FrozenClock(), kdf=None).create(Secret(PHRASE))
    kdf = json.loads((tmp_path / "vault.json").read_bytes())["kdf"]
    assert len(base64.b64decode(kdf.pop("salt"))) == 16
    assert kdf == {"name": "argon2id", "iterations": 3, "memory_kib": 65536, "lanes": 4}


def test_a_passphrase_is_long_enough_and_overwritten_after_use(tmp_path: Path) -> None:
    vault = vault_in(tmp_path)
    for short in ("", "1234567", "äöüäöüä"):
        with pytest.raises(errors.InvalidRequest, match="at least 8 characters"):
            vault.create(Secret(short))
    assert vault.state == "absent"
    phrase = Secret(PHRASE)
    vault.create(phrase)
    assert len(phrase) == 0


def test_what_is_derived_belongs_to_its_label_and_outlives_a_restart(
    tmp_path: Path, vault: Vault
) -> None:
    key = vault.derive_key("history")
    assert len(key) == 32
    assert key != vault.derive_key("history2")
    vault.change_passphrase(Secret(PHRASE), Secret(OTHER))
    assert unlocked_in(tmp_path, OTHER).derive_key("history") == key


def test_what_keeps_it_open_stores_after_the_lock_and_nothing_else_does(
    tmp_path: Path, vault: Vault
) -> None:
    """The keys are overwritten when the last of those that keep it open ends."""
    keys = vault._open.keys
    with vault.kept_open() as entries, vault.kept_open():
        vault.lock()
        assert vault.state == "locked"
        with pytest.raises(errors.VaultLocked):
            vault.get(PATH)
        with pytest.raises(errors.VaultLocked), vault.kept_open():
            pass
        vault.unlock(Secret(PHRASE))
        vault.put("new", Secret("1"), {})
        entries.put(PATH, Secret("renewed"), METADATA)  # loses nothing that the other wrote
        assert any(keys._master)
    assert not any([*keys._master, *keys._of_entries, *keys._of_mac])
    for each in (vault, unlocked_in(tmp_path)):
        assert each.get(PATH).reveal() == b"renewed"
        assert each.get("new").reveal() == b"1"
    keys = vault._open.keys
    assert any(keys._master)
    assert vault.lock()
    assert not any([*keys._master, *keys._of_entries, *keys._of_mac])
    assert not vault.lock()


def test_a_public_key_put_into_the_file_of_a_locked_vault_is_not_used(
    tmp_path: Path, vault: Vault
) -> None:
    """What it seals while locked could be read by whoever put the key there."""
    own = vault.public_key
    vault.lock()
    foreign = base64.b64encode(bytes(range(32))).decode()
    edit_file(tmp_path / "vault.json", lambda content: content.update(public_key=foreign))
    assert vault.public_key == own


def test_a_vault_is_created_once(tmp_path: Path, vault: Vault) -> None:
    before = (tmp_path / "vault.json").read_bytes()
    with pytest.raises(errors.Conflict, match="There is a vault already"):
        vault_in(tmp_path).create(Secret(OTHER))
    assert (tmp_path / "vault.json").read_bytes() == before


def test_without_a_vault_nothing_is_unlocked(tmp_path: Path) -> None:
    vault = vault_in(tmp_path)
    assert (vault.state, vault.public_key, len(vault.entries())) == ("absent", None, 0)
    with pytest.raises(errors.VaultAbsent, match="aileron vault init"):
        vault.unlock(Secret(PHRASE))
    with pytest.raises(errors.VaultLocked, match="aileron vault init"):
        vault.get(PATH)


def test_listeners_hear_of_each_change_where_they_run(tmp_path: Path) -> None:
    calls: list[Callable[[], None]] = []
    vault = Vault(tmp_path, FrozenClock(), kdf=CHEAP, deliver=calls.append)
    heard: list[str] = []
    vault.changed.subscribe(heard.append)
    vault.create(Secret(PHRASE))
    vault.lock()
    assert heard == []
    for call in calls:
        call()
    assert heard == ["unlocked", "locked"]


def test_wrong_passphrases_are_counted_over_restarts_slowed_and_told(
    tmp_path: Path, vault: Vault
) -> None:
    vault.lock()
    clock = FrozenClock()
    began = clock.now()
    waits: list[float] = []
    for attempt in range(1, 12):
        with pytest.raises(errors.WrongPassphrase) as wrong:
            vault_in(tmp_path, clock).unlock(Secret("not the passphrase"))
        assert wrong.value.attempts == attempt
        waits.append(wrong.value.wait_seconds)
        if waits[-1]:
            clock.advance(waits[-1] - 0.01)
            with pytest.raises(errors.RateLimited):  # the right one is not looked at either
                vault_in(tmp_path, clock).unlock(Secret(PHRASE))
            clock.advance(0.02)
    assert waits == [0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60]
    failed = vault_in(tmp_path, clock).unlock(Secret(PHRASE)).failed
    assert (failed.count, failed.since) == (11, pytest.approx(began))
    assert vault_in(tmp_path, clock).failed_attempts.count == 0


def test_a_passphrase_is_verified_against_what_was_unlocked(tmp_path: Path, vault: Vault) -> None:
    """Not against a file that another program put in its place, whose passphrase it knows."""
    vault.verify(Secret(PHRASE))
    ours = (tmp_path / "vault.json").read_bytes()
    (tmp_path / "vault.json").write_bytes((another(tmp_path) / "vault.json").read_bytes())
    with pytest.raises(errors.WrongPassphrase):
        vault.verify(Secret(OTHER))
    (tmp_path / "vault.json").write_bytes(ours)
    tried = Secret(PHRASE)
    vault.verify(tried)
    assert len(tried) == 0
    assert vault.failed_attempts.count == 1  # told at the next unlock
    vault.lock()
    with pytest.raises(errors.VaultLocked):
        vault.verify(Secret(PHRASE))


def test_an_attempt_counts_before_it_is_made(tmp_path: Path, vault: Vault) -> None:
    """Ending the process while the passphrase is tried makes none free."""
    vault.lock()

    def ends(*_: object) -> None:
        raise KeyboardInterrupt

    killed = vault_in(tmp_path)
    killed._store.open = ends  # type: ignore[method-assign, assignment]
    with pytest.raises(KeyboardInterrupt):
        killed.unlock(Secret(OTHER))
    assert vault_in(tmp_path).failed_attempts.count == 1


def test_a_clock_set_back_makes_nobody_wait_longer(tmp_path: Path, vault: Vault) -> None:
    vault.lock()
    clock = FrozenClock()
    clock.advance(86400)
    for _ in range(3):
        with pytest.raises(errors.WrongPassphrase):
            vault_in(tmp_path, clock).unlock(Secret(OTHER))
    back = FrozenClock()
    with pytest.raises(errors.RateLimited) as early:
        vault_in(tmp_path, back).unlock(Secret(PHRASE))
    assert early.value.details["wait_seconds"] <= 1


@pytest.mark.parametrize("cut", [0, 200])
def test_a_damaged_file_loses_nothing(tmp_path: Path, vault: Vault, cut: int) -> None:
    """The one before it opens, with a sentence on which; what is damaged is kept until it is replaced."""
    vault.put("api_key/service/ben", Secret("2"), {})
    main = tmp_path / "vault.json"
    main.write_bytes(main.read_bytes()[:cut])
    broken = main.read_bytes()
    again = vault_in(tmp_path)
    assert "vault.json is damaged. vault.json.previous" in again.problem
    again.unlock(Secret(PHRASE))
    assert again.get(PATH).reveal_text() == CANARY
    again.put("x", Secret("1"), {})
    assert again.problem == ""
    assert (tmp_path / "vault.json.damaged").read_bytes() == broken
    assert unlocked_in(tmp_path).get("x").reveal() == b"1"
    main.rename(tmp_path / "elsewhere")
    assert "vault.json is missing" in unlocked_in(tmp_path).problem
    main.symlink_to(tmp_path / "elsewhere")  # no link is followed
    assert "vault.json is damaged" in vault_in(tmp_path).problem


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda file: file.write_text("{"), "vault.json and vault.json.previous cannot be read"),
        (lambda file: edit_file(file, lambda c: c.update(version=3)), "Use the newer Aileron"),
        # Parameters that would exhaust the machine are not followed.
        (lambda it: edit_file(it, lambda c: c["kdf"].update(memory_kib=2**31)), "cannot be read"),
    ],
    ids=["damaged", "newer", "memory"],
)
def test_what_cannot_be_read_is_refused_with_a_sentence_and_not_overwritten(
    tmp_path: Path, vault: Vault, change: Callable[[Path], object], why: str
) -> None:
    files = [tmp_path / "vault.json", tmp_path / "vault.json.previous"]
    for file in files:
        change(file)
    again, before = vault_in(tmp_path), [file.read_bytes() for file in files]
    assert again.state == "locked"
    assert ("format 3" in again.problem) == ("newer" in why)
    for attempt in (again.unlock, again.create):
        with pytest.raises(errors.VaultDamaged, match=why):
            attempt(Secret(PHRASE))
    assert [file.read_bytes() for file in files] == before


def swap_values(content: dict[str, Any]) -> None:
    one, two = (content["entries"][path] for path in (PATH, "api_key/service/ben"))
    one["value"], two["value"] = two["value"], one["value"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda c: c["entries"].pop(PATH), id="an entry taken out"),
        pytest.param(lambda c: c["entries"][PATH]["metadata"].update(account="eve"), id="metadata"),
        pytest.param(lambda c: c.update(public_key=base64.b64encode(bytes(32)).decode()), id="key"),
        pytest.param(lambda c: c.update(generation=99), id="generation"),
        pytest.param(lambda c: c.update(generation=c["generation"] - 1), id="that of the previous"),
        pytest.param(swap_values, id="two values swapped"),
    ],
)
def test_a_file_that_another_program_changed_is_not_used(
    tmp_path: Path, vault: Vault, change: Callable[[dict[str, Any]], object]
) -> None:
    vault.put("api_key/service/ben", Secret("of ben"), {})
    vault.put("api_key/service/cleo", Secret("of cleo"), {})
    edit_file(tmp_path / "vault.json", change)
    again = vault_in(tmp_path)
    problem = again.unlock(Secret(PHRASE)).problem
    assert "vault.json was changed by another program" in problem
    assert again.problem == problem
    assert again.get(PATH).reveal_text() == CANARY
    assert again.get("api_key/service/ben").reveal() == b"of ben"
    edit_file(tmp_path / "vault.json.previous", change)
    with pytest.raises(errors.VaultDamaged, match="changed by another program"):
        unlocked_in(tmp_path)


def test_a_value_opens_only_at_its_path_and_with_its_metadata(vault: Vault) -> None:
    """Even under the MAC: the value itself is bound to both."""
    keys, entry = vault._open.keys, vault._open.document.entries[PATH]
    assert keys.decrypt_entry(PATH, entry) == Secret(CANARY)
    assert keys.decrypt_entry(PATH + "2", entry) is None
    other = type(entry)(entry.value, {**METADATA, "account": "eve"})
    assert keys.decrypt_entry(PATH, other) is None


def vaults_in(folder: Path) -> list[Path]:
    """The two files of the folder that are vaults."""
    found = [file for file in folder.iterdir() if b'"entries"' in file.read_bytes()]
    assert len(found) == 2
    return found


def test_what_was_deleted_is_in_no_file(tmp_path: Path, vault: Vault) -> None:
    vault.put("api_key/service/ben", Secret("2"), {})
    vault.delete(PATH)
    for file in vaults_in(tmp_path):
        entries = json.loads(file.read_bytes())["entries"]
        assert list(entries) == [".private-key", "api_key/service/ben"]
    with pytest.raises(errors.NotFound):
        vault.delete(PATH)


def test_after_a_change_the_old_passphrase_opens_no_file(tmp_path: Path, vault: Vault) -> None:
    """It is changed with the old one alone, and a wrong one that was given is told later all the same."""
    vault.lock()
    with pytest.raises(errors.WrongPassphrase):
        vault.change_passphrase(Secret(OTHER), Secret("something longer"))
    vault.change_passphrase(Secret(PHRASE), Secret(OTHER))
    assert (vault.state, vault.failed_attempts.count) == ("locked", 1)
    for file in vaults_in(tmp_path):
        alone = tmp_path / file.name.replace(".", "-")
        alone.mkdir()
        (alone / "vault.json").write_bytes(file.read_bytes())
        with pytest.raises(errors.WrongPassphrase):
            unlocked_in(alone)
        assert unlocked_in(alone, OTHER).get(PATH).reveal_text() == CANARY


def in_a_child(body: Callable[[], object]) -> int:
    """Run *body* in a process of its own, and return that one's id."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            body()
            os._exit(0)
        os._exit(1)
    return child


def crash(written: Vault, folder: Path, do: Callable[[Vault], object], renames: int) -> Vault:
    """Have a process that *does* something be killed when it would rename a file after *renames* others.

    Returns the vault of another process, which is not unlocked.
    """
    written.lock()
    names, real = itertools.count(), Path.replace

    def replace(self: Path, target: Path) -> Path:
        if next(names) == renames:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(self, target)

    def until_then() -> None:
        vault = unlocked_in(folder)
        Path.replace = replace  # type: ignore[method-assign]
        do(vault)

    _, status = os.waitpid(in_a_child(until_then), 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    return vault_in(folder)


@pytest.mark.parametrize("renames", [0, 1])
def test_a_crash_between_write_and_rename_leaves_the_file_before(
    tmp_path: Path, vault: Vault, renames: int
) -> None:
    again = crash(vault, tmp_path, lambda it: it.put("new", Secret("1"), {}), renames)
    again.unlock(Secret(PHRASE))
    assert list(again.entries()) == [PATH]
    assert again.get(PATH).reveal_text() == CANARY
    assert (again.problem != "") == (renames == 1)
    if renames:
        assert "was not finished. vault.json from before it is used" in again.problem
    again.put("new", Secret("1"), {})
    assert again.problem == ""


def test_a_deletion_that_was_cut_short_is_finished(tmp_path: Path, vault: Vault) -> None:
    again = crash(vault, tmp_path, lambda it: it.delete(PATH), 1)
    again.unlock(Secret(PHRASE))
    assert "was not finished; it is now" in again.problem
    assert not again.entries()
    assert PATH.encode() not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


def test_a_change_of_the_passphrase_that_was_cut_short_is_finished(
    tmp_path: Path, vault: Vault
) -> None:
    def change(it: Vault) -> None:
        it.change_passphrase(Secret(PHRASE), Secret(OTHER))

    again = crash(vault, tmp_path, change, 2)  # the first renames the count of attempts
    again.unlock(Secret(OTHER))
    assert "The vault has the new passphrase" in again.problem
    assert again.get(PATH).reveal_text() == CANARY
    again.lock()
    with pytest.raises(errors.WrongPassphrase):
        unlocked_in(tmp_path)


def test_two_vaults_on_one_folder_lose_nothing_of_each_other(tmp_path: Path, vault: Vault) -> None:
    other = unlocked_in(tmp_path)

    def fill(which: Vault, name: str) -> None:
        for number in range(20):
            which.put(f"{name}/{number}", Secret(f"{name}{number}"), {})

    with ThreadPoolExecutor() as pool:
        list(pool.map(fill, (vault, other, vault), "abc"))
    expected = {PATH, *(f"{name}/{number}" for name in "abc" for number in range(20))}
    for each in (vault, other, unlocked_in(tmp_path)):
        assert set(each.entries()) == expected
        assert each.get("b/7").reveal() == b"b7"


def test_an_older_file_put_back_while_unlocked_is_not_taken(tmp_path: Path, vault: Vault) -> None:
    old = (tmp_path / "vault.json").read_bytes()
    vault.delete(PATH)
    (tmp_path / "vault.json").write_bytes(old)
    assert list(vault.entries()) == []
    assert "replaced by another program" in vault.problem
    vault.put("x", Secret("1"), {})
    assert list(unlocked_in(tmp_path).entries()) == ["x"]


def test_vaults_of_two_processes_exclude_each_other(tmp_path: Path, vault: Vault) -> None:
    """The lock is the kernel's: a process that ended holds none."""

    def fill(name: str) -> None:
        vault = unlocked_in(tmp_path)
        for number in range(20):
            vault.put(f"{name}/{number}", Secret("1"), {})

    children = [in_a_child(partial(fill, name)) for name in ("a", "b")]
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    assert len(unlocked_in(tmp_path).entries()) == 41


def test_what_was_stored_is_not_changed_with_the_callers_object(vault: Vault) -> None:
    metadata: dict[str, Any] = {"hosts": ["a"]}
    vault.put("x", Secret("1"), metadata)
    metadata["hosts"].append("evil")
    vault.put("y", Secret("1"), {})
    assert vault.entries()["x"] == {"hosts": ["a"]}
    assert vault.get("x").reveal() == b"1"
    for bad in ("", ".private-key", "a\nb", "x" * 600):
        with pytest.raises(errors.InvalidRequest):
            vault.put(bad, Secret("1"), {})


def test_idle_time_begins_with_a_persons_key_and_not_with_a_use(tmp_path: Path) -> None:
    clock = FrozenClock()
    vault = vault_in(tmp_path, clock)
    vault.create(Secret(PHRASE))
    clock.advance(59)
    assert not vault.is_idle(60)
    vault.touch()
    clock.advance(59)
    assert not vault.is_idle(60)
    vault.put(PATH, Secret("1"), {})
    vault.get(PATH)
    vault.derive_key("x")
    clock.advance(1)
    assert vault.is_idle(60)
    vault.lock()
    clock.advance(600)
    assert not vault.is_idle(60)


def test_a_passphrase_of_another_vault_in_its_place_changes_nothing_of_what_is_unlocked(
    tmp_path: Path, vault: Vault
) -> None:
    """Its key would be written in place of the real one, and nothing would open the accounts any more."""
    theirs = another(tmp_path)
    for change, more in (
        (vault.change_passphrase, [Secret("their own")]),
        (vault.allow_keyring, []),
    ):
        (tmp_path / "vault.json").write_bytes((theirs / "vault.json").read_bytes())
        with pytest.raises(errors.WrongPassphrase):
            change(Secret(OTHER), *more)
    vault.change_passphrase(Secret(PHRASE), Secret(OTHER))
    vault.lock()
    vault.unlock(Secret(OTHER))
    assert vault.get(PATH).reveal_text() == CANARY
