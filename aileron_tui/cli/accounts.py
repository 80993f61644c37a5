"""The commands `aileron binding ...` and `aileron gateway key ...`: accounts and providers' keys in the vault.

A secret is typed unseen, or read from a descriptor or a file; never from an argument.
"""

import shutil
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from aileron_core.clock import rfc3339
from aileron_core.connectors.manifest import hosts_of_region
from aileron_core.connectors.store import ConnectorStore
from aileron_core.console_port.account_intents import (
    BeginLogin,
    BindAccount,
    ForgetChoice,
    ReadAccounts,
    ReadModelKeys,
    RebindAccount,
    RemoveModelKey,
    RevokeAccount,
    SetModelKey,
    named_values,
)
from aileron_core.console_port.account_views import (
    AccountChanged,
    AccountsUpdated,
    BoundAccountView,
    ModelKeysRead,
    ModelKeyView,
)
from aileron_core.console_port.codec import to_json
from aileron_core.credentials.accounts import account_view, credential_users, find_user
from aileron_core.credentials.binding import CredentialUser, binding_name
from aileron_core.credentials.model_keys import check_base_url
from aileron_core.errors import Conflict, InvalidRequest, NotFound
from aileron_core.home.layout import Home
from aileron_core.settings import load_settings
from aileron_core.text import escape
from aileron_core.vault import unattended
from aileron_core.vault.secret import Secret
from aileron_tui.cli.accepted import (
    accepted_connectors,
    load_acceptances,
    stored_bindings,
    stored_model_keys,
)
from aileron_tui.cli.authorizing import authorize
from aileron_tui.cli.output import EXIT, CliError, CommandContext, did_you_mean, local_time
from aileron_tui.cli.process import Given, close_memory, given_passphrase
from aileron_tui.cli.vault import (  # fmt: skip
    PassphraseRequests,
    ask,
    ask_unseen,
    ensure_unlocked,
    has_terminal,
    is_running,
    need_console,
)
from aileron_tui.words.vault import HELD_BY, hosts_label, sent_as

_AUTHOR = "    its author says │ "
_SECRET_PROMPTS = {"basic": "Password", "aws_sigv4": "Secret access key"}


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenAccount:
    """What the options of `binding setup` say of an account; nothing where they were not given."""

    identity: str = ""
    account: str | None = None
    user: str | None = None
    region: str | None = None
    secret: Given = (None, None)
    client_id: str | None
    device: bool
    passphrase: Given

    @property
    def unattended(self) -> bool:
        return self.secret != (None, None)


def setup_account(context: CommandContext, connector: str, **options: Any) -> int:
    """Bind an account to the accepted connector *connector*, in a vault that is made if there is none."""
    given = GivenAccount(**options)
    close_memory()
    requests = PassphraseRequests(context, given_passphrase(given.passphrase))
    user = _find_user(context, connector)
    name = binding_name(user, given.identity)
    need_console(context, "binding setup")
    if any(each.name == name for each in _accounts(context)):
        raise Conflict(
            f"An account {name} is bound already. Give another --identity, or revoke that one with "
            f"`aileron binding revoke {name}`."
        )
    _say_purpose(context, user, name, given.region)
    if given.region and user.requirement.kind != "aws_sigv4":
        raise InvalidRequest(f"--region is not for kind {user.requirement.kind}.")
    if user.requirement.kind == "oauth2":
        asked = _login(user, given, identity=given.identity)
        changed = authorize(context, asked, given.account, requests)
    else:
        if given.device or given.client_id is not None:
            raise InvalidRequest(
                f"--device and --client-id are not for kind {user.requirement.kind}."
            )
        requests.prepare()
        changed = requests.ask(_entered(user, given), AccountChanged)
    bound = _show_changed(context, changed)
    context.say(f"✓ {_shown(bound)} is bound to {escape(user.identity.ref)}.", fg="green")
    context.say(
        "Calls that waited for it continue. The secret is in the vault and is shown nowhere."
    )
    return EXIT.DONE


