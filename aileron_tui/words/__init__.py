"""The sentences of the console, by where they appear; commands and questions have their own. Second person, present tense; digits for counts.

Functions take text that was rendered before (`aileron_core.text.escape`) where it comes from
outside, and return plain strings; the caller chooses the role.
"""

from aileron_tui.words import bars as bars
from aileron_tui.words import devices as devices
from aileron_tui.words import files as files
from aileron_tui.words import item as item
from aileron_tui.words import plain as plain
from aileron_tui.words import rules as rules
from aileron_tui.words import status as status
from aileron_tui.words import terminal as terminal
from aileron_tui.words import vault as vault
from aileron_tui.words import views as views
