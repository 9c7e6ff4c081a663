"""What a word token and a character trigram is: the definitions that scores, encoders and statistics share.

Words are lower-cased and cut the way of the Penn Treebank: the clitics `n't 's 'm 're 've 'll 'd` stand alone,
`cannot` is two tokens, `...` and `--` are one, and every other punctuation mark is a token of its own unless it
belongs to a word: `well-known`, `o'brien`, `at&t`, `and/or`, `u.s.`, `mr.`, `3.5`, `10:30`. A typographic apostrophe
counts as a plain one. The definition is a pipeline of the `tokenizers` library, so that it can travel inside a model.

No rule looks across white space, so a chunk of text between blanks always gives the same tokens. The fast path for
columns of sentences, `tokens.py`, rests on that. It is also where this differs from the Treebank, whose full stops are
cut off at the end of a sentence alone: here they are cut off all chunks but initials and known abbreviations. This
file needs no package but `tokenizers`, because it is also put beside the weights of models that people load without
this package.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import groupby

from tokenizers import Regex, normalizers, pre_tokenizers

# Words that own the full stop behind them; none of them is a common word without it.
ABBREVIATIONS = (
    "mr mrs ms messrs dr prof rev hon st sr jr gov sen sens rep reps gen col maj capt cmdr lt sgt cpl adm brig "
    "inc corp co cos ltd bros plc jan feb aug sept oct nov dec vs etc al ave blvd mt ft dept univ "
    "ala ariz ark calif colo conn fla ga ky md mich minn mont neb nev okla tenn tex va vt wis wyo"
).split()


def _behind(endings: Iterable[str]) -> str:
    """Make a pattern that fails behind these whole words; a look behind has one length, so it takes one for each."""
    by_length = sorted(endings, key=len)
    groups = ("|".join(words) for _, words in groupby(by_length, key=len))
    return "".join(rf"(?<!\b(?:{group})\.)" for group in groups)


# Patterns of what is cut off as a token of its own; what is left between two cuts is a token too. Each begins with the
# character that it is about and looks behind it afterwards, which is how regular expressions are fast. No pattern
# begins inside what another one matches, on which the tokenizer in `export/trigram_tokenizer.py` rests.
CANNOT = r"can(?<![\w.]can)(?<![\w.][-'&/]can)(?=not(?!\w))"
CLITICS = rf"n't(?!\w)|'(?:s|m|re|ve|ll|d)(?!\w)|{CANNOT}|'t(?<!\w't)(?=(?:is|was)(?!\w))"
# Kept before a word (nytimes.com, u.s.-led), behind initials (u.s., j.; but i is a word) and abbreviations.
FULL_STOP = rf"\.(?!\w|-\w|\.)(?<!\.\.)(?<!\b[a-hj-z]\.)(?<!\.i\.){_behind(ABBREVIATIONS)}"
# Kept between word characters (well-known, o'brien, at&t, and/or), comma and colon between digits (1,000).
JOINTS = r"-(?!-)(?<!--)(?:(?<![\w.]-)|(?!\w))|['&/](?:(?<!\w['&/])|(?!\w))|[,:](?:(?<!\d[,:])|(?!\d))"
PUNCTUATION = rf"(?<!\.)\.{{2,}}|(?<!-)-{{2,}}|{FULL_STOP}|{JOINTS}|[^\w\s.,:/&'-]|_"


def word_normalizer() -> normalizers.Normalizer:
    """Build the first half of the pipeline: plain apostrophes, lower case."""
    return normalizers.Sequence([normalizers.Replace("\u2019", "'"), normalizers.Lowercase()])


def word_pre_tokenizer() -> pre_tokenizers.PreTokenizer:
    """Build the second half of the pipeline: chunks between white space, cut at clitics and punctuation."""
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Split(Regex(f"{CLITICS}|{PUNCTUATION}"), behavior="isolated"),
        ]
    )


@cache
def _pipeline() -> tuple[normalizers.Normalizer, pre_tokenizers.PreTokenizer]:
    return word_normalizer(), word_pre_tokenizer()


def words(text: str) -> list[str]:
    """Cut one text into word tokens.

    >>> words("It's 3.5 miles, isn't it?")
    ['it', "'s", '3.5', 'miles', ',', 'is', "n't", 'it', '?']
    """
    normalizer, pre_tokenizer = _pipeline()
    return [token for token, _ in pre_tokenizer.pre_tokenize_str(normalizer.normalize_str(text))]


def spaced(tokens: Sequence[str]) -> str:
    """Write word tokens as the text that character n-grams are taken from: one blank before, between and after."""
    return f" {' '.join(tokens)} " if tokens else ""


def character_ngrams(text: str, size: int = 3) -> list[str]:
    """Cut one text into character n-grams, blanks included; ParaNMT-50M (Wieting & Gimpel 2018), section 4.

    >>> character_ngrams("I'm in")
    [' i ', "i '", " 'm", "'m ", 'm i', ' in', 'in ']
    """
    line = spaced(words(text))
    return [line[start : start + size] for start in range(len(line) - size + 1)]
