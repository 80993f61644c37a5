"""Our tools beside an agent's: whose name is whose."""

from hypothesis import given
from hypothesis import strategies as st

from aileron_core.actions.model import Action
from aileron_core.models.neutral import Tool
from aileron_core.server.augment.catalogue import Catalogue


def test_what_settings_leave_out_is_no_tool() -> None:
    """The two tools that are no actions are always there: one of them is needed for what waits."""
    actions = [
        Action(name=name, version="1", source="", requires=(), intent="", body=f"Run {name}.")
        for name in ("send-draft", "b")
    ]
    catalogue = Catalogue.of(actions, lambda action, _: action == "send-draft")
    names = [tool.name for tool in catalogue.tools]
    assert names == ["send_draft", "check_action_status", "withdraw_action"]
    assert catalogue.actions == {"send_draft": "send-draft"}
    assert catalogue.tools[0].description == "Run send-draft."


def catalogue_of(*given: str) -> Catalogue:
    return Catalogue(tools=tuple(Tool(name=name, description="", schema={}) for name in given))


def test_ours_is_named_anew_where_the_agent_has_the_name() -> None:
    """The agent's stays, unless it begins with our prefix."""
    offer = catalogue_of("read", "send").offer(["read", "aileron_read", "own"])
    assert offer.names == {"aileron_read": "read", "send": "send"}
    assert offer.renamed == {"aileron_read": "agent_aileron_read"}
    assert offer.shown("agent_aileron_read") == "aileron_read"
    assert offer.shown("aileron_read") is None
    assert offer.shown("read") == "read"
    # Thousands are told apart in one pass.
    agent = [f"aileron_{number}" for number in range(50_000)]
    assert len(catalogue_of("a").offer(agent).renamed) == 50_000


NAMES = st.lists(
    st.sampled_from(
        ["a", "b", "aileron_a", "aileron_aileron_a", "agent_aileron_a", "agent_agent_aileron_a"]
    ),
    unique=True,
)


@given(agent=NAMES, ours=NAMES)
def test_no_two_tools_ever_have_one_name(agent: list[str], ours: list[str]) -> None:
    offer = catalogue_of(*ours).offer(agent)
    there = [offer.renamed.get(name, name) for name in agent]
    assert len({*there, *offer.names}) == len(agent) + len(ours)
    assert [offer.shown(name) for name in there] == agent
    assert [offer.names[tool.name] for tool in offer.tools] == ours
