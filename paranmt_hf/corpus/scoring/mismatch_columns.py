"""The columns `number_mismatch`, `negation_mismatch`, `name_mismatch` and `address_mismatch`.

Each counts the claims of one sentence of a pair that the other does not confirm, both ways (`items.py`), by the normal
forms of the sentences (`text/normal_form.py`). `numbers.py`, `names.py` and `addresses.py` find the claims, and
negations are found here. A chunk between blanks and a run of chunks are read once.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.scoring import addresses, names, number_words, numbers
from paranmt_hf.corpus.scoring.items import Claims, Lists, Memory, Statement, count_unconfirmed
from paranmt_hf.text.normal_form import normal_form

MISMATCHES = ("number_mismatch", "negation_mismatch", "name_mismatch", "address_mismatch")
DEFINITION = 3  # To be raised when a definition changes, so that older columns of a corpus are computed again


# Negations are claims, as is every `n't`; the other sentence confirms them by a negation of any kind, also a weaker
# one: `hardly`, `unable`, `lack`, `refuse`, a word with `un-` or `-less`. `not only`, `no. 5`, `no doubt` and the like
# are not negations, nor is `or not`, nor are two negations of one word: `not bad`, `not so uncommon`, `not without`.
NEGATIONS = frozenset(
    "not no never nobody nothing none nor neither nowhere cannot without cant dont doesnt didnt isnt arent wasnt "
    "werent wont wouldnt couldnt shouldnt hasnt havent hadnt aint".split()
)
# Words that confirm a negation but do not negate by themselves.
WEAKER = re.compile(
    r"""hardly|barely|scarcely|rarely|seldom|few|fewer|little|less|least|minus|nil|zero|only|until|unless|except\w*|instead
    |rather|any|anyone|anything|anybody|anymore|anywhere|lest|otherwise|difficult\w*|free|vain|gone|differ\w*
    |hinder\w*|hamper\w*|obstruct\w*|declin\w*|depriv\w*|resist\w*|oppon\w+
    |fail\w*|refus\w*|reject\w*|den(?:y|ies|ied|ying|ial)|lack\w*|missing|absen\w+|avoid\w*|prevent\w*|stop\w*|cease\w*
    |block\w*|exclu[ds]\w*|forb\w+|prohibit\w*|ban|bans|banned|refrain\w*|abst\w+|reluct\w+|negati\w+|oppos[ei]\w*
    |contrary|los[et]\w*|miss|misses|missed|wrong\w*|false\w*|doubt\w*|skeptic\w*|neglect\w*|ignore[ds]?|ignoring|ignoran\w+
    |beyond|despite|regardless|alone|void|empty|devoid|spare\w*|remove\w*|bad\w*|poor\w*|worse\w*|worst
    |un(?!der|i[tqvfo]|cle)[a-z]{3,}|im(?:poss|mob|mat|pat|perf|pol|prob|prac|moral|mun|pun)\w+|il(?:leg|lic|lit|log)\w+|ir(?:r|regular)\w+
    |in(?:abil|cap|suff|adeq|acc|corr|val|vis|act|app|comp|con|cred|dec|def|dep|dis|eff|equ|exp|flex|form|hum|sens|sign
    |sta|tol|vul)\w*|dis[a-z]{3,}|mi[s][a-z]{4,}|non\w*|anti\w*|[a-z]{3,}less(?:ly|ness)?""",
    re.VERBOSE,
)
# After `not`, these take the negation away again; so do these after `no`, and `or` before `not`.
AFTER_NOT = frozenset("only just merely simply solely least alone necessarily long far".split())
AFTER_NO = frozenset("doubt matter wonder less fewer sooner later question".split())
UNDOES = re.compile(
    r"""bad|worse|worst|poor|wrong|false|hopeless|useless|without|rare|rarely
    |un(?!der|til|less|i[tqvfo]|cle)[a-z]{3,}|im(?:poss|mob|mat|perf|prob|prac|moral)\w+|il(?:leg|lic|log)\w+|irr\w+
    |in(?:accu|adeq|appr|cap|comp[ae]t|cons[ie]|conv|corr|expen|freq|sens|sign|suff|vis)\w+|dissimilar|dis(?:hon|sat|pl)\w+""",
    re.VERBOSE,
)
DEGREES = frozenset("so too that very all at half really entirely completely particularly".split())
NEGATES, CONFIRMS, IS_NOT, IS_NO, TAKES_NOT, TAKES_NO, IS_OR = (1 << bit for bit in range(6, 13))
NEGATIVE, DEGREE, TURNS = (1 << bit for bit in range(22, 25))
PARTICLES = {
    **dict.fromkeys(DEGREES, DEGREE),
    **dict.fromkeys(AFTER_NOT, TAKES_NOT),
    **dict.fromkeys(AFTER_NO, TAKES_NO),
    "not": IS_NOT | TURNS,
    "no": IS_NO,
    "or": IS_OR,
}
ADDRESS = 1 << 25
WORD_EDGES = re.compile(r"^\W+|\W+$")
NUMBER_AHEAD = re.compile(r"^\W*[0-9]")


def negation_bits(chunk: str, words: list[str]) -> int:
    """Flags for negations of a chunk between blanks and its words (runs of letters).

    `NEGATES` is a negation, `CONFIRMS` any kind of it; `IS_NOT`, `IS_NO` and `IS_OR` are those words; `TAKES_NOT` and
    `TAKES_NO` are what takes the negation away from a `not` or `no` before it. `TURNS` is `not` or `n't`, which
    together with a `NEGATIVE` word, or with a word of `DEGREE` between them, negates nothing.
    """
    if not words:
        return TAKES_NO if NUMBER_AHEAD.match(chunk) else 0
    word = words[0].lower() if len(words) == 1 else WORD_EDGES.sub("", chunk).lower()
    bits = PARTICLES.get(word, 0) | (NEGATIVE if UNDOES.fullmatch(word) else 0)
    if word.endswith("n't"):
        return bits | NEGATES | CONFIRMS | TURNS
    if word in NEGATIONS:
        # Doctors Without Borders: part of a name.
        return bits | CONFIRMS | (0 if chunk[0] == "W" else NEGATES)
    parts = (word,) if len(words) == 1 else [part.lower() for part in words]
    return bits | (CONFIRMS if any(part in NEGATIONS or WEAKER.fullmatch(part) for part in parts) else 0)


@dataclass(frozen=True)
class Chunks:
    """Sentences split at blanks."""

    texts: pa.DictionaryArray  # The chunks [chunk], sentence after sentence, as a dictionary column
    bounds: np.ndarray  # Bounds [sentence + 1]: sentence `i` has the chunks from `bounds[i]` to `bounds[i + 1]`
    flags: np.ndarray  # Bits for numbers, negations, names and addresses of each chunk [chunk]
    keys: Lists  # Keys of names that each chunk confirms [chunk]

    def has(self, *bits: int) -> np.ndarray:
        """Mark the chunks [chunk] with any of some flags."""
        return self.flags & sum(bits) != 0

    @property
    def begins(self) -> np.ndarray:
        """Mark the chunks [chunk] that are the first of a sentence."""
        marks = np.zeros(len(self.flags) + 1, bool)
        marks[self.bounds[:-1]] = True
        return marks[:-1]

    def before(self, marks: np.ndarray) -> np.ndarray:
        """Mark the chunks [chunk] whose neighbour on the left, in the same sentence, is marked."""
        moved = np.zeros_like(marks)
        moved[1:] = marks[:-1]
        return moved & ~self.begins

    def after(self, marks: np.ndarray) -> np.ndarray:
        """Mark the chunks [chunk] whose neighbour on the right, in the same sentence, is marked."""
        moved = np.zeros_like(marks)
        moved[:-1] = (marks & ~self.begins)[1:]
        return moved

    def count(self, marks: np.ndarray) -> np.ndarray:
        """Count the marked chunks of each sentence [sentence]."""
        sums = np.concatenate([[0], np.cumsum(marks)])
        return sums[self.bounds[1:]] - sums[self.bounds[:-1]]

    def runs(self, inside: np.ndarray, breaks: np.ndarray, special: np.ndarray) -> tuple[pa.Array, np.ndarray]:
        """Join neighbouring chunks that are `inside` [chunk] into runs [run], with blanks between them.

        A chunk that `breaks` begins a new run though its left neighbour is in one; a `special` chunk gets a blank
        before the run that it begins. Also returns the bounds of each sentence in the runs [sentence + 1].
        """
        chosen = np.flatnonzero(inside)
        starts = inside & (breaks | ~self.before(inside))
        first = np.flatnonzero(starts[chosen])
        texts = self.texts.take(pa.array(chosen)).dictionary_decode()
        lists = pa.ListArray.from_arrays(pa.array(np.append(first, len(chosen)), pa.int32()), texts)
        joined = pc.binary_join(lists, " ")
        marked = pa.array(np.where(special[chosen[first]], " ", ""), pa.string())
        joined = pc.binary_join_element_wise(marked, joined, "")
        return joined, np.concatenate([[0], np.cumsum(starts)])[self.bounds]


class MismatchReader:
    """Computes the `wanted` columns of pairs, batch after batch.

    Beyond `capacity` distinct texts all are forgotten; results do not depend on it.
    """

    def __init__(self, wanted: Sequence[str] = MISMATCHES, capacity: int = 1_000_000) -> None:
        self._wanted, self._capacity = wanted, capacity
        self._forget()

    def _forget(self) -> None:
        # Numbers keys in the order in which they are first asked for.
        self._keys: dict[str, int] = defaultdict(count().__next__)
        self._claims = Claims()
        self._chunks = Memory(self._read_chunk)
        self._numbers = Memory(lambda run: self._read(numbers.numbers_in(run)))
        self._names = Memory(lambda run: self._read(names.names_in(run)))
        self._addresses = Memory(lambda run: self._read(addresses.addresses_in(run)))

    def _read_chunk(self, chunk: str) -> tuple[list[int], list[int]]:
        words = [chunk] if chunk.isalpha() else names.WORD.findall(chunk)
        flags = number_words.number_bits(chunk, words) | negation_bits(chunk, words) | names.name_bits(chunk, words)
        flags |= ADDRESS if addresses.has_address(chunk) else 0
        return [flags], [self._keys[key] for key in names.name_keys(chunk, words)]

    def _read(self, found: Statement) -> tuple[list[int], list[int]]:
        return [self._claims.number(claim, self._keys) for claim in found.claims], [
            self._keys[key] for key in found.evidence
        ]

    def columns(self, references: pa.Array, translations: pa.Array) -> dict[str, pa.Array]:
        """Compute the wanted columns of a batch of references and translations, strings [pair]: each [pair], int32."""
        first = np.arange(len(references))
        counts = self.counts(pa.concat_arrays([references, translations]), first, first + len(references))
        return {name: pa.array(count, pa.int32()) for name, count in counts.items()}

    def counts(self, sentences: pa.Array, first: np.ndarray, second: np.ndarray) -> dict[str, np.ndarray]:
        """Compute the wanted columns [pair] of pairs of some sentences, strings [sentence], by their places [pair]."""
        return self._counts(self._cut(normal_form(sentences)), first, second)

    def differ(self, sentences: pa.Array, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Mark pairs of some sentences with a mismatch, or with the same numbers in another order [pair]."""
        chunks = self._cut(normal_form(sentences))
        counts = self._counts(chunks, first, second)
        made, bounds = self._numbers_of(chunks)[0].flat()
        values = self._claims.hashes(made, first_key=True)
        together = _sums(values, bounds)
        places = np.arange(len(made)) - np.repeat(bounds[:-1], np.diff(bounds))
        in_order = _sums(values * (2 * places + 1).astype(np.uint64), bounds)
        swapped = (together[first] == together[second]) & (in_order[first] != in_order[second])
        return swapped | np.any([count > 0 for count in counts.values()], axis=0)

    def _counts(self, chunks: Chunks, first: np.ndarray, second: np.ndarray) -> dict[str, np.ndarray]:
        claimed = self._claimed(chunks)
        counts = {name: self._both_ways(first, second, *found) for name, found in claimed.items()}
        if "negation_mismatch" in self._wanted:
            counts["negation_mismatch"] = _negation_mismatch(chunks, first, second)
        return {name: counts[name] for name in self._wanted}

    def signatures(self, sentences: pa.Array) -> np.ndarray:
        """Hash the claims of sentences, negations aside [sentence], uint64: equal claims have equal hashes."""
        sums = np.zeros(len(sentences), np.uint64)
        for claims, *_ in self._claimed(self._cut(normal_form(sentences))).values():
            made, bounds = claims.flat()
            sums += _sums(self._claims.hashes(made), bounds)
        return sums

    def _claimed(self, chunks: Chunks) -> dict[str, list[Lists]]:
        """The claims of each sentence, and one or more parts of its evidence, for each wanted column but negations."""
        readers: dict[str, Callable[[Chunks], list[Lists]]] = {
            "number_mismatch": self._numbers_of,
            "name_mismatch": self._names_of,
            "address_mismatch": self._addresses_of,
        }
        return {name: readers[name](chunks) for name in self._wanted if name in readers}

    def _cut(self, sentences: pa.Array) -> Chunks:
        if sum(map(len, (self._chunks, self._numbers, self._names, self._addresses))) > self._capacity:
            self._forget()
        pieces = pc.split_pattern(sentences, " ")
        texts = pieces.flatten().dictionary_encode()
        bounds = pieces.offsets.to_numpy()
        flags, keys = self._chunks.lists(texts.dictionary)
        chosen = texts.indices.to_numpy()
        return Chunks(texts, bounds - bounds[0], flags.values[flags.starts][chosen], keys.take(chosen))

    def _numbers_of(self, chunks: Chunks) -> list[Lists]:
        number = chunks.has(number_words.NUMBER)
        joins = chunks.has(number_words.AND) & chunks.before(chunks.has(number_words.SCALE)) & chunks.after(number)
        per, cent = chunks.has(number_words.PER), chunks.has(number_words.CENT)
        joins |= (per & chunks.after(cent)) | (cent & chunks.before(per))
        joins |= chunks.has(number_words.HALF_DAY) & chunks.before(number)
        a, half, scale = (chunks.has(bit) for bit in (number_words.A, number_words.HALF, number_words.SCALE))
        joins |= a & chunks.before(half) & chunks.after(scale)
        part = a & chunks.after(half | chunks.has(number_words.PART))
        joins |= part | (chunks.has(number_words.AND) & chunks.before(number) & chunks.after(part))
        none = np.zeros_like(number)
        runs, bounds = chunks.runs(number | joins, none, none)
        return [lists.joined(bounds) for lists in self._numbers.lists(runs)]

    def _addresses_of(self, chunks: Chunks) -> list[Lists]:
        address = chunks.has(ADDRESS)
        runs, bounds = chunks.runs(address, address, np.zeros_like(address))
        return [lists.joined(bounds) for lists in self._addresses.lists(runs)]

    def _names_of(self, chunks: Chunks) -> list[Lists]:
        letters, capital = chunks.has(names.LETTERS), chunks.has(names.CAPITAL)
        ends = chunks.has(names.ENDS)
        opens = chunks.begins | chunks.before(ends) | chunks.has(names.OPENS)
        runs, bounds = chunks.runs(capital, chunks.before(chunks.has(names.TAIL)) | opens, opens)
        claims, initials = (lists.joined(bounds) for lists in self._names.lists(runs))
        headline = (2 * chunks.count(capital) > chunks.count(letters)) & (chunks.count(chunks.has(names.PLAIN)) == 0)
        claims = Lists(claims.values, claims.starts, np.where(headline, 0, claims.lengths))
        return [claims, chunks.keys.joined(chunks.bounds), initials]

    def _both_ways(self, first: np.ndarray, second: np.ndarray, claims: Lists, *evidence: Lists) -> np.ndarray:
        counts = [
            count_unconfirmed(claims.take(own), self._claims, *(part.take(other) for part in evidence))
            for own, other in ((first, second), (second, first))
        ]
        return counts[0] + counts[1]


def _negation_mismatch(chunks: Chunks, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    taken = chunks.has(IS_NOT) & chunks.after(chunks.has(TAKES_NOT))
    taken |= chunks.has(IS_NOT) & chunks.before(chunks.has(IS_OR))
    taken |= chunks.has(IS_NO) & chunks.after(chunks.has(TAKES_NO))
    negative = chunks.has(NEGATIVE)
    ahead = negative
    for _ in range(2):  # Up to two words of degree
        ahead = negative | (chunks.has(DEGREE) & chunks.after(ahead))
    turned = chunks.has(TURNS) & chunks.after(ahead)
    # Of `not without` both words negate.
    taken |= turned | (negative & chunks.before(turned))
    claims = chunks.count(chunks.has(NEGATES) & ~taken)
    confirmed = chunks.count(chunks.has(CONFIRMS)) > 0
    return np.where(confirmed[second], 0, claims[first]) + np.where(confirmed[first], 0, claims[second])


def _sums(values: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Add up the values [value], uint64, between bounds [sentence + 1]; sums may wrap around."""
    totals = np.concatenate([np.zeros(1, np.uint64), np.cumsum(values, dtype=np.uint64)])
    return totals[bounds[1:]] - totals[bounds[:-1]]
