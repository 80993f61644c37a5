"""The words of the vault and of accounts: why a call waits for one, unlocking, creating, picking, listing."""

from collections.abc import Sequence
from typing import Final

from aileron_tui.words.bars import calls_waiting

WAITS_FOR_VAULT: Final = "WAITS FOR THE VAULT"
WAITS_FOR_ACCOUNT: Final = "WAITS FOR AN ACCOUNT"
WAITS_FOR_CHOICE: Final = "WAITS FOR YOUR CHOICE"
LOCKED_REMARK: Final = "it is locked; nothing is fetched and nothing runs until it is unlocked"
WAITS_FOR_SETTINGS: Final = "WAITS FOR THE SETTINGS"
SETTINGS_REMARK: Final = "config.toml is not what you accepted; nothing is fetched and nothing runs"
UNBOUND_REMARK: Final = "no bound account can be used; nothing is fetched and nothing runs"
CHOICE_REMARK: Final = "several accounts can be used; the agent cannot pick one"
NEEDS: Final = "Needs"
NEXT: Final = "Next"
IN_SHELL: Final = "Or in a shell: "
WARNINGS: Final = {
    "locked": "Waiting for the vault",
    "settings": "Waiting for you to accept config.toml",
    "unbound": "Waiting for an account",
    "choice": "Waiting for you to pick an account",
}
TAGS: Final = {
    "locked": "▲ vault",
    "settings": "▲ config.toml",
    "unbound": "▲ no account",
    "choice": "▲ pick an account",
}
"""Why a call waits, by `AccountNeed.reason`."""
TOP_BAR: Final = ("◇", "◇ locked", "◇ vault locked")
"""In 0 to 2 words."""
UNATTENDED: Final = "▲ the vault was unlocked unattended: by a file or variable, not by your key"
REFUSED: Final = {
    "locked": "the vault is locked",
    "settings": "config.toml has to be accepted first",
    "unbound": "no account is bound for it",
    "choice": "an account has to be picked first",
}


def there(state: str) -> str:
    """Return what unlocks the vault, or creates one that is absent, for an attached console, which does neither."""
    does = "init" if state == "absent" else "unlock"
    return f"`aileron vault {does}` on its server's machine"


def first(state: str, *, attached: bool) -> str:
    """Return why nothing is done with accounts while the vault is *state*: absent or locked."""
    why, does = {
        "absent": ("there is no vault yet", "create it"),
        "locked": ("the vault is locked", "unlock it"),
    }[state]
    return f"{why}; {does} first" + (f", with {there(state)}" if attached else "")


def settings_withheld(names: Sequence[str], *, locked: bool) -> str:
    """Return which settings of config.toml are not in force, and until when."""
    until = "you unlock the vault" if locked else "you accept config.toml"
    return f"▲ {', '.join(names)} of config.toml: not in force until {until}"


def settings_in_force(names: Sequence[str]) -> str:
    return f"Now in force, from config.toml: {', '.join(names)}."


def bind_here(accounts_key: str) -> str:
    """Return which key leads to where an account is bound."""
    return f"{accounts_key} leads to the accounts, where you bind one."


def kind_needed(kind: str) -> str:
    """Return what kind of account a connector needs. *kind* was rendered."""
    return f"an account of kind {kind}"


def next_step(reason: str, key: str, *, gated: bool) -> str:
    """Return what *key* does about a call that waits, and what happens then."""
    if reason == "settings":
        return "Accept config.toml in its own row, or put it back and restart the console."
    then = (
        "The preview is fetched then, and you are asked."
        if gated
        else "It then runs without asking."
    )
    does = {"locked": "unlocks the vault", "choice": "picks one"}.get(reason, "")
    return f"{key} {does}. {then}" if does else then


def status(
    reason: str, unlock_key: str, choose_key: str, accounts_key: str, *, has_vault: bool
) -> str:
    match reason:
        case "unbound" if not has_vault:
            return f"No account is bound. {unlock_key} creates the vault that keeps accounts."
        case "unbound":
            return f"No account can be used. {accounts_key} leads to the accounts; this waits until then."
        case "settings":
            return "config.toml is not what you accepted. Its own row accepts it; this waits until then."
        case "choice":
            return f"{choose_key} picks the account. This waits until then."
        case _:
            return f"The vault is locked. {unlock_key} unlocks it; this waits until then."


