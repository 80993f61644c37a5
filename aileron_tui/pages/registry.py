"""All commands, in the order of the help."""

from aileron_tui.input.commands import AnyCommand, CommandRegistry
from aileron_tui.pages.commands.accounts import ACCOUNTS, RULES
from aileron_tui.pages.commands.deciding import DECIDING
from aileron_tui.pages.commands.everywhere import EVERYWHERE, OVER_PAGES
from aileron_tui.pages.commands.reading import READING
from aileron_tui.pages.commands.rows import ITEM, ROWS
from aileron_tui.pages.questions import ALL

COMMANDS: tuple[AnyCommand, ...] = (
    *READING,
    *DECIDING,
    *ACCOUNTS,
    *ROWS,
    *ITEM,
    *RULES,
    *EVERYWHERE,
    *(each for question in ALL for each in question.commands),
    *OVER_PAGES,
)
DEFAULT_REGISTRY = CommandRegistry(COMMANDS)
