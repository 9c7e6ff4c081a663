"""Negations in sentences.

A negation is a claim, as is every `n't`; the other sentence confirms it by a negation of any kind, also a weaker one:
`hardly`, `unable`, `lack`, `refuse`, a word with `un-` or `-less`. `not only`, `no. 5`, `no doubt` and the like are
not negations, nor is `or not`, nor are two negations of one word: `not bad`, `not so uncommon`, `not without`.
"""

from __future__ import annotations

import re

import numpy as np

from paranmt_hf.corpus.scoring.chunks import (
    CONFIRMS,
    DEGREE,
    IS_NO,
    IS_NOT,
    IS_OR,
    NEGATES,
    NEGATIVE,
    TAKES_NO,
    TAKES_NOT,
    TURNS,
    Chunks,
)

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
PARTICLES = {
    **dict.fromkeys(DEGREES, DEGREE),
    **dict.fromkeys(AFTER_NOT, TAKES_NOT),
    **dict.fromkeys(AFTER_NO, TAKES_NO),
    "not": IS_NOT | TURNS,
    "no": IS_NO,
    "or": IS_OR,
}
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


def negation_mismatch(chunks: Chunks, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Count the negations [pair] that the other sentence does not confirm, both ways, of pairs by their places."""
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
