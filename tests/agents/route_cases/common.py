"""What cases of several agents share."""

from typing import Any

from tests.agents.llm import CallTool, Conversation, Say, Script
from tests.agents.routed import LLM

AWS_ACCOUNT = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"}
"""An AWS account, which only config.toml can give to an agent in the sandbox."""
BEDROCK = {
    "AWS_BEARER_TOKEN_BEDROCK": "authorization: Bearer aws-1",
    "AWS_REGION": "https://bedrock-runtime.eu-west-1.amazonaws.com/",
}
AWS = {"AWS_BEARER_TOKEN_BEDROCK": "aws-1", "AWS_REGION": "eu-west-1"}
DEFAULT_REGION = {"AWS_DEFAULT_REGION": "https://bedrock-runtime.eu-west-2.amazonaws.com/"}
IN_DEFAULT_REGION = {"AWS_BEARER_TOKEN_BEDROCK": "aws-1", "AWS_DEFAULT_REGION": "eu-west-2"}
ENDPOINT = {"AWS_ENDPOINT_URL*": f"POST {LLM}/aws/model/"}
AT_ENDPOINT = {**AWS, "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": f"{LLM}/aws"}

FIPS = {"AWS_USE_*_ENDPOINT": "https://bedrock-runtime-fips.us-east-1.amazonaws.com/"}
FIPS_STS = {"AWS_USE_*_ENDPOINT": "POST https://sts-fips.us-east-1.amazonaws.com/"}
AT_FIPS_STS = {"AWS_REGION": "us-east-1", "AWS_USE_FIPS_ENDPOINT": "true"}
FIPS_ROLE = {
    "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/mine",
    "AWS_WEB_IDENTITY_TOKEN_FILE": "login.json",
}
"""A role that AWS gives for a token: the address of that service is what the variable changes."""
AT_FIPS = {**AWS, "AWS_REGION": "us-east-1", "AWS_USE_FIPS_ENDPOINT": "true"}


def value(name: str) -> str:
    """Return a value for the variable *name* that nothing else has."""
    return f"value-of-{name}"


def calls(tool: str, **args: Any) -> Script:
    """Return a script that calls *tool* once, then says that all is done."""

    def script(conversation: Conversation) -> Say | CallTool:
        if conversation.tool(tool) is None or conversation.results:
            return Say(text="FINAL")
        return CallTool(name=tool, args=args)

    return script
