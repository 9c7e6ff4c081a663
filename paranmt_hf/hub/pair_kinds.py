"""What cards of corpora say of pairs, by how the second sentences came about."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PairKind:
    """What a card says of pairs, by how their second sentences came about.

    Attributes:
        pairs: What a pair is; `{language}` is the name of the language.
        provenance: Where the second sentences come from; `{translator}` is the translation model, if there is one.
        noise: What is wrong with some of them.
        creators: The Hub's names for who wrote the text.
        tags: Tags of the card, beside the common ones.
    """

    pairs: str
    provenance: str
    noise: str
    creators: tuple[str, ...] = ("found",)
    tags: tuple[str, ...] = ()


MACHINE_NOISE = (
    "The translations are a machine's: they can be wrong, unfinished, or repeat the reference word for word. A low "
    "paraphrase score marks many of the wrong ones, a high trigram overlap the ones that repeat. Choose by both."
)
BUILT = PairKind(
    "Each pair is the {language} side of a bitext and a machine translation of the other side, after ParaNMT-50M "
    "(Wieting and Gimpel, 2018).",
    "The translations were made by the model {translator}.",
    MACHINE_NOISE,
    ("found", "machine-generated"),
    ("back-translation",),
)
# Where there was no bitext.
PIVOTED = PairKind(
    "Each pair is a sentence and its machine translation into another language and back, after ParaNMT-50M (Wieting "
    "and Gimpel, 2018), whose translations are of a bitext.",
    "The sentences were translated into another language by the model {pivot}, and back by the model {translator}.",
    MACHINE_NOISE,
    ("found", "machine-generated"),
    ("back-translation",),
)
# By who wrote the second sentences of pairs that were imported.
IMPORTED = {
    "machine": PairKind(
        "Each pair is a sentence and a machine translation that was imported with it; they are scored after "
        "ParaNMT-50M (Wieting and Gimpel, 2018).",
        "The second sentences are machine translations that were imported; the owner of the input can say which "
        "system made them.",
        MACHINE_NOISE,
        ("found", "machine-generated"),
    ),
    "people": PairKind(
        "Each pair is two sentences that people wrote, scored after ParaNMT-50M (Wieting and Gimpel, 2018).",
        "The second sentences were written by people and imported.",
        "People wrote both sentences, and some pairs may differ in meaning all the same. A low paraphrase score marks "
        "many of these, a high trigram overlap the pairs that hardly differ. Choose by both.",
    ),
    "unknown": PairKind(
        "Each pair is two sentences that were imported together; they are scored after ParaNMT-50M (Wieting and "
        "Gimpel, 2018).",
        "The pairs were imported; it was not stated who or what wrote the second sentences.",
        "It was not stated how these pairs were made, so some may differ in meaning. A low paraphrase score marks "
        "many of these, a high trigram overlap the pairs that hardly differ. Choose by both.",
    ),
}
# By who wrote the sentences of pairs that were mined.
MINED_PAIRS = (
    "Each pair is two sentences that were not written as a pair: an encoder found them near to each other among all "
    "sentences of the input."
)
MINED_NOISE = (
    "Sentences that are near to each other can differ in what matters: a name, a number, a negation. A higher "
    "paraphrase score makes that rarer, a high trigram overlap marks the pairs that hardly differ. Choose by both."
)
MINED = {
    "machine": PairKind(MINED_PAIRS, "A machine wrote sentences of the input.", MINED_NOISE, ("machine-generated",)),
    "people": PairKind(MINED_PAIRS, "People wrote the sentences of the input.", MINED_NOISE),
    "unknown": PairKind(MINED_PAIRS, "It was not stated who or what wrote the sentences of the input.", MINED_NOISE),
}
ASKED = (
    "The language model {translator} wrote them, asked through its server; the terms of the model, and of who runs "
    "the server, may bind whoever uses its answers."
)
ASKED_NOISE = (
    "The second sentences are a language model's: they can add, leave out or explain, and can repeat the reference "
    "word for word. Refusals, answers with more than the sentence, in another language, or of absurd length were "
    "dropped by rules, which miss some. Choose by paraphrase score and trigram overlap."
)
# By a language model in the place of a translation model, and without any bitext.
ANSWERED = PairKind(
    "Each pair is the {language} side of a bitext and a translation of the other side by a language model, after "
    "ParaNMT-50M (Wieting and Gimpel, 2018).",
    f"The translations: {ASKED[0].lower()}{ASKED[1:]}",
    ASKED_NOISE,
    BUILT.creators,
    ("back-translation",),
)
PARAPHRASED = PairKind(
    "Each pair is a sentence and a paraphrase of it by a language model, made without a bitext; they are scored after "
    "ParaNMT-50M (Wieting and Gimpel, 2018).",
    f"The paraphrases: {ASKED[0].lower()}{ASKED[1:]}",
    ASKED_NOISE,
    BUILT.creators,
)
USES = (
    "**Intended:** training and studying sentence encoders and paraphrase models. Choose rows by `para_score` and "
    "`trigram_overlap` first: not every pair is a good paraphrase.",
    "**Out of scope:** measuring models, because no person judged the pairs and the scores are a model's; and "
    "whatever the licence below rules out. The text is as it was found, and can hold errors, prejudice and personal "
    "data.",
)
# Of data sets whose pairs people labelled.
USES_LABELLED = (
    USES[0],
    "**Out of scope:** measuring models by the scores, which are a model's, or by pairs that training has seen; and "
    "whatever the licence below rules out. The text is as it was found, and can hold errors, prejudice and personal "
    "data.",
)
