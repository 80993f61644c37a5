"""Reads a person's `policy.toml`: every unknown key is an error, with its line. Two rules hold without it."""

from collections.abc import Mapping
from typing import Any, Final, cast

from aileron_core.actions.positions import load_toml, locate, nearest
from aileron_core.actions.problems import KeyPath, KeyProblem, key_text
from aileron_core.errors import FileProblems, Problem
from aileron_core.policy.model import (
    ANY_FURTHER_WORDS,
    COMMAND,
    DECISIONS,
    READING,
    TOOLS,
    Decision,
    Policy,
    Rule,
)

NAME: Final = "policy.toml"
MAX_RULES: Final = 200
MAX_ENTRIES: Final = 64
"""Patterns or words of one list."""
MAX_CHARACTERS: Final = 400
"""Of one pattern, word or reason."""
_KEYS: Final = ("tools", "paths", "command", "changes", "decision", "reason")
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
        return Policy(
            rules=self._rules(content.get("rule", [])),
            secret_exceptions=exceptions,
            text=text,
        )

    def _rules(self, found: object) -> tuple[Rule, ...]:
        if not isinstance(found, list):
            self._refuse(("rule",), "must be tables, each under a line [[rule]]")
            return ()
        entries = cast("list[object]", found)
        if len(entries) > MAX_RULES:
            self._refuse(("rule", MAX_RULES), f"is one rule too many: {MAX_RULES} are allowed")
            return ()
        rules = (self._rule(("rule", index), each) for index, each in enumerate(entries))
        return tuple(rule for rule in rules if rule is not None)

    def _rule(self, at: KeyPath, found: object) -> Rule | None:
        before = len(self.problems)
        table = self._table(at, found, _KEYS)
        tools = self._tools(at, table)
        decision: Decision = table.get("decision", "ask")
        if table.get("decision") not in DECISIONS:
            self._refuse((*at, "decision"), 'must be "allow", "ask" or "deny"')
        reason = table.get("reason", "")
        if not _is_line(reason) and reason != "":
            self._refuse(
                (*at, "reason"), f"must be one line of at most {MAX_CHARACTERS} characters"
            )
        paths = self._patterns((*at, "paths"), table["paths"]) if "paths" in table else ()
        argv = self._words((*at, "command"), table["command"]) if "command" in table else ()
        changes = self._changes((*at, "changes"), table["changes"]) if "changes" in table else None
        if len(self.problems) == before:
            self._check_whole(at, tools, decision, paths, argv, changes)
        if len(self.problems) > before:
            return None
        line = self._places.get(at, (0, 0))[0]
        return Rule(
            tools=tools,
            decision=decision,
            paths=paths,
            argv=argv,
            changes=changes,
            reason=reason,
            source=f"{NAME}:{line}" if line else NAME,
        )

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


def _is_line(found: object) -> bool:
    return isinstance(found, str) and 0 < len(found) <= MAX_CHARACTERS and found.isprintable()


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
