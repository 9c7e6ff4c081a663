"""Which sentences negate.

The words of `NEGATIONS` and every `n't` are claims; the other sentence confirms them by a negation of any kind, also a
weaker one: `hardly`, `unable`, `lack`, `refuse`, a word with `un-` or `-less`. `not only`, `no. 5`, `no doubt` and the
like are none, nor is `or not`.
"""

from __future__ import annotations

import re

NEGATIONS = frozenset(
    "not no never nobody nothing none nor neither nowhere cannot without cant dont doesnt didnt isnt arent wasnt "
    "werent wont wouldnt couldnt shouldnt hasnt havent hadnt aint".split()
)
# Words that confirm a negation and are none by themselves.
WEAKER = re.compile(
    r"""hardly|barely|scarcely|rarely|seldom|few|fewer|little|less|least|minus|nil|zero|only|until|unless|except\w*|instead
    |rather|any|anyone|anything|anybody|anymore|anywhere|lest|otherwise|difficult\w*|free|vain|gone|differ\w*
    |hinder\w*|hamper\w*|obstruct\w*|declin\w*|depriv\w*|resist\w*|oppon\w+
    |fail\w*|refus\w*|reject\w*|den(?:y|ies|ied|ying|ial)|lack\w*|missing|absen\w+|avoid\w*|prevent\w*|stop\w*|cease\w*
    |block\w*|exclu[ds]\w*|forb\w+|prohibit\w*|ban|bans|banned|refrain\w*|abst\w+|reluct\w+|negati\w+|oppos[ei]\w*
    |contrary|los[et]\w*|miss|misses|missed|wrong\w*|false\w*|doubt\w*|skeptic\w*|neglect\w*|ignore[ds]?|ignoring|ignoran\w+
    |beyond|despite|regardless|alone|void|empty|devoid|spare\w*|remove\w*|bad\w*|poor\w*|worse\w*|worst
    |un[a-z]{3,}|im(?:poss|mob|mat|pat|perf|pol|prob|prac|moral|mun|pun)\w+|il(?:leg|lic|lit|log)\w+|ir(?:r|regular)\w+
    |in(?:abil|cap|suff|adeq|acc|corr|val|vis|act|app|comp|con|cred|dec|def|dep|dis|eff|equ|exp|flex|form|hum|sens|sign
    |sta|tol|vul)\w*|dis[a-z]{3,}|mi[s][a-z]{4,}|non\w*|anti\w*|[a-z]{3,}less(?:ly|ness)?""",
    re.VERBOSE,
)
# After `not`, these take the negation away again; so do these after `no`, and `or` before `not`.
AFTER_NOT = frozenset("only just merely simply solely least alone necessarily long far".split())
AFTER_NO = frozenset("doubt matter wonder less fewer sooner later question".split())
NEGATES, CONFIRMS, IS_NOT, IS_NO, TAKES_NOT, TAKES_NO, IS_OR = (1 << bit for bit in range(6, 13))
PARTICLES = {
    **dict.fromkeys(AFTER_NOT, TAKES_NOT),
    **dict.fromkeys(AFTER_NO, TAKES_NO),
    "not": IS_NOT,
    "no": IS_NO,
    "or": IS_OR,
}
EDGES = re.compile(r"^\W+|\W+$")
DIGIT = re.compile(r"^\W*[0-9]")


def classify(chunk: str, words: list[str]) -> int:
    """Tell what a chunk between blanks has to do with negation.

    Args:
        chunk: The chunk.
        words: Its words: runs of letters.

    Returns:
        The bits `NEGATES` (a negation), `CONFIRMS` (any kind of it), `IS_NOT`, `IS_NO` and `IS_OR` (those words),
        `TAKES_NOT` and `TAKES_NO` (what takes the negation away from a `not` or `no` before it).
    """
    if not words:
        return TAKES_NO if DIGIT.match(chunk) else 0
    word = words[0].lower() if len(words) == 1 else EDGES.sub("", chunk).lower().replace("\u2019", "'")
    bits = PARTICLES.get(word, 0)
    if word.endswith("n't"):
        return bits | NEGATES | CONFIRMS
    if word in NEGATIONS:
        # Doctors Without Borders: part of a name.
        return bits | CONFIRMS | (0 if chunk[0] == "W" else NEGATES)
    parts = (word,) if len(words) == 1 else [part.lower() for part in words]
    return bits | (CONFIRMS if any(part in NEGATIONS or WEAKER.fullmatch(part) for part in parts) else 0)
