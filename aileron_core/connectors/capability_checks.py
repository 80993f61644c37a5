"""Checking a guest's HTTP request before anything is sent: its host, its credential, in a preview its method.

One of three independent checks: the action's subset of ops (the executor), the manifest (here), and
the sandbox (the outgoing client, which checks host and address again on every hop).
"""

from collections.abc import Collection, Mapping

from aileron_core.connectors.http.target import RequestTarget
from aileron_core.connectors.manifest import Manifest
from aileron_core.connectors.posted_reads import classify_read, is_method_override
from aileron_core.connectors.protocol import Credential
from aileron_core.connectors.read_names import OFFER_KEY
from aileron_core.errors import BindingRequired, CapabilityDenied

READ_METHODS = frozenset({"GET", "HEAD"})
"""The methods with which a connector only reads (RFC 9110, 9.2.1)."""


def check_target(manifest: Manifest, target: RequestTarget, hosts: Collection[str]) -> None:
    """Check that *target* is among the *hosts* of this call, as `Manifest.hosts_for` gave them.

    Raises:
        CapabilityDenied: it is not (boundary `sandbox`).
    """
    if target.host_port in hosts:
        return
    if target.host_port in manifest.hosts:
        raise CapabilityDenied(
            f"the connector tried to reach {target.host_port}, but this call's argument `region` "
            f"allows only {', '.join(hosts)}",
            details={
                "requested": f"network:{target.host_port}",
                "granted": [f"network:{entry}" for entry in hosts],
            },
        )
    raise CapabilityDenied(
        f"the connector's manifest does not list {target.host_port}; it may reach "
        f"{', '.join(manifest.hosts) or 'no host'}",
        details={
            "requested": f"network:{target.host_port}",
            "granted": [f"network:{entry}" for entry in manifest.hosts],
        },
    )


def check_method(
    method: str,
    headers: Mapping[str, str],
    body: bytes | None,
    target: RequestTarget,
    *,
    op: str,
    accepted_reads: Collection[str] | None,
) -> None:
    """Check that a request of a preview only reads.

    Args:
        method: of the request, as the headers, body and target after it.
        headers: those that the connector set.
        body: None where it has none.
        target: where it is sent.
        op: the op that sends it.
        accepted_reads: what a person accepted as reads by POST; None outside a preview.

    Raises:
        CapabilityDenied: it is a preview, and the request may change something. If a person could
            accept it, `details` names it under `OFFER_KEY`.
    """
    if accepted_reads is None:
        return
    if method in READ_METHODS:
        if any(map(is_method_override, headers)):
            raise _only_reads(f"{method} with a header that may override the method", target)
        return
    if method != "POST":
        raise _only_reads(method[:16], target)
    read = classify_read(headers, body or b"", target, op=op, accepted=accepted_reads)
    if read not in accepted_reads:
        raise _only_reads(f"POST ({read})", target, {OFFER_KEY: read})


def _only_reads(
    tried: str, target: RequestTarget, more: Mapping[str, str] | None = None
) -> CapabilityDenied:
    return CapabilityDenied(
        f"a preview may only read, but the connector tried {tried} on {target.host_port}",
        details={
            "requested": f"network:{target.host_port}",
            "method": tried.partition(" ")[0],
            **(more or {}),
        },
    )


def without_credential_headers(manifest: Manifest, headers: Mapping[str, str]) -> dict[str, str]:
    """Return a guest's *headers* without those that its manifest's kind of credential is sent in.

    With one of its own it could have a service file a person's data under an account of its publisher's.
    """
    need = manifest.credential
    if need is None:
        return dict(headers)
    own = {"authorization" if need.kind != "api_key" else need.header.lower()}
    if need.kind == "aws_sigv4":
        own |= {"x-amz-date", "x-amz-content-sha256", "x-amz-security-token"}
    return {name: value for name, value in headers.items() if name.lower() not in own}


def check_credential(
    manifest: Manifest,
    target: RequestTarget,
    wanted: str | None,
    bound: Credential | None,
    *,
    routed: bool,
) -> Credential | None:
    """Return the credential that a request is to carry: *bound* if it asks for that, or None.

    A routed host gets and needs no credential: the request is sent without. A kind that the
    manifest does not declare is refused there too, so that a trial run shows the mistake.

    Args:
        wanted: the kind that the connector named in the request; None where it wants none.
        bound: the credential of this call.

    Raises:
        CapabilityDenied: the manifest declares another kind or none, or the request is plain HTTP.
        BindingRequired: it declares that kind, and none is bound for this host.
    """
    if wanted is None:
        return None
    name, kind = manifest.name, manifest.credential_kind
    if wanted != kind:
        raise CapabilityDenied(
            f"the connector asked for a credential of kind {wanted[:64]!r}; its manifest "
            f"declares {kind or 'none'}",
            details={"boundary_detail": "connector_manifest", "connector": name},
            boundary="connector_manifest",
        )
    if routed:
        return None
    if bound is None or bound.kind != kind or target.host_port not in bound.hosts:
        raise BindingRequired(
            f"{name} needs a credential ({kind}) for {target.host_port}, and no account is bound "
            f"for it. Run aileron binding setup {name}.",
            details={"boundary_detail": "action", "connector": name, "capability_kind": kind},
        )
    if target.scheme != "https":
        raise CapabilityDenied(
            f"the connector asked for a credential in plain HTTP to {target.host_port}; "
            "credentials are sent over https only",
            details={"requested": f"network:{target.host_port}"},
        )
    return bound