def locked_now() -> str:
    return "The vault is locked."


def opened(*, created: bool) -> str:
    return "✓ The vault is created and unlocked." if created else "✓ The vault is unlocked."


def wrong_before(count: int, since: str) -> str:
    """Return how many wrong passphrases were given; *since*: a time, may be empty."""
    noun = "wrong passphrase was" if count == 1 else "wrong passphrases were"
    return f"{count} {noun} given" + (f" since {since}." if since else ".")


# The panels

DIFFERENT: Final = "The two passphrases differ. Nothing was created; type a new one."
CREATE_LABEL: Final = "create the vault"


def waits_for(count: int, ungated: int) -> str:
    """Return how many calls the vault keeps waiting, *ungated* of which then run unasked."""
    if not count:
        return ""
    text = f"{calls_waiting(count)} for it."
    if not ungated:
        return f"{text} None runs by itself."
    return f"{text} {ungated} {'runs' if ungated == 1 else 'run'} at once then, without asking."


def wait(seconds: int) -> str:
    return f"for {seconds} s no passphrase is tried, because of the wrong ones before"


REMEMBER: Final = "remember"
"""Typed behind an account's number, without a screen."""
UNSEEN_PROMPT: Final = "(not shown) > "
CANCELLED: Final = "Cancelled. The vault is as it was."


def choose_by_number(key: str, count: int) -> str:
    """Return how one of *count* accounts is picked by its number."""
    return (
        f"Type {key} and the number of the account, 1 to {count}; behind it {REMEMBER} has later calls of the "
        "action use it too. Nothing was picked."
    )


STATUS: Final = "The accounts that connectors use. No agent sees their secrets."
NONE: Final = "No accepted connector asks for an account."
NOT_BOUND: Final = "no account"
ACTIVE: Final = "active"
STALE: Final = "login ended"
NOT_COUNTING: Final = "cannot be used"
NEVER: Final = "never"
SECTION: Final = "ACCOUNT"
SECTION_REMARK: Final = "its secret is in the vault and is shown nowhere"
NEEDS_SECTION: Final = "NEEDS AN ACCOUNT"
NEEDS_REMARK: Final = "its calls wait until one is bound"
CONNECTOR_SECTION: Final = "ITS CONNECTOR"
CONNECTOR_REMARK: Final = "as it is accepted now"
AUTHOR: Final = "Its author says"
SENT_AS: Final = {
    "basic": "a user name and a password, in the header Authorization",
    "aws_sigv4": "the signature of each request, by an AWS access key",
    "oauth2": "an access token, in the header Authorization",
}
ASKS_FOR: Final = "asks for"
HELD_BY: Final = "the server itself, while it runs"


def count(bound: int, unusable: int) -> str:
    noun = "account" if bound == 1 else "accounts"
    return f"{bound} {noun}" + (f", {unusable} cannot be used" if unusable else "")


def sent_as(kind: str, header: str) -> str:
    """Return what of an account is sent. *header* was rendered."""
    return SENT_AS.get(kind, f"a key, in the header {header}")


def use(kind: str, header: str, names: str, hosts: str) -> str:
    """Return what becomes of an account's secret. The arguments were rendered."""
    if kind == "environment":
        return (
            f"It needs {names}. The server itself holds what you give it. It can reach {hosts}, and no "
            "other host."
        )
    return f"{sent_as(kind, header)}. Sent to {hosts}, over TLS, and to no other host."


def hosts_label(kind: str) -> str:
    """Return what the hosts of an account of *kind* are."""
    return "Reaches" if kind == "environment" else "Sent to"


def done(change: str, account: str) -> str:
    """Return what was done. *account* was rendered."""
    return {
        "bound": f"✓ {account} is bound. Calls that waited for it continue.",
        "rebound": f"✓ {account} can be used again. Calls that waited for it continue.",
        "revoked": f"✓ {account} was deleted. Revoke it at the service as well.",
        "forgotten": f"✓ From now on you are asked again where actions used {account}.",
        "authorized": f"✓ {account} is bound. Calls that waited for it continue.",
    }[change]
