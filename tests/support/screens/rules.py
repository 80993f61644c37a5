"""Grants and rules that view 7 is looked at and tested with."""

from dataclasses import replace

from aileron_core.console_port.standing import FieldTest, GrantView, RuleView
from tests.support.screens.calls import NOW

LUNCH = GrantView(
    grant_id="g3", decision="allow", action="create_event", number=3, scope="session",
    session_id="ses-1", made_at=NOW - 1140, ends_at=NOW + 2460, uses=20, used=4, last_used=NOW - 60,
    calls=("run-1", "run-2"),
    tests=(
        ("fetched.Calendar", FieldTest("is", ("Team",))),
        ("args.title", FieldTest("any")),
        ("args.description", FieldTest("plain", ("2000",))),
        ("args.recurrence", FieldTest("absent")),
    ),
)  # fmt: skip
POST = replace(
    LUNCH, grant_id="g2", action="post_message", number=1, uses=5, used=1, calls=(),
    rests="outcome unknown", ends_at=NOW + 720,
)  # fmt: skip
NO_SAM = replace(
    LUNCH, grant_id="d1", decision="deny", action="send_mail", number=0, used=2, uses=100,
    tests=(("fetched.To", FieldTest("is", ("sam@helio.example",))), ("args.id", FieldTest("any"))),
)  # fmt: skip
READS = RuleView(source="policy.toml:4", decision="allow", actions=("get_*", "list_*"), used=212)
STRIPE = RuleView(
    source="policy.toml:9", decision="ask", actions=("stripe.*",), grants=False, used=1
)
OPEN = RuleView(
    source="policy.toml:14", decision="allow", actions=("add_label",), is_open=True, counts=False,
    limits=("effect change", "agent codex"), tests=(("args.id", FieldTest("like", ("r-*",))),),
)  # fmt: skip
