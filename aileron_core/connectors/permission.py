"""What a request of a guest is held against before anything of it leaves: the connector's manifest.

One of three checks, each of which holds alone: the action's subset of ops (the executor), the
manifest (here), and the sandbox (the outgoing client: every hop's host and address again).
"""

from collections.abc import Collection

from aileron_core.connectors.manifest import Manifest
from aileron_core.connectors.target import Target
from aileron_core.errors import BindingRequired, CapabilityDenied

__all__ = ["READING", "check_credential", "check_method", "check_target"]

READING = frozenset({"GET", "HEAD"})
"""The methods with which a connector only reads (RFC 9110, 9.2.1)."""


def check_target(manifest: Manifest, target: Target, hosts: Collection[str]) -> None:
    """Check that the place is among the *hosts* of this call: all of the manifest's, or one region's.

    Raises:
        CapabilityDenied: it is not (boundary `sandbox`, FACTS C.3).
    """
    if target.host_port in hosts:
        return
    if target.host_port in manifest.hosts:
        raise CapabilityDenied(
            f"this call's argument `region` leaves {', '.join(hosts)}, and the connector tried "
            f"{target.host_port}",
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


def check_method(method: str, target: Target, *, read_only: bool) -> None:
    """Check that a preview reads and does nothing else.

    Raises:
        CapabilityDenied: it is a preview, and the method may change something.
    """
    if read_only and method not in READING:
        raise CapabilityDenied(
            f"a preview only reads: the connector tried {method[:16]} on {target.host_port}",
            details={"requested": f"network:{target.host_port}", "method": method[:16]},
        )


def check_credential(
    manifest: Manifest, target: Target, credential: str | None, *, routed: bool
) -> None:
    """Check that a request asks for no credential, or for one that can be given to it.

    A routed host gets none and needs none: that request goes out without (DESIGN 3). What the
    manifest does not declare is not asked for there either, so that a trial tells.

    Raises:
        CapabilityDenied: the manifest declares another kind, or none.
        BindingRequired: it declares that kind and none is bound.
    """
    if credential is None:
        return
    name, kind = manifest.name, manifest.credential_kind
    if credential != kind:
        raise CapabilityDenied(
            f"the connector asked for a credential of kind {credential[:64]!r}; its manifest "
            f"declares {kind or 'none'}",
            details={"boundary_detail": "connector_manifest", "connector": name},
            boundary="connector_manifest",
        )
    if routed:
        return
    raise BindingRequired(
        f"{name} needs a credential ({kind}) for {target.host_port} and none is bound; this "
        "version cannot bind one yet, it can only reach hosts given with --route",
        details={"boundary_detail": "action", "connector": name, "capability_kind": kind},
    )
