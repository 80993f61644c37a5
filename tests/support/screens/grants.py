"""What the core offers to grant beside a waiting mail or event, and what it says of a shape."""

from dataclasses import replace

from aileron_core.console_port import standing
from aileron_core.console_port.events import OffersRead, ShapeTried
from aileron_core.console_port.field_views import FieldView, PreviewView
from aileron_core.console_port.view_models import ApprovalView
from tests.support.screens.calls import NOW
from tests.support.screens.states import short

ANY, ABSENT = standing.FieldTest("any"), standing.FieldTest("absent")
INPUTS = (
    ("title", "Lunch"), ("start", "2026-05-19 12:00"), ("attendees", "sarah@acme.example"),
    ("location", ""), ("description", "Catch up over lunch."), ("recurrence", ""),
)  # fmt: skip


def lunch(**changes: object) -> ApprovalView:
    """An event that is to be created: its calendar is fetched, the rest is the agent's word."""
    fetched = (
        FieldView(label="Calendar", value="Team"),
        FieldView(label="New to you", value="nobody"),
    )
    view = short(
        action="create-event", title="Create an event", effect="CREATE",
        preview=PreviewView(status="ready", fields=fetched, gist="Lunch → sarah@acme.example", updated_at=NOW - 4),
        arguments=tuple(FieldView(label=name, value=value) for name, value in INPUTS if value),
    )  # fmt: skip
    return replace(view, **changes)


def offers(
    view: ApprovalView,
    *numbers: int,
    inputs: tuple[tuple[str, str], ...] = INPUTS,
    **changes: object,
) -> standing.OffersView:
    """Return the offers for *view*, of the shapes *numbers*: first what stays, then what varies."""
    fields = [
        standing.OfferedField(
            key=f"fetched.{each.label}", field=each, tests=(standing.FieldTest("is", (each.value,)), ANY), is_reach=True
        )
        for each in view.preview.fields
    ]  # fmt: skip
    for name, value in inputs:
        field = FieldView(label=name, value=value, missing=not value)
        own = standing.FieldTest("is", (value,)) if value else ABSENT
        tests = (own, standing.FieldTest("plain", ("200",)), ANY)
        fields.append(standing.OfferedField(key=f"args.{name}", field=field, tests=tests))
    shapes = {
        number: tuple(
            each.tests[0] if number == 1 or each.is_reach else each.tests[-1] for each in fields
        )
        for number in numbers or (1, 2, 3)
    }
    made = standing.OffersView(
        approval_id=view.approval_id, fields=tuple(fields), can_span_sessions=True,
        offers=tuple(standing.GrantOffer(number=number, tests=tests) for number, tests in shapes.items()),  # pyright: ignore[reportArgumentType]
    )  # fmt: skip
    return replace(made, **changes)


def offers_read(view: ApprovalView, *numbers: int, **changes: object) -> OffersRead:
    return OffersRead(offers=offers(view, *numbers, **changes))  # pyright: ignore[reportArgumentType]


def put_to(
    offered: standing.OffersView, number: int, **changed: standing.FieldTest
) -> tuple[tuple[str, standing.FieldTest], ...]:
    """Return the tests of the shape *number* by field, those of the inputs *changed* in place of its own."""
    shape = next(each for each in offered.offers if each.number == number)
    pairs = zip((each.key for each in offered.fields), shape.tests, strict=True)
    return tuple((key, changed.get(key.partition(".")[2], test)) for key, test in pairs)


def tried(
    view: ApprovalView, tests: tuple[tuple[str, standing.FieldTest], ...], **said: object
) -> ShapeTried:
    answer: dict[str, object] = {"misfits": (), "cautions": (), "looked_at": 500}
    return ShapeTried(
        approval_id=view.approval_id, tests=tests, tried=standing.TriedShape(**(answer | said))  # pyright: ignore[reportArgumentType]
    )  # fmt: skip


def past(number: int, *, denied: str = "") -> standing.PastCall:
    return standing.PastCall(
        run_id=f"run_{number}", at=NOW - 86_400 * number, approved=not denied,
        what=f"“Lunch” → jo{number}@acme.example", reason=denied,
    )  # fmt: skip
