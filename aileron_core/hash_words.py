"""The lists of words that stand for the bits of any hash, so that a person can compare two at a glance.

Each is frozen: 2,048 words of four to seven letters whose first four letters are unique.
Changing one would change what old records say.
"""

from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Final

WORDS_LIST: Final = 2
"""The list that new words are taken from. Records that name none have words of list 1."""

_NEUTRAL: Final = """
abandon:abacus accuse:acorn admit:agate agree:alder alarm:aloe alert:alpaca allow:anise
attack:anvil attract:apron avoid:aster awful:azalea believe:bagel best:banjo betray:barley
better:bayou blame:beaker blind:beaver block:begonia broken:birch cancel:biscuit caution:bison
certain:bonfire change:bobcat check:bramble clean:bugle close:cadence confirm:caramel
correct:cedar crack:cello crash:chisel crazy:cider damage:citrus danger:clover decide:cobalt
decline:cougar defense:crocus delay:cypress demise:dahlia denial:daisy destroy:dinghy
disease:donut dismiss:doodle dumb:drizzle erase:easel error:ebony exact:eclair exclude:egret
expire:ember faith:ermine false:estuary fault:falcon fine:fawn forget:fennel genuine:fern
good:fiddle great:finch hazard:fjord hidden:flannel hurt:flax ignore:flint illegal:flora
illness:flute inject:freckle insane:fuchsia intact:gander legal:garnet liar:gecko lock:geyser
loyal:gondola misery:gopher mistake:gourd modify:guava naive:haddock neglect:halibut
normal:hazel nothing:hedge obey:hickory okay:hippo omit:hopper open:hummus pass:ibex
perfect:igloo permit:iguana problem:indigo proof:inkwell protect:iris purity:jasmine
ready:javelin real:jigsaw refuse:kayak regret:kelp reject:kennel remove:kernel repair:kestrel
replace:kettle rescue:kilt risk:kimono robust:koala safe:lagoon secret:larch sorry:lattice
spoil:lentil stable:lichen success:lilac suffer:linden sure:llama suspect:locust trap:lotus
trash:lute trick:lynx trouble:macaw true:magenta truly:magpie trust:mallard truth:marmot
unable:meerkat unaware:meteor undo:midge unfair:minnow unknown:mitten unlock:mocha
unusual:mohair uphold:mosaic useless:mussel usual:newt valid:nickel verify:nutmeg viable:oasis
vicious:oatmeal victory:octave void:okra wait:opal warfare:oregano waste:oriole weird:osprey
welcome:otter wisdom:pansy worry:parsley wrong:pecan
"""
"""What in list 2 replaces words of list 1 that read as a verdict on what they stand for."""


@cache
def _words(version: int) -> tuple[str, ...]:
    text = resources.files("aileron_core").joinpath("words.txt").read_text(encoding="ascii")
    pairs = (pair.partition(":") for pair in (_NEUTRAL.split() if version > 1 else ()))
    neutral = {old: new for old, _, new in pairs}
    return tuple(neutral.get(word, word) for word in text.split())


def _spoken(digest: bytes, count: int, version: int = WORDS_LIST) -> tuple[str, ...]:
    bits = int.from_bytes(digest[:8], "big")
    return tuple(_words(version)[(bits >> (64 - 11 * (i + 1))) & 2047] for i in range(count))


def three_words(digest: bytes) -> tuple[str, str, str]:
    """Return the words for the first 33 bits of *digest* (at least 8 bytes), 11 bits each."""
    first, second, third = _spoken(digest, 3)
    return first, second, third


def words_list(digest: str, words: Sequence[str]) -> int:
    """Return the list that *words* of *digest* (hex) are from, the newest where several have them."""
    try:
        return WORDS_LIST if _spoken(bytes.fromhex(digest), len(words)) == tuple(words) else 1
    except ValueError:  # another program edited the row
        return 1


def two_words(digest: bytes) -> tuple[str, str]:
    """Return the words for the first 22 bits of *digest*, as the footer shows the audit's head."""
    first, second = _spoken(digest, 2)
    return first, second
