"""Negations in sentences, and the column `negation_mismatch`.

Words such as `not` and `never`, and every `n't`, are claims. The other sentence confirms them by a negation of any
kind, weaker ones included: `hardly`, `unable`, `lack`, `refuse`, a word with `un-` or `-less`. Not negations are `not
only`, `no. 5`, `no doubt` and the like, `or not`, and two negations of one word: `not bad`, `not so uncommon`, `not
without`.
"""

from __future__ import annotations

import re

import numpy as np

from paranmt_hf.meaning.chunks import (
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
# Words that confirm a negation of the other sentence but are no negations themselves.
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
# `not` before one of these is not a negation; neither is `not` after `or`.
AFTER_NOT = frozenset("only just merely simply solely least alone necessarily long far".split())
# `no` before one of these is not a negation.
AFTER_NO = frozenset("doubt matter wonder less fewer sooner later question".split())
# Negative words: `not` before one of them is not a negation.
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
    """Return the flags for negations of a chunk, the text between two blanks.

    - `NEGATES`: a negation, which is a claim
    - `CONFIRMS`: a negation of any kind, weaker ones included
    - `IS_NOT`, `IS_NO`, `IS_OR`: one of these words
    - `TAKES_NOT`, `TAKES_NO`: a `not` or `no` before this chunk is not a negation
    - `TURNS`: `not` or `n't`, which is not a negation before a `NEGATIVE` word, or with `DEGREE` words between them

    Args:
        chunk: The text.
        words: Its words, which are runs of letters.
    """
    if not words:
        return TAKES_NO if NUMBER_AHEAD.match(chunk) else 0
    word = words[0].lower() if len(words) == 1 else WORD_EDGES.sub("", chunk).lower()
    bits = PARTICLES.get(word, 0) | (NEGATIVE if UNDOES.fullmatch(word) else 0)
    if word.endswith("n't"):
        return bits | NEGATES | CONFIRMS | TURNS
    if word in NEGATIONS:
        # `Without` in capitals is part of a name, such as Doctors Without Borders.
        return bits | CONFIRMS | (0 if chunk[0] == "W" else NEGATES)
    parts = (word,) if len(words) == 1 else [part.lower() for part in words]
    return bits | (CONFIRMS if any(part in NEGATIONS or WEAKER.fullmatch(part) for part in parts) else 0)


def negation_mismatch(chunks: Chunks, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Count the negations of each sentence of a pair that the other does not confirm, both ways added up.

    Args:
        chunks: Sentences cut at blanks.
        first: Index of the first sentence of each pair [pair].
        second: Index of the second sentence of each pair [pair].

    Returns:
        Numbers of negations [pair].
    """
    undone = chunks.has(IS_NOT) & chunks.after(chunks.has(TAKES_NOT))
    undone |= chunks.has(IS_NOT) & chunks.before(chunks.has(IS_OR))
    undone |= chunks.has(IS_NO) & chunks.after(chunks.has(TAKES_NO))
    negative = chunks.has(NEGATIVE)
    ahead = negative
    # Up to two words of degree may be between `not` and the negative word.
    for _ in range(2):
        ahead = negative | (chunks.has(DEGREE) & chunks.after(ahead))
    turned = chunks.has(TURNS) & chunks.after(ahead)
    # In `not without` both words are negations, and both are undone.
    undone |= turned | (negative & chunks.before(turned))
    claims = chunks.count(chunks.has(NEGATES) & ~undone)
    confirmed = chunks.count(chunks.has(CONFIRMS)) > 0
    return np.where(confirmed[second], 0, claims[first]) + np.where(confirmed[first], 0, claims[second])
