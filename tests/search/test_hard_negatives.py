"""Hard negatives of pairs, as a dataset."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf import HardNegativesConfig, InputError, hard_negatives
from paranmt_hf.cli import main
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.search import ranked_negatives
from paranmt_hf.search.ranked_negatives import ParaphraseGraph
from paranmt_hf.training.mega_batch import excluded
from tests.cli.commands import fails
from tests.refused import refused
from tests.toys import write_vectors

WORDS = [f"w{chr(97 + index // 26)}{chr(97 + index % 26)}" for index in range(80)]


def write_pairs(path, pairs):
    references, translations = zip(*pairs, strict=True)
    pq.write_table(pa.table({"reference": references, "translation": translations}), path)


def random_pairs(count, seed=0):
    """Pairs of which some share a sentence, or have a copy in other letters."""
    generator = np.random.default_rng(seed)
    sentences = [" ".join(generator.choice(WORDS, 5, replace=False)) for _ in range(count)]
    pairs = []
    for index in range(count):
        words = sentences[index].split()
        # No two sentences have the same words, and so no two cosines are equal.
        words[int(generator.integers(5))] = str(generator.choice([word for word in WORDS if word not in words]))
        other = sentences[int(generator.integers(count))] if generator.random() < 0.1 else " ".join(words)
        pairs.append((sentences[index], other))
        if generator.random() < 0.3:
            more = str(generator.choice([word for word in WORDS if word not in words]))
            pairs.append((sentences[index].upper(), " ".join([*words[1:], more])))
    return [pairs[index] for index in generator.permutation(len(pairs))]


@pytest.fixture
def folder(tmp_path):
    """Word vectors, and pairs of sentences of these words."""
    write_vectors(tmp_path / "vectors.txt", WORDS, 12)
    write_pairs(tmp_path / "pairs.parquet", random_pairs(150))
    return tmp_path


def made(folder, out="out", **settings):
    config = HardNegativesConfig(**{"precision": "float32", **settings})
    return hard_negatives(folder / "pairs.parquet", folder / out, encoder=folder / "vectors.txt", config=config)


def rows_of(result):
    return pq.read_table(result.folder / "data").to_pylist()


def ranked(folder, pairs):
    """By brute force: of each pair the cosine of the positive, and other sentences with their cosines, best first."""
    first = {}
    for sentence in (sentence for pair in pairs for sentence in pair):
        first.setdefault(sentence.lower(), sentence)
    texts = list(first)
    vectors = NamedEncoder(str(folder / "vectors.txt")).load().encode(list(first.values()))
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = vectors @ vectors.T
    partners = {text: set() for text in texts}
    for one, other in ((one.lower(), other.lower()) for one, other in pairs):
        partners[one].add(other)
        partners[other].add(one)
    for anchor, positive in ((one.lower(), other.lower()) for one, other in pairs):
        near = {anchor} | partners[anchor] | {text for partner in partners[anchor] for text in partners[partner]}
        row = dict(zip(texts, cosines[texts.index(anchor)].tolist(), strict=True))
        order = sorted((text for text in texts if text not in near), key=lambda text: -row[text])
        yield row[positive], [(first[text], row[text]) for text in order]


def expected(folder, pairs, number, first_rank=1, last_rank=50, least=-1.0, most=1.0, margin=0.0, relative=0.05):
    rows, rejected = [], 0
    for pair, (positive, others) in zip(pairs, ranked(folder, pairs), strict=True):
        bound = min(most, positive - margin, positive - relative * abs(positive))
        ranks = others[first_rank - 1 : last_rank]
        chosen = [text for text, cosine in ranks if least <= cosine <= bound]
        rejected += len(ranks) - len(chosen)
        if len(chosen) >= number:
            rows.append((*pair, *chosen))
    return rows, rejected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "bounds"),
    [
        ({}, {}),
        ({"last_rank": 5, "relative_margin": 0.0}, {"last_rank": 5, "relative": 0.0}),
        ({"first_rank": 4, "last_rank": 9, "margin": 0.1}, {"first_rank": 4, "last_rank": 9, "margin": 0.1}),
        ({"max_score": 0.5, "min_score": 0.2}, {"most": 0.5, "least": 0.2}),
        ({"lists": 6, "probes": 6, "relative_margin": 0.2}, {"relative": 0.2}),
    ],
)
def test_they_are_those_of_brute_force(folder, settings, bounds, small_blocks):
    pairs = random_pairs(150)
    wanted, rejected = expected(folder, pairs, 3, **bounds)
    result = made(folder, **settings)
    assert [tuple(row.values()) for row in rows_of(result)] == [row[:5] for row in wanted]
    record = result.record
    assert record.rows == len(wanted) > 50 and sum(record.rejected.values()) == rejected
    assert record.left_out.get("with too few negatives", 0) == len(pairs) - len(wanted)
    assert record.sentences == len({sentence.lower() for pair in pairs for sentence in pair})


def test_random_negatives(folder, request):
    pairs = random_pairs(150)
    wanted, _ = expected(folder, pairs, 4, last_rank=20)
    result = made(folder, sampling="random", number=4, last_rank=20)
    rows = [tuple(row.values()) for row in rows_of(result)]
    assert [row[:2] for row in rows] == [row[:2] for row in wanted]
    # Each is allowed, and they stand in the order of their ranks.
    places = [[choice.index(text, 2) - 2 for text in row[2:]] for row, choice in zip(rows, wanted, strict=True)]
    assert all(place == sorted(set(place)) for place in places)
    # Drawn evenly: on average in the middle of those that are allowed.
    middles = [np.mean(place) / (len(choice) - 3) for place, choice in zip(places, wanted, strict=True)]
    assert 0.45 < np.mean(middles) < 0.55
    request.getfixturevalue("small_blocks")
    assert rows_of(made(folder, "again", sampling="random", number=4, last_rank=20)) == rows_of(result)
    assert rows_of(made(folder, "other", sampling="random", number=4, last_rank=20, seed=2)) != rows_of(result)


def test_scores_and_cosines(folder):
    result = made(folder, scores=True, precision="float16")
    known = {row["anchor"] + row["positive"]: row for row in rows_of(result)}
    found = 0
    for pair, (positive, others) in zip(random_pairs(150), ranked(folder, random_pairs(150)), strict=True):
        if row := known.get("".join(pair)):
            cosines = dict(others)
            wanted = [positive, *(cosines[row[f"negative_{place}"]] for place in (1, 2, 3))]
            np.testing.assert_allclose(row["scores"], wanted, atol=2e-3)
            found += 1
    assert found == result.record.rows
    means = np.mean([row["scores"] for row in known.values()], axis=0)
    np.testing.assert_allclose(list(result.record.cosines.values()), means, atol=1e-2)


def test_a_folder_of_the_same_name_is_another_dataset(folder, monkeypatch):
    """`datasets` 5.2 knows a folder in its cache by its name and its card, not by its files."""
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", folder / "cache")
    (folder / "other").mkdir()
    results = [made(folder, number=1), made(folder, "other/out", number=1, sampling="random")]
    assert results[0].record.rows == results[1].record.rows
    assert all(list(result.load()) == rows_of(result) for result in results)
    assert results[0].load().column_names == ["anchor", "positive", "negative_1"]


def test_the_graph_is_that_of_mega_batches():
    @given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=25))
    def same(pairs):
        keys = np.array(pairs).T.ravel()
        _, items = np.unique(keys, return_inverse=True)
        graph = ParaphraseGraph(items.reshape(2, -1).T, items.max() + 1)
        rows, columns = excluded(keys.astype(np.uint64))
        wanted = np.zeros((items.max() + 1,) * 2, bool)
        wanted[items[rows], items[columns]] = True
        first, second = np.indices(wanted.shape).reshape(2, -1)
        for at_once in (5, 1 << 23):
            np.testing.assert_array_equal(graph.related(first, second, at_once=at_once), wanted.ravel())
        assert (wanted.sum(axis=1) <= graph.most_related).all()

    same()


def test_it_continues_and_gives_the_same_bytes(folder, small_blocks, checkpoint_always, killed_after, counting):
    whole, blocks = counting(ranked_negatives._Search, "add", made, folder, "whole")
    killed_after(5, made, folder, kind=ranked_negatives._Search, name="add")
    again, left = counting(ranked_negatives._Search, "add", made, folder)
    assert left == blocks - 5
    for name in ("README.md", "negatives.json", "data/train-00000-of-00001.parquet"):
        assert (again.folder / name).read_bytes() == (whole.folder / name).read_bytes()
    assert not (folder / "out.work").exists()
    assert made(folder).fresh is False


def test_unknown_words_and_excluded_sentences(folder, tmp_path):
    pairs = [*random_pairs(40), ("zzz yyy", "xxx"), (WORDS[0], "zzz xxx")]
    write_pairs(folder / "pairs.parquet", pairs)
    record = made(folder, last_rank=30, number=1).record
    assert record.left_out["without a word that the encoder knows"] == 2


def test_a_corpus_with_fewer_sentences_than_ranks(folder):
    write_pairs(folder / "pairs.parquet", random_pairs(6)[:5])
    for first_rank in (8, 500):
        with pytest.raises(InputError):
            made(folder, str(first_rank), first_rank=first_rank, last_rank=600)
    # Pairs without sentences apart from their own.
    write_pairs(folder / "pairs.parquet", [(WORDS[0], WORDS[1])] * 3)
    with pytest.raises(InputError):
        made(folder, "alone", number=1)


def test_bad_input(folder, capsys):
    with refused("last_rank"):
        HardNegativesConfig(number=5, first_rank=3, last_rank=6)
    with pytest.raises(InputError):
        made(folder, max_score=-1.0)
    assert not (folder / "out").exists() and (folder / "out.work").exists()
    pq.write_table(pa.table({"a": ["x"]}), folder / "other.parquet")
    for data in ("other.parquet", "missing.parquet"):
        assert fails(capsys, ["negatives", str(folder / data), "--out", str(folder / "none")])
        assert not (folder / "none").exists()


def test_the_command(folder, capsys):
    words = ["negatives", str(folder / "pairs.parquet"), "--encoder", str(folder / "vectors.txt")]
    assert main([*words, "--out", str(folder / "out"), "--number", "1", "--selection", "first_pairs=100"]) == 0
    assert "negative_1" in capsys.readouterr().out
    record = json.loads((folder / "out" / "negatives.json").read_text())
    assert record["rows"] + record["left_out"].get("with too few negatives", 0) == 100
    assert record["source"] == "pairs.parquet"


def test_other_margins_use_the_vectors_of_a_try_that_found_nothing(folder, monkeypatch):
    with pytest.raises(InputError):
        made(folder, relative_margin=1.0)
    assert (folder / "out.work").exists()
    # The sentences are encoded already.
    monkeypatch.setattr(NamedEncoder, "load", None)
    again = made(folder, relative_margin=0.0, number=1)
    monkeypatch.undo()
    assert again.record.rows > 0 and not (folder / "out.work").exists()
    assert again.record.files == made(folder, "whole", relative_margin=0.0, number=1).record.files