def _show_changed(context: CommandContext, changed: AccountChanged) -> BoundAccountView:
    """Print, with `--json`, the account that was changed; return it."""
    bound = _find_account(context, changed.name)
    context.show(_body(bound))
    return bound


def _entered(user: CredentialUser, given: GivenAccount) -> BindAccount:
    """Return the intent that binds the account, with what a person types or the options name."""
    kind, asks = user.requirement.kind, not given.unattended
    if asks and not has_terminal():
        raise CliError(
            EXIT.USAGE,
            "The secret is typed at a terminal, and there is none. Give it with --secret-fd or "
            "--secret-file.",
        )
    account = given.account
    if account is None and asks:
        account = _ask("Your name for this account, such as ana@example.com (may be empty): ")
    name = ""
    if kind in ("basic", "aws_sigv4"):
        name = given.user or user.requirement.access_key_id
        if not name and asks:
            name = _ask("User name: " if kind == "basic" else "Access key id: ")
        if not name:
            raise InvalidRequest(f"An account of kind {kind} needs --user as well.")
    region = given.region
    if user.needs_region and asks and not region:
        region = _ask("AWS region, such as us-east-1: ")
    secret, session_token = given_secret(given.secret), None
    if names := user.requirement.names:
        if secret is None:
            asked = {each: ask_unseen(f"{each} (not shown): ", "secret") for each in names}
            secret = named_values(asked)
        elif len(names) == 1:
            secret = named_values({names[0]: secret})
    if secret is None:
        prompt = _SECRET_PROMPTS.get(kind, "Key")
        secret = ask_unseen(f"{prompt} (not shown): ", "secret")
        asked = "Session token, if the key has one (not shown, may be empty): "
        if kind == "aws_sigv4" and (token := ask_unseen(asked, "secret")):
            session_token = token
    return BindAccount(
        connector_hash=user.identity.hash,  # what was said above is what will use the account
        identity=given.identity,
        account=account or "",
        secret=secret,
        user=name,
        session_token=session_token,
        region=region or "",
    )


def given_secret(given: Given) -> Secret | None:
    """Return the secret that an option names, None without one."""
    descriptor, file = given
    if descriptor is not None and file is not None:
        raise InvalidRequest("The secret was given twice. Use --secret-fd or --secret-file.")
    if descriptor is not None:
        return unattended.read_secret_descriptor(descriptor, "secret")
    if file is not None:
        return unattended.read_secret_file(Path(file), "secret")
    return None


def _login(
    user: CredentialUser, given: GivenAccount, *, identity: str = "", replaces: str = ""
) -> BeginLogin:
    """Return the intent that begins a login, with what the options say of the person's own client."""
    secret = None
    if given.client_id is not None:
        secret = given_secret(given.secret)
        if secret is None:
            prompt = "Client secret, if there is one (not shown, may be empty): "
            secret = ask_unseen(prompt, "secret")
    elif given.unattended:
        raise InvalidRequest(
            "The secret of an account of kind oauth2 is a client's: give --client-id."
        )
    return BeginLogin(
        connector_hash=user.identity.hash,
        identity=identity,
        replaces=replaces,
        client_id=given.client_id or "",
        client_secret=secret,
        device=given.device,
    )


def reauthorize_account(context: CommandContext, name: str, **options: Any) -> int:
    """Have an account authorized anew at its service; its name and its connector stay."""
    given = GivenAccount(**options)
    close_memory()
    requests = PassphraseRequests(context, given_passphrase(given.passphrase))
    need_console(context, "binding reauthorize")
    found = _find_account(context, name)
    if found.kind != "oauth2":
        raise InvalidRequest(
            f"An account of kind {found.kind} has no login to renew. Revoke it, and bind it again."
        )
    user = _find_user(context, found.connector)
    _say_purpose(context, user, name)
    authorize(context, _login(user, given, replaces=name), given.account, requests)
    bound = _find_account(context, name)
    context.say(f"✓ {_shown(bound)} is logged in again.", fg="green")
    return EXIT.DONE


