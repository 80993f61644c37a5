"""Whose signature a file of a home has, and whether that is the publisher's accepted key. Pure.

A key is accepted with the first file that it signed of a publisher, or by itself where another one was accepted
before. From then on nothing of that publisher is accepted that another key signed, and no connector that none did.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from aileron_core.actions.catalog import CatalogEntry
from aileron_core.connectors.servers.table import PREFIX
from aileron_core.connectors.store import InstalledConnector
from aileron_core.console_port.view_models import NotAcceptedView, PublisherView

if TYPE_CHECKING:
    from aileron_core.releases.kept import OfferedKey, SignedRelease

KIND: Final = "publisher"
"""The kind of such an acceptance: its name is the publisher's, its digest the key's fingerprint."""
_ALIKE: Final = 0.8
"""How like two owners' names are, from 0 to 1, of which one may be meant to be taken for the other."""
_DRAWN_ALIKE: Final = str.maketrans("01", "ol")
_UNPUBLISHED: Final = ("local://", PREFIX)


@dataclass(frozen=True, slots=True)
class Publishers:
    """What signatures prove of the files of a home, and the keys that are offered in place of accepted ones."""

    releases: "Mapping[str, SignedRelease]"
    """By the hash of a connector that each is of."""
    offers: "tuple[OfferedKey, ...]" = ()

    def of_connector(
        self, connector: InstalledConnector, keys: Mapping[str, str]
    ) -> PublisherView | None:
        """Return whose the connector is; *keys*: as of `publisher_view`."""
        key = self.signed_with(connector)
        return publisher_view(publisher_name(connector.identity.fqn), key, keys)

    def signed_with(self, connector: InstalledConnector) -> str:
        """Return the fingerprint of the key that signed it; empty where none did."""
        release = self.releases.get(connector.identity.hash)
        return release.key.fingerprint if release is not None else ""

    def of_action(self, entry: CatalogEntry, keys: Mapping[str, str]) -> PublisherView | None:
        """Return whose the action file is, as the release of one of its connectors proves it.

        A connector that the file calls by another name than its own proves nothing.
        """
        action = entry.action
        assert action is not None
        for each in action.requires:
            release = self.releases.get(each.hash)
            data = entry.scanned.data
            if release is None or release.fqn != each.fqn:
                continue
            if release.has_action(entry.file, entry.sha256, data):
                return publisher_view(publisher_name(release.fqn), release.key.fingerprint, keys)
        return publisher_view(publisher_name(action.source.rpartition("@")[0]), "", keys)


def publisher_name(fqn: str) -> str:
    """Return whose the connector *fqn* is: `github://OWNER/REPO`."""
    return "/".join(fqn.split("/")[:4])


def publisher_view(name: str, key: str, keys: Mapping[str, str]) -> PublisherView | None:
    """Return what is known of the publisher *name* of a file.

    None where nobody published it: its name is one that a person gives it on this machine.

    Args:
        key: the fingerprint of the key that signed it; empty where none did.
        keys: those that are accepted, by publisher.
    """
    own = keys.get(name, "")
    if not key and not own and name.startswith(_UNPUBLISHED):
        return None
    owner = name.rpartition("/")[0]
    others = sorted(each for each in keys if each != name and each.rpartition("/")[0] == owner)
    known_as = tuple(each for each in others if keys[each] == key)
    is_another = bool(key and others and not own and not known_as)
    return PublisherView(
        name=name,
        key=key,
        accepted=own,
        known_as=known_as,
        resembles="" if own else resembled(name, frozenset(keys)),
        other_key_of=others[0] if is_another else "",
    )


@lru_cache(256)
def resembled(name: str, accepted: frozenset[str]) -> str:
    """Return the accepted publisher of another owner whose name the owner of *name* may be taken for."""

    def drawn(each: str) -> str:
        owner = each.partition("://")[2].partition("/")[0]
        return owner.lower().translate(_DRAWN_ALIKE).replace("rn", "m")

    owner = name.rpartition("/")[0]
    others = {drawn(each): each for each in accepted if each.rpartition("/")[0] != owner}
    close = get_close_matches(drawn(name), [*others], n=1, cutoff=_ALIKE)
    return others[close[0]] if close else ""


def offered_keys(publishers: Publishers, keys: Mapping[str, str]) -> Iterator[NotAcceptedView]:
    """Yield the keys that are offered in place of accepted ones."""
    for each in publishers.offers:
        accepted, digest = keys.get(each.name), each.key.fingerprint
        if accepted is None or accepted == digest:
            continue
        view = PublisherView(
            name=each.name,
            key=digest,
            accepted=accepted,
            is_vouched_for=each.vouched_by == accepted,
        )
        yield NotAcceptedView(
            kind="publisher",
            name=each.name,
            file=each.file,
            digest=digest,
            change="changed",
            publisher=view,
        )
