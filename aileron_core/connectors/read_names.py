"""The words in which a person accepts what previews may read by POST (`posted_reads`)."""

GRAPHQL_PREFIX = "GraphQL queries at "
"""Before the host and path to which a person accepts that single GraphQL queries are sent."""
AWS_PREFIX = "AWS "
"""Before the exact `X-Amz-Target` that a person accepts."""
UNCHECKED_PREFIX = "unchecked requests of "
"""Before the op whose requests to one host and path a person accepts unchecked."""
OFFER_KEY = "preview_read"
"""The key, in the details of a refusal, of what a person could accept."""


def acceptance_name(ref: str, read: str) -> str:
    """Return the name of the acceptance record that lets the connector *ref* (`fqn@version`) do *read*."""
    return f"{ref} {read}"


def unchecked_op(read: str) -> str:
    """Return the op whose requests *read* lets leave unchecked; empty where they are checked."""
    after = read.removeprefix(UNCHECKED_PREFIX)
    return "" if after == read else after.partition(" ")[0]