def list_accounts(context: CommandContext) -> int:
    """Print the bound accounts; it works without a console and while the vault is locked."""
    items = _accounts(context)
    context.show({"items": [_body(each) for each in items]})
    for each in items:
        mark, color = ("✗", "yellow") if each.problem else ("✓", None)
        context.say(f"{mark} {_shown(each)}  {escape(each.connector)}")
        if each.names:
            context.say(f"    values │ {escape(', '.join(each.names))}")
        if each.problem:
            context.say(f"    cannot be used: {escape(each.problem)}", fg=color)
            context.say(f"    `aileron binding {each.remedy} {escape(each.name)}`")
        elif each.missing_scopes:
            missing = escape(", ".join(each.missing_scopes))
            context.say(f"    not granted │ {missing}", fg="yellow")
    if not items:
        context.say("No account is bound. `aileron binding setup CONNECTOR` binds one.")
    return EXIT.DONE


def inspect_account(context: CommandContext, name: str) -> int:
    """Print everything about an account but its secret."""
    found = _find_account(context, name)
    context.show(_body(found))
    created, used = found.created_at, found.last_used_at
    context.say(_shown(found))
    context.say(f"    connector  {escape(found.connector) or 'none yet'}")
    if found.connector_hash:
        context.say(f"    {escape(found.connector_hash)}")
    if found.names:
        context.say(f"    values     {escape(', '.join(found.names))}")
    label = hosts_label(found.kind).lower()
    context.say(f"    {label:<10} {escape(', '.join(found.hosts)) or 'no host yet'}")
    if found.region:
        context.say(f"    region     {escape(found.region)}, and no other")
    context.say(f"    bound at   {local_time(rfc3339(created)) if created else 'an unknown time'}")
    context.say(f"    last used  {'never' if used is None else local_time(rfc3339(used))}")
    for action in found.remembered_for:
        context.say(f"    remembered for the action {escape(action)}")
    if found.scopes:
        context.say(f"    granted    │ {escape(', '.join(found.scopes))}")
    if found.missing_scopes:
        context.say(f"    not granted │ {escape(', '.join(found.missing_scopes))}", fg="yellow")
    if found.problem:
        context.say(f"    cannot be used: {escape(found.problem)}", fg="yellow")
        context.say(f"    `aileron binding {found.remedy} {escape(name)}`")
    return EXIT.DONE


def rebind_account(
    context: CommandContext, name: str, connector: str | None, passphrase: Given, *, yes: bool
) -> int:
    """Say what the connector of an account is now, and let it use the account after a yes."""
    close_memory()
    requests = PassphraseRequests(context, given_passphrase(passphrase))
    need_console(context, "binding rebind")
    before = _find_account(context, name)
    user = _find_user(context, connector or before.connector)
    region = before.region
    _say_purpose(context, user, name, region)
    hosts = hosts_of_region(user.hosts, region) if region else user.hosts
    for host in sorted(set(hosts) - set(before.hosts)):
        label = hosts_label(user.requirement.kind).lower()
        context.say(f"    newly {label} {escape(host)}", fg="yellow")
    confirm(context, f"Let {user.identity.ref} use this account?", yes=yes)
    requests.prepare()
    asked = RebindAccount(name=name, connector_hash=user.identity.hash)
    bound = _show_changed(context, requests.ask(asked, AccountChanged))
    context.say(f"✓ {_shown(bound)} is bound to {escape(user.identity.ref)}.", fg="green")
    return EXIT.DONE


def revoke_account(context: CommandContext, name: str, *, yes: bool) -> int:
    """Delete an account from the vault after a yes."""
    close_memory()
    need_console(context, "binding revoke")
    found = _find_account(context, name)
    confirm(context, f"Delete {_shown(found)} from the vault?", yes=yes)
    ensure_unlocked(context)
    ask(context, RevokeAccount(name=name), AccountChanged)
    context.show({"revoked": name})
    context.say(f"✓ {_shown(found)} was deleted. Calls that need it wait for another account.")
    context.say("The service still accepts its secret: revoke it there as well.")
    return EXIT.DONE


