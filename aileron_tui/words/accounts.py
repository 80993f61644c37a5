"""The words of the accounts: the list, what can be done with one, and the questions."""

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
LOCKED: Final = "The vault is locked: nothing here is verified."

NO_ACCOUNT: Final = "no bound account is selected"
NO_CONNECTOR: Final = "its connector is not accepted, or asks for no account"
COUNTS_ALREADY: Final = "its connector may use it already"
NO_LOGIN: Final = "it has no login to renew: delete it and bind it again"
NOTHING_REMEMBERED: Final = "it is not remembered for any action"
VAULT_LOCKED: Final = "the vault is locked; unlock it first"
NO_VAULT: Final = "there is no vault yet; create it first"

# The questions

IDENTITY: Final = "Last part of the account's name (there is already one called default):"
ACCOUNT: Final = "Your name for this account, such as a mail address (may be empty):"
WHOSE: Final = "The service does not say whose account this is. Your name for it:"
USER: Final = "User name:"
ACCESS_KEY: Final = "Access key id:"
REGION: Final = "AWS region, such as us-east-1:"
SECRET: Final = {"basic": "Password:", "aws_sigv4": "Secret access key:"}
KEY: Final = "Key:"
ASK_SESSION: Final = "Session token, if the key has one (may be empty):"
CLIENT_ID: Final = "Your own client id at the service:"
ASK_CLIENT: Final = "Its client secret, if there is one (may be empty):"
ASK_HOST: Final = "Type the host that may get the login:"
STORING: Final = "Storing …"
BEGINNING: Final = "Starting the login …"
NOT_SHOWN: Final = "It is not shown."
EMPTY: Final = "nothing was typed"
REVOKE_REMARK: Final = (
    "Its secret is deleted from the vault. The service still accepts it: revoke it there as well."
)
OPEN_LOGIN: Final = "Log in at this address, in a browser on this machine:"
OPEN_DEVICE: Final = "Open this address on any device, and enter the code:"
LOGIN_TOO_LONG: Final = (
    "The address is too long for this window. Make the window larger, or leave and log in with"
)
WAITING: Final = "Waiting for the browser."
WAITING_DEVICE: Final = "Waiting until you did."
ASKS_FOR: Final = "asks for"
LOGS_IN_AT: Final = "log in at"
TOKENS_TO: Final = "tokens of"
CODE: Final = "code"
CONFIRM: Final = "Is this the account you mean? Nothing is stored yet."


def count(bound: int, unusable: int) -> str:
    """Return how many accounts there are, and how many cannot be used."""
    noun = "account" if bound == 1 else "accounts"
    return f"{bound} {noun}" + (f", {unusable} cannot be used" if unusable else "")


def sent_as(kind: str, header: str) -> str:
    """Return what of an account is sent. *header* was rendered."""
    return SENT_AS.get(kind, f"a key, in the header {header}")


def sent_to(hosts: str) -> str:
    """Return where it is sent. *hosts* were rendered."""
    return f"Sent to {hosts}, over TLS, and to no other host."


def bind_title(connector: str, name: str) -> str:
    """Return what is bound. Both were rendered."""
    return f"{name} for {connector}."


def rebind_question(connector: str, name: str) -> str:
    """Return the question of a rebind. Both were rendered."""
    return f"Let {connector} use {name}?"


def revoke_question(account: str) -> str:
    """Return the question of a deletion. *account* was rendered."""
    return f"Delete {account}?"


def done(change: str, account: str) -> str:
    """Return what was done. *account* was rendered."""
    return {
        "bound": f"✓ {account} is bound. Calls that waited for it continue.",
        "rebound": f"✓ {account} can be used again. Calls that waited for it continue.",
        "revoked": f"✓ {account} was deleted. Revoke it at the service as well.",
        "forgotten": f"✓ From now on you are asked again where actions used {account}.",
        "authorized": f"✓ {account} is bound. Calls that waited for it continue.",
    }[change]
