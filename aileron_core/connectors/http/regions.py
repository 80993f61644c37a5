"""Which hosts are left to a call that names its region: AWS serves each region under its own."""

import re

from aileron_core.canonical import JsonObject
from aileron_core.connectors.manifest import Manifest

_ARGUMENT = "region"
_OF_AWS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")
_REGION = re.compile(
    r"[a-z]{2}(-gov|-iso[a-z]?)?-(north|south|east|west|central|(north|south)(east|west))-[0-9]{1,2}"
)


def hosts_for(manifest: Manifest, args: JsonObject) -> tuple[str, ...]:
    """Return those of the manifest's hosts that a call with *args* can reach.

    A connector that signs for AWS and whose argument `region` is the region of one of its hosts is
    held to the hosts of that region, and to those of no region. Every other call has them all.
    """
    region = args.get(_ARGUMENT)
    if manifest.credential_kind != "aws_sigv4" or not isinstance(region, str):
        return manifest.hosts
    regions = {entry: _region_of(entry) for entry in manifest.hosts}
    if region not in regions.values():
        return manifest.hosts
    return tuple(entry for entry, its in regions.items() if its in (None, region))


def _region_of(entry: str) -> str | None:
    """Return the region in the name of a `host:port`; None for a host of no region, or not of AWS."""
    host = entry.rpartition(":")[0]
    if not host.endswith(_OF_AWS):
        return None
    labels = reversed(host.split("."))
    return next((label for label in labels if _REGION.fullmatch(label)), None)
