"""The words of the accounts: the list, and what was done with one."""

from typing import Final

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
