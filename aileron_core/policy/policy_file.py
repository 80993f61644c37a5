"""Reads a person's `policy.toml`: every unknown key is an error, with its line. Two rules hold without it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from aileron_core.actions.interpolate import number_text
from aileron_core.actions.model import EFFECTS, Action
from aileron_core.actions.positions import load_toml, locate, nearest
from aileron_core.actions.problems import KeyPath, KeyProblem, key_text
from aileron_core.agent_names import AGENT_NAMES
from aileron_core.console_port.standing import TEST_NAMES, FieldTest, TestName
from aileron_core.errors import FileProblems, Problem
from aileron_core.policy.action_rules import is_named
from aileron_core.policy.model import (
    ANY_FURTHER_WORDS,
    COMMAND,
    DECISIONS,
    READING,
    TOOLS,
    ActionRule,
    Decision,
    Policy,
    Rule,
)
from aileron_core.policy.shapes import MAX_PLAIN, is_well_formed
from aileron_core.policy.values import ARGUMENT, FETCHED, field_keys

NAME: Final = "policy.toml"
MAX_RULES: Final = 200
MAX_ENTRIES: Final = 64
"""Patterns or words of one list."""
MAX_CHARACTERS: Final = 400
"""Of one pattern, word or reason."""
_KEYS: Final = ("tools", "paths", "command", "changes", "decision", "reason")
_ACTION_KEYS: Final = (
    "actions",
    "effects",
    "agents",
    "contained",
    "where",
    "other_args",
    "grants",
    "decision",
    "reason",
)
SECRET_FILES: Final = (
    # environments
    ".env", ".env.*", "*.env", ".dev.vars", ".dev.vars.*", "local.settings.json",
    # private keys, and stores of them
    "*.pem", "*.key", "*.p12", "*.pfx", "*.p8", "*.ppk", "*.jks", "*.keystore", "*.kdbx", "*.ovpn",
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".ssh/", ".gnupg/", ".password-store/",
    # logins of tools
    ".netrc", "_netrc", ".npmrc", ".pypirc", ".git-credentials", ".pgpass", ".my.cnf", ".mylogin.cnf",
    ".htpasswd", ".dockercfg", ".s3cfg", ".boto", ".vault-token", ".vault_pass*", "rclone.conf",
    ".credentials.json", "credentials.json", "client_secret*.json", "service-account*.json",
    "service_account*.json", "serviceAccountKey.json", "application_default_credentials.json",
    "kubeconfig", "*.kubeconfig", ".aws/", ".azure/", "**/.kube/config", "**/.docker/config.json",
    "**/.config/gcloud/", "**/.config/gh/hosts.yml", "**/.cargo/credentials*", "**/.gem/credentials",
    # what is called a secret, in a form that holds values rather than code
    "secret.json", "secret.toml", "secret.yaml", "secret.yml",
    "secrets.env", "secrets.ini", "secrets.json", "secrets.properties", "secrets.tfvars",
    "secrets.toml", "secrets.txt", "secrets.xml", "secrets.yaml", "secrets.yml",
    "*.tfstate", "*.tfstate.*",
)  # fmt: skip
"""Patterns (`aileron_core.path_patterns`) of files that no built-in tool touches."""

NO_SECRETS: Final = (
    ".env.example", ".env.sample", ".env.template", ".env.dist", ".env.defaults",
    ".env.*.example", ".env.*.sample", ".env.*.template",
    "example.env", "sample.env", "template.env",
    "id_*.pub", "cacert.pem", "ca-bundle.pem", "*.pub.pem",
)  # fmt: skip
"""Of those, what is made to be shared."""


def parse_policy(text: str) -> Policy:
    """Return what *text* says.

    Raises:
        FileProblems: it is not TOML, or says what Aileron does not know; with every problem found.
    """
    content = load_toml(text, NAME)
    places = locate(text)
    reader = _PolicyReader(places)
    policy = reader.read(content, text)
    if reader.problems:
        raise FileProblems([_placed(each, places) for each in reader.problems])
    return policy


def _placed(problem: KeyProblem, places: Mapping[KeyPath, tuple[int, int]]) -> Problem:
    line, column = nearest(problem.path, places)
    return Problem(
        file=NAME, message=problem.message, line=line, column=column, key=key_text(problem.path)
    )


class _PolicyReader:
    def __init__(self, places: Mapping[KeyPath, tuple[int, int]]) -> None:
        self._places = places
        self.problems: list[KeyProblem] = []

    def read(self, content: Mapping[str, Any], text: str) -> Policy:
        self._refuse_unknown((), content, ("rule", "secrets"))
        secrets = self._table(("secrets",), content.get("secrets", {}), ("except",))
        exceptions: tuple[str, ...] = ()
        if "except" in secrets:
            exceptions = self._patterns(("secrets", "except"), secrets["except"])
        rules = self._rules(content.get("rule", []))
        return Policy(
            rules=tuple(each for each in rules if isinstance(each, Rule)),
            action_rules=tuple(each for each in rules if isinstance(each, ActionRule)),
            secret_exceptions=exceptions,
            text=text,
        )

    def _rules(self, found: object) -> tuple[Rule | ActionRule, ...]:
        if not isinstance(found, list):
            self._refuse(("rule",), "must be tables, each under a line [[rule]]")
            return ()
        entries = cast("list[object]", found)
        if len(entries) > MAX_RULES:
            self._refuse(("rule", MAX_RULES), f"is one rule too many: {MAX_RULES} are allowed")
            return ()
        rules = (self._rule(("rule", index), each) for index, each in enumerate(entries))
        return tuple(rule for rule in rules if rule is not None)

    def _rule(self, at: KeyPath, found: object) -> Rule | ActionRule | None:
        before = len(self.problems)
        is_of_actions = isinstance(found, Mapping) and "actions" in found
        table = self._table(at, cast("object", found), _ACTION_KEYS if is_of_actions else _KEYS)
        tools = () if is_of_actions else self._tools(at, table)
        decision: Decision = table.get("decision", "ask")
        if table.get("decision") not in DECISIONS:
            self._refuse((*at, "decision"), 'must be "allow", "ask" or "deny"')
        reason = table.get("reason", "")
        if not _is_line(reason) and reason != "":
            self._refuse(
                (*at, "reason"), f"must be one line of at most {MAX_CHARACTERS} characters"
            )
        line = self._places.get(at, (0, 0))[0]
        source = f"{NAME}:{line}" if line else NAME
        if is_of_actions:
            rule = self._action_rule(at, table, decision, reason, source)
            return rule if len(self.problems) == before else None
        paths = self._patterns((*at, "paths"), table["paths"]) if "paths" in table else ()
        argv = self._words((*at, "command"), table["command"]) if "command" in table else ()
        changes = self._changes((*at, "changes"), table["changes"]) if "changes" in table else None
        if len(self.problems) == before:
            self._check_whole(at, tools, decision, paths, argv, changes)
        if len(self.problems) > before:
            return None
        return Rule(
            tools=tools,
            decision=decision,
            paths=paths,
            argv=argv,
            changes=changes,
            reason=reason,
            source=source,
        )

    def _action_rule(
        self, at: KeyPath, table: Mapping[str, Any], decision: Decision, reason: str, source: str
    ) -> ActionRule:
        def names(key: str, what: str, known: tuple[str, ...] = ()) -> tuple[str, ...]:
            entries = self._entries((*at, key), table[key], what) if key in table else ()
            if known and (unknown := [each for each in entries if each not in known]):
                self._refuse(
                    (*at, key, entries.index(unknown[0])), f"must be of {', '.join(known)}"
                )
            return entries

        for key in ("contained", "grants"):
            if not isinstance(table.get(key, True), bool):
                self._refuse((*at, key), "must be true or false")
        if "grants" in table and decision != "ask":
            self._refuse((*at, "grants"), 'only goes with decision = "ask"')
        if table.get("other_args", "any") != "any" or (
            "other_args" in table and decision != "allow"
        ):
            self._refuse((*at, "other_args"), 'can only be "any", with decision = "allow"')
        return ActionRule(
            actions=names("actions", 'names of actions, such as ["get_*", "send_mail"]'),
            decision=decision,
            effects=names("effects", "effects", EFFECTS),
            agents=names("agents", "names of agents", AGENT_NAMES),
            contained=table.get("contained"),
            where=self._where((*at, "where"), table.get("where", {})),
            is_open="other_args" in table,
            grants=table.get("grants", True),
            reason=reason,
            source=source,
        )

    def _where(self, at: KeyPath, found: object) -> dict[str, FieldTest]:
        if not isinstance(found, Mapping):
            self._refuse(at, "must be a table of tests, by args.NAME and fetched.LABEL in quotes")
            return {}
        fields = cast("Mapping[str, Any]", found)
        if len(fields) > MAX_ENTRIES:
            self._refuse(at, f"must have {MAX_ENTRIES} tests at most")
        for key in fields:
            if not key.startswith((ARGUMENT, FETCHED)) or key in (ARGUMENT, FETCHED):
                self._refuse((*at, key), f'must be "{ARGUMENT}NAME" or "{FETCHED}LABEL", in quotes')
        return {key: self._test((*at, key), value) for key, value in fields.items()}

    def _test(self, at: KeyPath, found: object) -> FieldTest:
        if found in ("absent", "any"):
            return FieldTest(cast("TestName", found))
        table: Mapping[str, Any] = {}
        if isinstance(found, Mapping):
            table = cast("Mapping[str, Any]", found)
        name, value = next(iter(table.items()), ("", None))
        entries = cast("list[object]", value) if isinstance(value, list) else [value]
        if len(table) != 1 or name not in TEST_NAMES[:-2]:
            self._refuse(at, f'must be "absent", "any" or one test of {", ".join(TEST_NAMES[:-2])}')
            return FieldTest("any")
        texts = tuple(map(_shown_text, entries))
        test = FieldTest(name, texts)
        if not all(map(_is_shown, entries)) or len(texts) > MAX_ENTRIES or not is_well_formed(test):
            self._refuse((*at, name), _TAKES[name])
        return test

    def _check_whole(
        self,
        at: KeyPath,
        tools: tuple[str, ...],
        decision: str,
        paths: tuple[str, ...],
        argv: tuple[str, ...],
        changes: tuple[str, ...] | None,
    ) -> None:
        if changes is not None and (tools != (COMMAND,) or decision != "allow"):
            message = f'only goes with tools = ["{COMMAND}"] and decision = "allow"'
            self._refuse((*at, "changes"), message)
        if argv and tools != (COMMAND,):
            self._refuse((*at, "command"), f'only goes with tools = ["{COMMAND}"]')
        if COMMAND in tools and decision == "allow":
            if paths:
                self._refuse((*at, "paths"), "cannot allow a command: they do not say what it does")
            elif not argv and changes is None:
                message = 'must name the words of the command to allow, such as ["make", "check"]'
                self._refuse((*at, "command"), message)
            elif argv[:1] == (ANY_FURTHER_WORDS,):
                self._refuse((*at, "command", 0), "must be the name of a program")

    def _tools(self, at: KeyPath, table: Mapping[str, Any]) -> tuple[str, ...]:
        found = table.get("tools")
        names = cast("list[object]", found) if isinstance(found, list) else []
        if not names or not all(name in TOOLS for name in names):
            self._refuse((*at, "tools"), f"must be a list of tools, of {', '.join(TOOLS)}")
            return ()
        return tuple(dict.fromkeys(cast("list[str]", names)))

    def _patterns(self, at: KeyPath, found: object) -> tuple[str, ...]:
        patterns = self._entries(at, found, 'patterns of paths, such as ["docs/**", "*.md"]')
        for index, pattern in enumerate(patterns):
            if (
                pattern.startswith(("/", "~", "!"))
                or ".." in pattern.split("/")
                or not pattern.strip("./")
            ):
                message = "must be a path in the project, such as docs/** or *.md"
                self._refuse((*at, index), message)
        return patterns

    def _changes(self, at: KeyPath, found: object) -> tuple[str, ...]:
        return () if found == [] else self._patterns(at, found)

    def _words(self, at: KeyPath, found: object) -> tuple[str, ...]:
        words = self._entries(at, found, 'words, such as ["git", "log", "*"]')
        for index, word in enumerate(words[:-1]):
            if word == ANY_FURTHER_WORDS:
                self._refuse(
                    (*at, index), "can only be the last word, where it means any further words"
                )
        return words

    def _entries(self, at: KeyPath, found: object, what: str) -> tuple[str, ...]:
        entries = cast("list[object]", found) if isinstance(found, list) else None
        if not entries or len(entries) > MAX_ENTRIES or not all(map(_is_line, entries)):
            self._refuse(at, f"must be a list of 1 to {MAX_ENTRIES} {what}")
            return ()
        return tuple(cast("list[str]", entries))

    def _table(self, at: KeyPath, found: object, known: tuple[str, ...]) -> Mapping[str, Any]:
        if not isinstance(found, Mapping):
            self._refuse(at, f"must be a table with {', '.join(known)}")
            return {}
        table = cast("Mapping[str, Any]", found)
        self._refuse_unknown(at, table, known)
        return table

    def _refuse_unknown(
        self, at: KeyPath, table: Mapping[str, Any], known: tuple[str, ...]
    ) -> None:
        for key in table:
            if key not in known:
                self._refuse((*at, key), f"is not a key here; the keys are {', '.join(known)}")

    def _refuse(self, at: KeyPath, message: str) -> None:
        self.problems.append(KeyProblem(path=at, message=message))


_TAKES: Final = {
    "is": f"must be a text, a number, true or false, or a list of up to {MAX_ENTRIES}",
    "only": f"must be a list of up to {MAX_ENTRIES} texts or numbers",
    "within": 'must be a domain ("acme.example", "*.acme.example"), a mail address or a folder ("/notes")',
    "like": 'must be a text in which * stands for any characters, such as "Report *"',
    "at_most": "must be a number",
    "at_least": "must be a number",
    "plain": f"must be how many characters the text may have, from 1 to {MAX_PLAIN}",
}


def _is_shown(value: object) -> bool:
    return isinstance(value, bool | int | float) or (
        isinstance(value, str) and len(value) <= MAX_CHARACTERS
    )


def _shown_text(value: object) -> str:
    """Return *value* as it stands on the screen."""
    if isinstance(value, bool):
        return str(value).lower()
    return number_text(value) if isinstance(value, int | float) else str(value)


def _is_line(found: object) -> bool:
    return isinstance(found, str) and 0 < len(found) <= MAX_CHARACTERS and found.isprintable()


def unknown_fields(policy: Policy, actions: Sequence[Action]) -> dict[str, list[Problem]]:
    """Return, by the source of a rule for actions, each field that it names and none of its *actions* has.

    A rule that is about none of them is left alone.
    """
    places = locate(policy.text)
    by_source = {rule.source: rule for rule in policy.action_rules}
    found: dict[str, list[Problem]] = {}
    for index in range(MAX_RULES):
        rule = by_source.get(f"{NAME}:{places.get(('rule', index), (0, 0))[0]}")
        meant = [each for each in actions if rule is not None and is_named(rule, each.name)]
        if rule is None or not meant:
            continue
        known = {key for each in meant for key in field_keys(each)}
        if any(each.takes_any_arguments for each in meant):
            known |= {key for key in rule.where if key.startswith(ARGUMENT)}
        for key in sorted(rule.where.keys() - known):
            there = ", ".join(sorted(known)) or "nothing that a test could be of"
            at: KeyPath = ("rule", index, "where", key)
            problem = KeyProblem(path=at, message=f"is in no such action; there is {there}")
            found.setdefault(rule.source, []).append(_placed(problem, places))
    return found


def rules_in_force(policy: Policy) -> tuple[Rule, ...]:
    """Return the rules that always hold, and those of *policy*."""
    secrets = Rule(
        tools=TOOLS,
        decision="deny",
        paths=SECRET_FILES,
        except_paths=(*NO_SECRETS, *policy.secret_exceptions),
        reason="files of this name may hold secrets",
    )
    reads = Rule(tools=READING, decision="allow", reason="reads inside the project are allowed")
    return (secrets, reads, *policy.rules)
