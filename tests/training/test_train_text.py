"""Training on sentences without paraphrases, from a teacher alone."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from paranmt_hf import EncoderConfig, PairSelection, TrainConfig, load, train
from paranmt_hf.corpus.reading.pairs import SIDES, Pairs
from paranmt_hf.corpus.reading.sentences import SentenceSources
from paranmt_hf.encoders.saving import save
from paranmt_hf.training.neighbours import NeighbourBatches
from paranmt_hf.training.teacher_vectors import TeacherVectors
from paranmt_hf.training.text import PairsAndText
from tests.refused import refused
from tests.training.toys import encoder_of, random_text, store_of


def sentences_of(mega):
    """Sentences of a mega-batch as tuples of rows."""
    bags = mega.bags["word"]
    return [tuple(bags.rows[low:high].tolist()) for low, high in zip(bags.offsets, bags.offsets[1:], strict=False)]


def test_each_distinct_sentence_comes_once_and_batches_stay_together(tmp_path):
    left = ["a b", "c", "a b", "d e", "c", "f g h"]
    right = ["b", "b", "a", "c", "e e", "g"]
    encoder = encoder_of((left, right), model="word", dimension=4)
    store = store_of((left, right), encoder, tmp_path / "pairs")
    row_of = {unit: row for row, unit in enumerate(encoder[0].units)}
    lines = ["a b", "b", "c", "a", "d e", "e e", "f g h", "g"]
    wanted = [tuple(row_of[word] for word in line.split()) for line in lines]
    # On a line, so that the neighbours are those that come next.
    keys = np.unique(store.keys())
    positions = {sentence: index for index, sentence in enumerate(wanted)}
    everything = store.everything()
    angles = np.zeros(len(keys))
    for key, sentence in zip(everything.keys.tolist(), sentences_of(everything), strict=True):
        angles[np.searchsorted(keys, key)] = positions[sentence] / 10
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float16)
    config = TrainConfig(teacher="any", batch_size=1, mega_batch=2)
    neighbours = NeighbourBatches(store, config, TeacherVectors(keys, vectors), torch.device("cpu"))
    # Eight distinct sentences are four pairs.
    assert neighbours.pairs == 4
    for epoch in range(3):
        # Mini-batches of one pair, two to a mega-batch.
        megas = list(neighbours.mega_batches(2, seed=1, epoch=epoch))
        assert [mega.pairs for mega in megas] == [2, 2]
        found = [sentences_of(mega) for mega in megas]
        assert sorted(sum(found, [])) == sorted(wanted)
        for first, second, third, fourth in found:
            for one, other in ((first, third), (second, fourth)):
                assert abs(positions[one] - positions[other]) == 1, "they are neighbours"
        (again,) = neighbours.mega_batches(2, seed=1, epoch=epoch, start=1)
        assert sentences_of(again) == found[1]


def test_text_stands_by_twos_behind_the_pairs(tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\n\nthree\n", encoding="utf8")
    (tmp_path / "b.txt").write_text(
        "four\nfive is a sentence of the test\nsix\nhe said that one two three four five six seven eight nine\n"
    )
    unwanted = {"Five is a sentence of the test!", "one two three four five six seven eight"}
    text = PairsAndText(None, SentenceSources([tmp_path / "a.txt", tmp_path / "b.txt"]), unwanted)
    rows = [row for table in text.batches() for row in zip(*(table[side].to_pylist() for side in SIDES), strict=True)]
    assert rows == [("one", "two"), ("three", "four"), ("six", "six")]
    assert text.left_out_by == {
        "sentences of text with a sentence of the excluded sets, or eight words of one": 2,
        "sentences of text dropped as empty": 1,
    }
    assert text.left_out == (
        "of 8 sentences of text 1 left out, dropped as empty, "
        "2 left out, with a sentence of the excluded sets, or eight words of one"
    )
    pa_table = pa.table({"reference": ["r"], "translation": ["t"]})
    pq.write_table(pa_table, tmp_path / "p.parquet")
    both = PairsAndText(Pairs([tmp_path / "p.parquet"], PairSelection()), SentenceSources([tmp_path / "a.txt"]))
    rows = [row for table in both.batches() for row in zip(*(table[side].to_pylist() for side in SIDES), strict=True)]
    assert rows == [("r", "t"), ("one", "two"), ("three", "three")]
    assert both.identity != text.identity


@pytest.fixture
def teacher(tmp_path):
    sides = random_text(60)
    save(encoder_of(sides, model="word", dimension=8), tmp_path / "teacher")
    (tmp_path / "text.txt").write_text("\n".join([*sides[0], *sides[1]]), encoding="utf8")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squares", "listwise"])
def test_a_student_follows_its_teacher_on_text_alone(teacher, loss):
    config = TrainConfig(
        teacher=str(teacher / "teacher"),
        teacher_loss=loss,
        neighbours=True,
        epochs=60,
        batch_size=8,
        learning_rate=0.02,
    )
    encoder = EncoderConfig(model="word", dimension=8)
    result = train(None, teacher / f"out-{loss}", text=teacher / "text.txt", encoder=encoder, config=config)
    lines = (teacher / "text.txt").read_text(encoding="utf8").split("\n")
    distinct = len(set(lines))
    assert result.record.history.pairs == 60 * (distinct // 2)
    assert result.record.inputs == {"teacher": "teacher", "text": "text.txt"}
    assert "paranmt train --data text.txt " in (result.folder / "README.md").read_text(encoding="utf8")
    cosines = []
    for model in (result.load(), load(teacher / "teacher")):
        vectors = torch.nn.functional.normalize(torch.from_numpy(model.encode(lines[:50])), dim=1)
        cosines.append((vectors @ vectors.T).flatten())
    assert np.corrcoef(np.stack([each.numpy() for each in cosines]))[0, 1] > 0.9
    again = train(None, teacher / f"again-{loss}", text=teacher / "text.txt", encoder=encoder, config=config)
    assert again.record.history.losses == result.record.history.losses


@pytest.mark.parametrize(
    ("settings", "others", "option"),
    [
        ({}, {}, "text"),
        ({"teacher": "teacher", "teacher_weight": 0.5}, {}, "text"),
        ({}, {"text": None}, None),
        ({"teacher": "teacher"}, {"selection": PairSelection(min_score=0.5)}, "data"),
        ({"teacher": "teacher"}, {"text": "empty.txt"}, None),
    ],
)
def test_text_needs_a_teacher_alone(teacher, monkeypatch, settings, others, option):
    monkeypatch.chdir(teacher)
    (teacher / "empty.txt").write_text("\n\n")
    with refused(option):
        train(None, "x", config=TrainConfig(**settings), **{"text": "text.txt", **others})
