"""What an agent's module is asked at a launch, and what it answers."""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from aileron_core.launch.agents import AGENTS
from aileron_core.launch.plan import Plan, PlanContext

Texts = Mapping[str, str] | None


def context(
    env: Texts = None, settings: Texts = None, args: tuple[str, ...] = (), **more: Any
) -> PlanContext:
    return PlanContext(
        relay="/r/aileron-mcp",
        launch_dir=PurePosixPath("/p"),
        env=env or {},
        project=PurePosixPath("/work"),
        settings=settings or {},
        args=args,
        **more,
    )


def plan_of(agent: str, **given: Any) -> Plan:
    return AGENTS[agent].plan(context(**given))
