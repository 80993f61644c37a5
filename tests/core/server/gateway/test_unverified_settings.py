"""With a vault, model traffic goes to no address of a `config.toml` that has not verified."""

import json

from aileron_core.settings import GatewaySettings
from tests.core.server.gateway.harness import passing
from tests.core.server.gateway.test_dialling import Names, dialling


async def test_traffic_that_unverified_settings_redirect_is_refused() -> None:
    """In the provider's shape; it passes once the settings count."""
    async with passing() as gateway:
        gateway.app.accepted_settings.count = False
        head, body = await (await gateway.client()).ask(b"GET", b"/v1/models")
        assert head.startswith(b"HTTP/1.1 503 ")
        assert "config.toml" in json.loads(body)["error"]["message"]
        assert gateway.upstream.seen == []
        gateway.app.accepted_settings.count = True
        assert (await (await gateway.client()).ask(b"GET", b"/v1/models"))[1] == b"ok"


async def test_traffic_that_no_settings_redirect_passes_all_the_same() -> None:
    """Its own provider is where it goes without a config.toml as well."""
    names = Names("127.0.0.1")
    async with passing(settings=GatewaySettings(), dialer=dialling(names)) as gateway:
        gateway.app.accepted_settings.count = False
        head, _ = await (await gateway.client()).ask(b"GET", b"/v1/models")
        assert head.startswith(b"HTTP/1.1 403 ")  # an address of this machine, and not the settings
        assert names.asked == ["api.openai.com"]
