"""The list of files that hold secrets, for docs/rules.md."""

from collections.abc import Iterable

from commands import BEGIN, END

from aileron_core.policy.policy_file import NO_SECRETS, SECRET_FILES


def with_secret_files(page: str) -> str:
    """Return *page* with the patterns between its two marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    text = (
        f"Denied to every tool, wherever they are in the project: {_listed(SECRET_FILES)}.\n\n"
        f"Not of these, because they are made to be shared: {_listed(NO_SECRETS)}."
    )
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


def _listed(patterns: Iterable[str]) -> str:
    return ", ".join(f"`{pattern}`" for pattern in patterns)