def forget_choice(context: CommandContext, name: str, action: str) -> int:
    """Have a person pick again which account an action uses."""
    need_console(context, "binding forget")
    _find_account(context, name)
    ensure_unlocked(context)
    asked = ForgetChoice(name=name, action=action)
    _show_changed(context, ask(context, asked, AccountChanged))
    context.say(f"✓ The next call of {escape(action)} waits until you pick its account.")
    return EXIT.DONE


def confirm(context: CommandContext, question: str, *, yes: bool) -> None:
    """Raise `CliError` where a person does not say yes, or cannot be asked."""
    if yes:
        return
    if context.json or not has_terminal():
        raise CliError(EXIT.USAGE, "There is nobody to ask. Give --yes.")
    if _ask(f"{escape(question)} [y/N] ").strip().lower() not in ("y", "yes"):
        raise CliError(EXIT.FAILED, "Nothing was changed.")


def _say_purpose(
    context: CommandContext, user: CredentialUser, name: str, region: str | None = None
) -> None:
    """Say which connector will use the account, how, and where it will be sent."""
    need = user.requirement
    hosts = hosts_of_region(user.hosts, region) if region else user.hosts
    context.say(f"{escape(user.identity.ref)} asks for an account, {escape(name)}:")
    context.say(f"    {user.identity.hash}")
    reached = escape(", ".join(hosts)) or "no host"
    if need.names:
        said = {"needs": ", ".join(need.names), "held by": HELD_BY}
        said["reaches"] = f"{reached}, and no other host"
    else:
        said = {"sends": escape(sent_as(need.kind, need.header))}
        said["sent to"] = f"{reached}, over TLS, and to no other host"
    width = max(shutil.get_terminal_size().columns - 13, 20)
    for label, text in said.items():
        lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
        for number, part in enumerate(lines):
            context.say(f"    {'' if number else label:<8} {part}")
    columns = max(shutil.get_terminal_size().columns - len(_AUTHOR), 20)
    for line in need.scope.splitlines():
        for part in textwrap.wrap(escape(line), columns):
            context.say(f"{_AUTHOR}{part}")


def _shown(bound: BoundAccountView) -> str:
    account, name = escape(bound.account), escape(bound.name)
    return f"{account} ({name})" if account else name


def _find_account(context: CommandContext, name: str) -> BoundAccountView:
    items = _accounts(context)
    for each in items:
        if each.name == name:
            return each
    meant = did_you_mean(name, [each.name for each in items])
    raise NotFound(f"No account {name} is bound.{meant} `aileron binding list` shows them all.")


def _accounts(context: CommandContext) -> tuple[BoundAccountView, ...]:
    """Return the bound accounts; without a console, what the files say."""
    if is_running(context):
        return ask(context, ReadAccounts(), AccountsUpdated).accounts
    users = credential_users(accepted_connectors(Home(context.home)))
    accepted = {
        each.digest for each in load_acceptances(Home(context.home)) if each.kind == "action"
    }
    return tuple(account_view(each, users, accepted) for each in stored_bindings(context.home))


def _body(bound: BoundAccountView) -> dict[str, Any]:
    """Return *bound* as `--json` prints it."""
    body: dict[str, Any] = {"kind": bound.kind, **to_json(bound), "stale": bound.is_stale}
    for each in ("created_at", "last_used_at"):
        body[each] = rfc3339(body[each]) if body[each] else None
    return {key: value for key, value in body.items() if key not in ("is_stale", "remedy")}


