"""Languages of whole columns, against py3langid's own loop over one text after the other."""

import numpy as np
import pyarrow as pa
import pytest

from paranmt_hf.corpus.language import (
    InLanguage,
    Langid,
    LanguageConfig,
    Lingua,
    in_language,
)
from paranmt_hf.errors import InputError

TEXTS = [
    "A man is playing the guitar on a stage in front of many people.",
    "Ein Mann spielt auf einer Bühne mit vielen anderen Musikern Gitarre.",
    "Muž hraje na kytaru na pódiu před mnoha lidmi.",
    "Un homme joue de la guitare dans une grande salle.",
    "THE WHOLE SENTENCE IS WRITTEN IN CAPITAL LETTERS",
    "ÜBERALL GROSSE BUCHSTABEN IN DIESEM SATZ",
    "ΟΛΑ ΤΑ ΓΡΑΜΜΑΤΑ ΕΙΝΑΙ ΚΕΦΑΛΑΙΑ",
    "Он играет на гитаре.",
    "彼はギターを弾いている。",
    "Cafe\u0301 au lait, s'il vous plai\u0302t",
    "yes",
    "",
    " ",
    "12 345, 6",
    "🙂🙂",
    "a" * 3000,
    "the " * 700,
    "Ona je u školi. Она је у школи.",
]


@pytest.fixture(scope="module")
def langid():
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


@pytest.mark.parametrize("candidates", [None, ("en", "de", "cs", "sr", "fr")])
def test_equal_to_the_loop_of_py3langid(candidates, langid):
    langid.set_languages(candidates)
    ours = Langid("en", candidates or ())
    generator = np.random.default_rng(4)
    texts = TEXTS + ["".join(map(chr, generator.integers(32, 1200, length))) for length in range(40)]
    found = ours.distribution(pa.array(texts))
    assert found.sum(axis=1) == pytest.approx(1, abs=1e-5)
    for text, row in zip(texts, found, strict=True):
        expected = dict(langid.rank(text))
        assert dict(zip(ours.labels, row.tolist(), strict=True)) == pytest.approx(expected, abs=2e-5), text
    # Where texts lie in a column, and how long the column is, makes no difference.
    padded = pa.array(["x", *texts, "y"]).slice(1, len(texts))
    assert ours.distribution(padded) == pytest.approx(found, abs=1e-6)
    assert ours.distribution(pa.array([], pa.string())).shape == (0, len(ours.labels))


@pytest.mark.slow
def test_equal_on_real_sentences(shared_data, langid):
    import pyarrow.parquet as pq

    langid.set_languages(None)
    file = pq.ParquetFile(shared_data / "pairs" / "machine-translations.parquet")
    texts = next(file.iter_batches(5_000, columns=["translation"]))["translation"]
    ours = Langid("en")
    found = ours.distribution(texts)
    expected = [langid.classify(text) for text in texts.to_pylist()]
    assert [ours.labels[best] for best in found.argmax(axis=1)] == [label for label, _ in expected]
    assert found.max(axis=1) == pytest.approx([probability for _, probability in expected], abs=2e-5)


def rows(*pairs: tuple[str, str]) -> pa.Table:
    return pa.table({name: [pair[side] for pair in pairs] for side, name in enumerate(("reference", "translation"))})


@pytest.mark.parametrize("detector", ["langid", pytest.param("lingua", marks=pytest.mark.slow)])
def test_filter(detector):
    table = rows(
        (TEXTS[0], "A person plays a guitar before a crowd."),
        (TEXTS[0], TEXTS[1]),
        (TEXTS[2], TEXTS[0]),
        # Too short to tell, and nothing at all.
        ("Ja, sehr gerne.", TEXTS[0]),
        ("", "123"),
    )
    config = LanguageConfig(detector=detector, candidates=("en", "de", "cs"))
    verdict = InLanguage(config).judge(table)
    assert verdict.kept.tolist() == [True, False, False, True, True]
    assert (verdict.number[1:3] < 0.02).all() and verdict.number[0] > 0.8
    strict = LanguageConfig(detector=detector, candidates=("en", "de", "cs"), letters=5, probability=0.3)
    assert InLanguage(strict).judge(table).kept.tolist() == [True, False, False, False, True]
    assert InLanguage(config).identity["candidates"] == ("en", "de", "cs")


def test_each_sentence_is_looked_at_once():
    class Counting:
        def probabilities(self, sentences: pa.Array) -> np.ndarray:
            self.seen = sentences.to_pylist()
            return np.array([0.5, 0.01], np.float32)

    model = Counting()
    good, probabilities = in_language(pa.array(["aaaa", "bbbb", "aaaa", "c"]), model, LanguageConfig(letters=2))
    assert model.seen == ["aaaa", "bbbb"]
    assert good.tolist() == [True, False, True, True]
    assert np.isnan(probabilities[3])


def test_unknown_languages():
    with pytest.raises(InputError, match="py3langid does not know the language xx; it knows af, am"):
        Langid("xx")
    with pytest.raises(InputError, match="lingua does not know the language xx"):
        Lingua("en", ["xx"])
    with pytest.raises(InputError, match="at least two languages"):
        Lingua("en", ["en"])
