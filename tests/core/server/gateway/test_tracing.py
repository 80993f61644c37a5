"""A model request is a span, of the agent's trace if it names one, with its status and nothing of its contents."""

from tests.core.server.gateway.harness import passing
from tests.support.traced import TRACEPARENT, Traced, is_child_of_the_agent


async def test_a_model_request_is_traced_without_its_path_or_contents() -> None:
    """The header goes up as it came: whoever reads it there is no concern of ours."""
    traced = Traced()
    async with passing(tracer=traced.tracer) as gateway:
        client = await gateway.client()
        header = f"traceparent: {TRACEPARENT}".encode()
        await client.ask(
            b"POST", b"/v1/canary?q=canary", header, b"X-Canary: canary", body=b"canary"
        )
        assert header in gateway.upstream.seen[0].lines
        session = gateway.session.session.session_id
    span = traced.named("aileron.gateway_request")
    assert is_child_of_the_agent(span)
    assert span.attributes == {"aileron.session": session, "http.response.status_code": 200}
    assert "canary" not in traced.text