def _find_user(context: CommandContext, name: str) -> CredentialUser:
    """Return the accepted connector *name*.

    Raises:
        NotFound: none of that name is installed.
        Conflict: it is not accepted, or several are called so.
        InvalidRequest: it asks for no credential.
    """
    accepted = accepted_connectors(Home(context.home))
    if not any(name in each.identity.names for each in accepted):
        installed = ConnectorStore(context.home).list()
        if any(name in each.identity.names for each in installed):
            raise Conflict(
                f"{name} is not accepted. Accept it in the console, then bind the account."
            )
        meant = did_you_mean(name, {each for found in installed for each in found.identity.names})
        raise NotFound(
            f"No connector {name} is installed.{meant} `aileron connector install FOLDER` installs one."
        )
    return find_user(accepted, name)


def _ask(prompt: str) -> str:
    try:
        return str(click.prompt(prompt, default="", show_default=False, prompt_suffix=""))
    except click.Abort:
        raise CliError(EXIT.FAILED, "Nothing was entered. Nothing was changed.") from None


def set_key(context: CommandContext, provider: str, secret: Given, passphrase: Given) -> int:
    """Store the key of *provider*, after saying where it will be sent."""
    close_memory()
    requests = PassphraseRequests(context, given_passphrase(passphrase))
    need_console(context, "gateway key set")
    base_url = dict(ask(context, ReadModelKeys(), ModelKeysRead).base_urls)[provider]
    check_base_url(base_url)  # before a key is asked for
    context.say(f"The key for {provider} stays in the vault:")
    context.say(f"    sent to  {escape(base_url)}, over TLS, and to no other address")
    context.say("    sent in  requests to models that have a session's placeholder for it")
    key = given_secret(secret)
    requests.prepare()
    key = key or ask_unseen("Key (not shown): ", "secret")
    asked = SetModelKey(provider=provider, base_url=base_url, secret=key)
    stored = requests.ask(asked, ModelKeysRead).keys
    context.show(next(_key_body(each) for each in stored if each.provider == provider))
    context.say(f"✓ The key for {provider} is in the vault.", fg="green")
    context.say(
        "Agents launched from now on get a placeholder in its place. Remove the key from your shell's "
        "settings and from the agents' own files: `aileron launch AGENT --dry-run` says what is used."
    )
    return EXIT.DONE


def list_keys(context: CommandContext) -> int:
    """Print which providers have a key; it works without a console and while the vault is locked."""
    keys = _keys(context)
    context.show({"items": [_key_body(each) for each in keys]})
    for each in keys:
        since = f", since {local_time(rfc3339(each.created_at))}" if each.created_at else ""
        mark = "✗" if each.problem else "✓"
        context.say(f"{mark} {escape(each.provider)}  sent to {escape(each.base_url)}{since}")
        if each.problem:
            context.say(f"    not used: {escape(each.problem)}", fg="yellow")
    if not keys:
        context.say("The vault has no key. `aileron gateway key set PROVIDER` stores one.")
    return EXIT.DONE


def remove_key(context: CommandContext, provider: str, *, yes: bool) -> int:
    """Delete the key of *provider* from the vault after a yes."""
    close_memory()
    need_console(context, "gateway key remove")
    confirm(context, f"Delete the key for {provider} from the vault?", yes=yes)
    ensure_unlocked(context)
    ask(context, RemoveModelKey(provider=provider), ModelKeysRead)
    context.show({"removed": provider})
    context.say(f"✓ The key for {provider} was deleted. Requests with a placeholder are refused.")
    context.say("The provider still accepts the key: revoke it there as well.")
    return EXIT.DONE


def _keys(context: CommandContext) -> Sequence[ModelKeyView]:
    """Return the keys; without a console, what the files say."""
    if is_running(context):
        return ask(context, ReadModelKeys(), ModelKeysRead).keys
    return stored_model_keys(context.home, load_settings(Home(context.home).config))


def _key_body(key: ModelKeyView) -> dict[str, Any]:
    """Return *key* as `--json` prints it."""
    created_at = None if key.created_at is None else rfc3339(key.created_at)
    return {**to_json(key), "created_at": created_at}
