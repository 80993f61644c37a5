"""Keeping an agent's requests to the gateway from the proxy that it uses for the rest.

The gateway is on loopback and spoken to in plain HTTP: a proxy would see the agent's key and the
gateway token, and could not reach it.
"""

from collections.abc import Mapping

_PROXIES = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")


def bypass_proxies(env: Mapping[str, str], host: str) -> dict[str, str]:
    """Return the variables that keep requests to *host* from the proxy that *env* names; none without one."""
    if not any(env.get(name) for name in _PROXIES):
        return {}
    told = env.get("no_proxy") or env.get("NO_PROXY") or ""
    listed = [each.strip() for each in told.split(",") if each.strip()]
    if host not in listed:
        listed.append(host)
    return dict.fromkeys(("no_proxy", "NO_PROXY"), ",".join(listed))
