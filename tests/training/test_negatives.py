"""The negatives that mega-batches give, against a brute-force search."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf.corpus.pairs import Pairs, PairSelection
from paranmt_hf.encoders.loading import load
from paranmt_hf.encoders.saving import save
from paranmt_hf.errors import InputError
from paranmt_hf.training.negatives import NegativesConfig, mined_negatives, random_pairs
from tests.training.toys import encoder_of, random_text

PAIRS = 90


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("negatives")
    sides = random_text(PAIRS, words=300)
    save(encoder_of(sides, dimension=8), folder / "encoder")
    pq.write_table(pa.table({"reference": sides[0], "translation": sides[1]}), folder / "pairs.parquet")
    return folder, sides


def mine(place, sentences, sizes=(1, 2, 4), **options):
    folder, _ = place
    config = NegativesConfig(**{"mega_batches": sizes, "batch_size": 20, **options})
    found = mined_negatives(sentences, data=[folder / "pairs.parquet"], config=config, encoder=folder / "encoder")
    return list(found.of.values())


def test_equals_brute_force_over_the_same_pairs(place):
    folder, (references, translations) = place
    sentences = [references[3], translations[5], "w1 w2 w3", "w7"]
    mined = mine(place, sentences)
    selected = Pairs([folder / "pairs.parquet"], PairSelection(max_pairs=80), seed=1)
    pool = random_pairs(selected, 1)
    assert len(set(pool)) == 80
    assert set(pool) <= set(zip(references, translations, strict=True))
    encoder = load(folder / "encoder")

    def cosine(left, right):
        x, y = encoder.encode([left, right]).astype(float)
        return float(x @ y / np.linalg.norm(x) / np.linalg.norm(y))

    for sentence, row in zip(sentences, mined, strict=True):
        own = {sentence} | {b for a, b in pool if a == sentence} | {a for a, b in pool if b == sentence}
        assert [negative.mega_batch for negative in row] == [1, 2, 4]
        for negative in row:
            candidates = {text for pair in pool[: 20 * negative.mega_batch] for text in pair} - own
            best = max(cosine(sentence, candidate) for candidate in candidates)
            assert negative.similarity == pytest.approx(best, abs=1e-5)
            assert cosine(sentence, negative.sentence) == pytest.approx(best, abs=1e-5)
            assert negative.sentence not in own
        # A larger mega-batch holds the smaller ones.
        assert row[0].similarity <= row[1].similarity <= row[2].similarity
    assert any(row[0].similarity < row[2].similarity for row in mined)


def test_seed_decides(place):
    sentences = ["w1 w2 w3", "w4 w5"]
    assert mine(place, sentences) == mine(place, sentences)
    assert mine(place, sentences, (1,)) != mine(place, sentences, (1,), seed=2)


def test_copies_and_paraphrases_are_no_negatives(tmp_path, place):
    pairs = [("A b.", "c d"), ("a  b .", "e f"), ("x", "c d"), ("g", "h"), ("c d", "i")]
    data = tmp_path / "p.parquet"
    pq.write_table(pa.table({"reference": [a for a, _ in pairs], "translation": [b for _, b in pairs]}), data)
    save(encoder_of(tuple(zip(*pairs, strict=True)), dimension=4), tmp_path / "encoder")
    for sentence in ("a b.", "A  B ."):
        # It is paired with c d and e f, and c d with x and i, which therefore mean the same; g and h are left.
        config = NegativesConfig(mega_batches=(1,), batch_size=5)
        found = mined_negatives([sentence, "a b ."], data=data, config=config, encoder=tmp_path / "encoder")
        mined = list(found.of.values())
        assert mined[0] == mined[1]
        assert mined[0][0].sentence in {"g", "h"}
        assert mined[0][0].similarity > -1


def test_too_few_pairs(tmp_path, place):
    with pytest.raises(InputError, match=r"M = 10 needs 200 pairs, the data has 90; name a smaller M"):
        mine(place, ["w1"], (1, 10))
    same = tmp_path / "same.parquet"
    pq.write_table(pa.table({"reference": ["w1"] * 3, "translation": ["w1"] * 3}), same)
    with pytest.raises(InputError, match="no negative for 'w1'"):
        mined_negatives(["w1"], data=[same], config=NegativesConfig((1,), 3), encoder=place[0] / "encoder")
