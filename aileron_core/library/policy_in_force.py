"""The rules that hold now: those that always do, and those of `policy.toml` as far as it is accepted."""

from pathlib import Path
from typing import Final

from aileron_core.errors import FileProblems, Problem
from aileron_core.library.accepted_settings import AcceptedSettings
from aileron_core.policy.model import Policy, Rule
from aileron_core.policy.policy_file import NAME, parse_policy, rules_in_force

_MAX_BYTES: Final = 256 * 1024


class PolicyInForce:
    """What the built-in tools' calls are judged by.

    Before `policy.toml` is accepted, what it denies and asks counts, and what was accepted before it denies and
    asks counts too; nothing that either allows does.
    """

    def __init__(self, accepted: AcceptedSettings, policy: Policy) -> None:
        self._accepted = accepted
        self._policy = policy

    def rules(self) -> tuple[Rule, ...]:
        if self._accepted.count:
            return rules_in_force(self._policy)
        try:
            before = parse_policy(self._accepted.accepted_before)
        except FileProblems:  # an earlier version of Aileron could read it
            before = Policy()
        kept = (*self._policy.restrictions().rules, *before.restrictions().rules)
        return rules_in_force(Policy(rules=kept))


def load_policy(path: Path) -> Policy:
    """Return what *path* says; a policy without rules if there is no such file.

    Raises:
        FileProblems: it cannot be read, is not TOML, or says what Aileron does not know.
    """
    try:
        with path.open("rb") as opened:
            data = opened.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise ValueError(f"it is larger than {_MAX_BYTES} bytes")
        text = data.decode("utf-8")
    except FileNotFoundError:
        return Policy()
    except (OSError, ValueError) as error:
        problem = Problem(file=NAME, message=f"cannot be read: {error}", class_="parse_error")
        raise FileProblems([problem]) from error
    return parse_policy(text)
