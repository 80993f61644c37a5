"""The one renderer of hostile text from agents, services and files: nothing in it stays hidden.

Lists, details, notifications, the log and the command line draw foreign text only through this
package. It never drops and never shortens: a character that would move the cursor, reorder, hide or
imitate becomes a mark such as `‹ESC›`, a run of one a mark with its count, and `‹` in the data is a
mark itself, so that no data can imitate a mark. Time is linear in the length of the text.
"""

from aileron_core.text.lookalikes import Lookalike
from aileron_core.text.rendering import Rendered, Span, SpanKind, escape, inline, render

__all__ = ["Lookalike", "Rendered", "Span", "SpanKind", "escape", "inline", "render"]
