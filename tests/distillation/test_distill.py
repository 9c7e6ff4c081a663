"""An encoder from a teacher and text: likeness against a plain program, and the steps on toy encoders."""

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file

from paranmt_hf import DistillConfig, InputError, distill, load
from paranmt_hf.corpus.reading.sentences import SentenceSources
from paranmt_hf.distillation import distill_steps as workflow
from paranmt_hf.distillation.likeness import NEIGHBOURS, likeness
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.encoders.saving import save
from paranmt_hf.training import fit as training
from paranmt_hf.training.card import distill_commands
from paranmt_hf.training.inputs import PairsAndText
from paranmt_hf.training.record import TrainingRecord
from paranmt_hf.training.text import split_text
from tests.encoders.toys import tiny_bert
from tests.refused import refused
from tests.training.toys import encoder_of, random_text

TEXT = [f"{left} w{index % 45} {right}" for index, (left, right) in enumerate(zip(*random_text(700), strict=True))]
ENGLISH = ["the man is walking in the street", "a dog runs in the garden", "two women are playing music outside"]
CONFIG = DistillConfig(epochs=4, dimension=4)


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    """A folder with text, pairs and an averaging teacher."""
    folder = tmp_path_factory.mktemp("distill")
    (folder / "text.txt").write_text("\n".join([*TEXT, TEXT[0].upper()]))
    rows = [
        f"{len(set(TEXT[row].split()) & set(TEXT[row + 9].split()))}\t{TEXT[row]}\t{TEXT[row + 9]}" for row in range(9)
    ]
    (folder / "judged.tsv").write_text("\n".join(rows))
    save(encoder_of((TEXT, TEXT), dimension=16), folder / "teacher")
    pq.write_table(pa.table({"reference": TEXT[:60], "translation": TEXT[60:120]}), folder / "pairs.parquet")
    pieces = list("abcdefghijklmnopqrstuvwxyz0123456789")
    pieces += [f"##{piece}" for piece in pieces]
    tiny_bert(folder / "bert", pieces, width=16).rename(folder / "transformer")
    return folder


@pytest.mark.slow
def test_likeness_equals_a_plain_program():
    generator = np.random.default_rng(1)
    teacher = generator.standard_normal((NEIGHBOURS, 5))
    vectors = teacher + generator.standard_normal((NEIGHBOURS, 5))

    def cosines(side):
        pairs = combinations(side, 2)
        return [a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in pairs]

    wanted = np.corrcoef(cosines(vectors), cosines(teacher))[0, 1]
    assert 0.1 < wanted < 0.9
    assert likeness(vectors, teacher) == pytest.approx(wanted)
    # Lengths do not count, nor do the sentences of an incomplete group.
    assert likeness(3 * vectors, teacher) == pytest.approx(wanted)
    assert likeness(teacher, teacher) == pytest.approx(1)
    assert likeness(np.ones_like(teacher), teacher) == 0
    more = generator.standard_normal((4 * NEIGHBOURS + 7, 5))
    assert likeness(more, more) == pytest.approx(1)
    # Among neighbours it is harder than among all.
    noisy = more + generator.standard_normal(more.shape)
    assert likeness(noisy, more) < np.corrcoef(cosines(noisy), cosines(more))[0, 1]


def test_an_averaging_teacher_gives_its_words(root, tmp_path):
    options = {"text": root / "text.txt", "config": CONFIG, "evaluate": root / "judged.tsv"}
    found = distill(root / "teacher", out=tmp_path / "out", **options)
    record = found.record
    distinct = len(set(TEXT))
    # A tenth in whole groups; a sentence in upper case is no other.
    assert record.held_out == distinct // 10 // 50 * 50 == 50
    assert record.sentences == distinct - record.held_out
    assert (record.start, record.epochs, record.dimension) == ("words", 4, 4)
    assert 0.5 < min(record.likeness.values()) < 0.99
    assert record.scores.keys() == {"start", "encoder"} and record.scores["encoder"].keys() == {"judged"}
    assert found.load().get_embedding_dimension() == 4
    assert TrainingRecord.read(found.folder).inputs == {
        "teacher": "teacher",
        "text": "text.txt",
        "vectors": "vectors.txt",
    }
    command = "paranmt distill teacher --text text.txt --dimension 4 --epochs 4 --out FOLDER"
    assert distill_commands(found.folder) == [command]
    assert command in (found.folder / "README.md").read_text()
    again = distill(root / "teacher", out=tmp_path / "out", **options)
    assert not again.fresh and again.record == record
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_with_all_dimensions_the_words_of_an_averaging_teacher_are_its_vectors(root, tmp_path):
    found = distill(root / "teacher", out=tmp_path / "out", text=root / "text.txt", config=DistillConfig(epochs=1))
    assert found.record.likeness["start"] == pytest.approx(1, abs=1e-4)


def test_the_teacher_reads_a_sentence_once_and_none_that_is_held_out_is_trained_on(root, tmp_path, monkeypatch):
    texts = []
    monkeypatch.setattr(
        workflow, "train", lambda data, out, text, **more: texts.append(pq.read_table(text[0])) or 1 / 0
    )
    config = DistillConfig(epochs=1, teacher_cache=str(tmp_path / "cache"), seed=3)
    with pytest.raises(ZeroDivisionError):
        distill(root / "teacher", out=tmp_path / "out", text=root / "text.txt", config=config)
    trained = texts[0]["sentence"].to_pylist()
    parts = [load_file(path)["codes"] for path in (tmp_path / "cache").glob("*/part-*")]
    codes = torch.cat(parts)
    # The words of an averaging teacher are read too, alone.
    words = {word for sentence in trained for word in sentence.split()}
    assert len(codes) == len(codes.unique()) == len(set(TEXT) | words)
    assert len(set(TEXT)) == len(trained) + 50
    assert set(trained) < set(TEXT)
    monkeypatch.undo()
    before = {path: path.read_bytes() for path in (tmp_path / "cache").glob("*/part-*")}
    distill(root / "teacher", out=tmp_path / "out", text=root / "text.txt", config=config)
    assert {path: path.read_bytes() for path in (tmp_path / "cache").glob("*/part-*")} == before


@pytest.mark.slow
def test_a_transformer_is_read_in_context_and_a_start_follows_from_the_text(root, tmp_path):
    found = distill(root / "transformer", out=tmp_path / "out", text=root / "text.txt", config=DistillConfig(epochs=2))
    assert (found.record.start, found.record.dimension) == ("words", 16)
    assert found.record.likeness["encoder"] > found.record.likeness["start"]
    english = tmp_path / "english.txt"
    english.write_text("\n".join(f"{sentence} w{index}" for index in range(4) for sentence in ENGLISH))
    found = distill(root / "transformer", out=tmp_path / "base", text=english, config=DistillConfig(epochs=1))
    assert (found.record.start, found.record.dimension) == ("base", load("base").get_embedding_dimension())
    assert found.record.likeness is None and found.record.held_out == 0
    config = DistillConfig(epochs=1, start=str(root / "teacher"))
    found = distill(root / "transformer", out=tmp_path / "named", text=root / "text.txt", config=config)
    assert found.record.start == "teacher" and "--start teacher " in found.record.command
    # No folder of this computer is in what is published.
    assert str(root) not in (found.folder / "distillation.json").read_text()


def test_pairs_give_the_mean_of_both_steps(root, tmp_path):
    options = {"text": root / "text.txt", "data": root / "pairs.parquet", "config": CONFIG}
    found = distill(root / "teacher", out=tmp_path / "out", **options)
    record = TrainingRecord.read(found.folder)
    assert [part.name for part in record.mean_of] == ["lists", "margin"]
    assert found.record.command.split("--data ")[1].startswith("pairs.parquet ")


@pytest.mark.slow
def test_interrupted_at_each_step_it_has_the_same_bytes(root, tmp_path, monkeypatch):
    options = {"text": root / "text.txt", "data": root / "pairs.parquet", "config": CONFIG}
    whole = distill(root / "transformer", out=tmp_path / "whole", **options)
    steps = [(workflow, "distill_vectors"), (training, "fit_encoder"), (workflow, "_scores")]
    for module, name in steps:
        with monkeypatch.context() as patch:
            patch.setattr(module, name, lambda *arguments, **more: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                distill(root / "transformer", out=tmp_path / "again", **options)
    again = distill(root / "transformer", out=tmp_path / "again", **options)
    assert again.record.likeness == whole.record.likeness
    for name in ("model.safetensors", "tokenizer.json"):
        assert (again.folder / name).read_bytes() == (whole.folder / name).read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"whole", "again"}


def test_what_cannot_be_evaluated_costs_no_vectors_of_the_teacher(root, tmp_path, monkeypatch):
    # No word of the sample is known.
    with refused():
        distill(root / "teacher", out=tmp_path / "out", text=root / "text.txt", config=CONFIG, evaluate="sample")
    assert list(tmp_path.glob("out.work/teacher/*/part-*"))
    monkeypatch.setattr("paranmt_hf.training.teacher_vectors._encode_missing", None)
    assert distill(root / "teacher", out=tmp_path / "out", text=root / "text.txt", config=CONFIG).fresh


def test_epochs_follow_from_the_text():
    def epochs(sentences, **more):
        return workflow.DistillSteps(Path(), [], [], DistillConfig(**more), Path(), [""] * sentences, [], None).epochs

    assert [epochs(count) for count in (2, 250_000, 250_001, 1_000_000, 3_000_001)] == [12, 12, 11, 3, 1]
    assert epochs(2, epochs=40) == 40


@pytest.mark.parametrize(
    ("given", "option"),
    [
        ({"teacher": "missing.py:encode"}, "teacher"),
        ({"teacher": ["module.that.is.missing:encode"]}, "teacher"),
        ({"teacher": "teacher", "config": {"teacher_prompt": ("a", "b")}}, "teacher_prompt"),
        ({"config": {"start": "base", "dimension": 3}}, "start"),
        ({"text": "one.txt"}, "text"),
        ({"config": {"dimension": 17}}, "dimension"),
        ({"out": "teacher/out"}, "out"),
        ({"config": {"start": "trigrams", "words": 9}}, "words"),
        ({"translations": "text.txt", "language": "de", "config": {"start": "words"}}, "start"),
        ({"translations": "text.txt", "language": "de", "config": {"words": 9}}, "words"),
        ({"translations": "text.txt"}, "language"),
        ({"language": "de", "evaluate": "sample"}, "evaluate"),
        ({"translations": "text.txt", "language": "de", "evaluate": "sample"}, "evaluate"),
        ({"translations": [], "language": "de"}, "translations"),
        # Nobody reads the translations.
        ({"translations": "text.txt", "language": "de", "teacher": []}, "teacher"),
        ({"language": "ja", "teacher": []}, "teacher"),
        ({"language": "german"}, None),
        ({"text": "both.tsv"}, "language"),
        ({"text": "both.tsv", "language": "de", "config": {"start": "words"}}, "start"),
        ({"text": "blank.txt"}, "text"),
        ({"text": "latin.txt"}, "text"),
    ],
)
def test_bad_input_leaves_nothing(root, tmp_path, given, option):
    (root / "one.txt").write_text("a\nA\n")
    (root / "both.tsv").write_text("sentence\ttranslation\nein Hund geht nach Hause\ta dog is going home\n")
    (root / "blank.txt").write_text("\n\n")
    (root / "latin.txt").write_bytes("für\nüber\nein\n".encode("latin-1"))
    options = {"text": "text.txt", "out": tmp_path / "out", "teacher": "teacher"} | given
    settings = options.pop("config", {})
    options |= {name: root / options[name] for name in ("text", "translations", "out") if options.get(name)}
    if isinstance(options["teacher"], str):
        options["teacher"] = root / options["teacher"]
    with refused(option):
        distill(**options, config=DistillConfig(**settings))
    assert not list(tmp_path.iterdir())


def test_the_record_is_json(root, tmp_path):
    found = distill(root / "teacher", out=tmp_path / "out", text=root / "text.txt", config=DistillConfig(epochs=1))
    values = json.loads((found.folder / "distillation.json").read_text())
    assert values["settings"]["config"] == {
        **{"start": None, "words": None, "dimension": None, "teacher_prompt": None},
        **{"epochs": 1, "held_out": 2000, "seed": 1},
    }


def foreign(sentence):
    """A sentence in a language of our own, whose words no teacher knows."""
    return " ".join(f"z{word[::-1]}" for word in sentence.split())


@pytest.mark.slow
def test_a_teacher_reads_the_translations_of_text_in_another_language(root, tmp_path):
    distinct = list(dict.fromkeys(TEXT))
    (tmp_path / "text.de").write_text("\n".join(map(foreign, distinct)))
    (tmp_path / "text.en").write_text("\n".join(distinct))
    options = {"text": tmp_path / "text.de", "config": DistillConfig(epochs=30)}
    found = distill(
        root / "teacher", out=tmp_path / "out", translations=tmp_path / "text.en", language="de", **options
    )
    assert (found.record.start, found.record.dimension) == ("trigrams", 16)
    assert found.record.likeness["encoder"] > max(0.8, found.record.likeness["start"])
    cosines = []
    for model, text in ((found.load(), map(foreign, distinct[:50])), (load(root / "teacher"), distinct[:50])):
        vectors = torch.nn.functional.normalize(torch.from_numpy(model.encode(list(text))), dim=1)
        cosines.append((vectors @ vectors.T).flatten().numpy())
    assert np.corrcoef(cosines)[0, 1] > 0.9
    assert "--text text.de --translations text.en --language de " in found.record.command
    card = (found.folder / "README.md").read_text()
    assert "language:\n- de\n" in card and "model.encode(sentences)" in card
    NamedEncoder(str(found.folder)).check_language("de")
    with pytest.raises(InputError):
        NamedEncoder(str(found.folder)).check_language("cs")
    # Another translation is another encoder.
    (tmp_path / "text.en").write_text("\n".join([*distinct[:-1], distinct[0]]))
    with refused("out", path=tmp_path / "out"):
        distill(root / "teacher", out=tmp_path / "out", translations=tmp_path / "text.en", language="de", **options)


def test_of_equal_sentences_the_first_translation_counts(tmp_path):
    (tmp_path / "a.de").write_text("eins\nzwei\n\nEINS\ndrei\nvier\n")
    (tmp_path / "a.en").write_text("one\ntwo\nthree\nuno\nthree, four five six\nfour\n")
    sources = SentenceSources([tmp_path / "a.de"], translations=[tmp_path / "a.en"])
    text = PairsAndText(None, sources, {"Three four five six"})
    others, held_out = split_text(text, 2000, NEIGHBOURS, 1)
    path = tmp_path / "text.parquet"
    pq.write_table(others, path)
    assert others.to_pydict() == {"sentence": ["eins", "zwei", "vier"], "translation": ["one", "two", "four"]}
    assert len(held_out) == 0
    again = PairsAndText(None, SentenceSources([path]))
    rows = [row for table in again.batches() for row in table.to_pylist()]
    assert [list(row.values()) for row in rows] == [["eins", "one", "zwei", "two"], ["vier", "four", "vier", "four"]]
    assert text.identity != PairsAndText(None, SentenceSources([tmp_path / "a.de"])).identity


@pytest.mark.parametrize("translations", [["two.txt"], ["two.txt", "two.txt"], ["pairs.parquet"]])
def test_translations_that_do_not_fit(root, tmp_path, translations):
    (root / "one.txt").write_text("a\nA\n")
    (root / "two.txt").write_text("a\n")
    files = [root / name for name in translations]
    with pytest.raises(InputError):
        distill(root / "teacher", out=tmp_path / "out", text=root / "one.txt", translations=files, language="de")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_start_that_is_no_average_costs_no_vectors_of_the_teacher(root, tmp_path, monkeypatch):
    text = {"text": root / "text.txt", "out": tmp_path / "out"}
    with refused("start"):
        distill(root / "teacher", config=DistillConfig(epochs=1, start=str(root / "transformer")), **text)
    assert not list(tmp_path.iterdir())
    # With the teacher's vectors another start continues.
    with monkeypatch.context() as patch:
        patch.setattr(workflow, "train", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            distill(root / "teacher", config=DistillConfig(epochs=1), **text)
    assert list((tmp_path / "out.work").glob("teacher/*/part-*"))
    with monkeypatch.context() as patch:
        patch.setattr("paranmt_hf.training.teacher_vectors._encode_missing", None)
        found = distill(root / "teacher", config=DistillConfig(epochs=1, start=str(root / "teacher")), **text)
    assert found.record.start == "teacher"
    record = TrainingRecord.read(found.folder)
    assert record.sentences == found.record.sentences
    assert f"Trained on {record.sentences:,} sentences of text.txt" in (found.folder / "README.md").read_text()


@pytest.mark.slow
def test_few_sentences_are_warned_of(root, tmp_path, caplog):
    (tmp_path / "text.txt").write_text("\n".join(TEXT[:5]))
    config = DistillConfig(epochs=1, start="trigrams")
    found = distill(root / "transformer", out=tmp_path / "out", text=tmp_path / "text.txt", config=config)
    assert found.record.dimension == 5
    assert any(record.levelname == "WARNING" and "5 dimensions" in record.message for record in caplog.records)


@pytest.mark.slow
def test_documents_teach_as_their_sentences_do(root, tmp_path):
    pytest.importorskip("sentencex")
    texts = [f"{text.capitalize()}." for text in TEXT[:120]]
    (tmp_path / "lines.txt").write_text("".join(f"{text}\n" for text in texts))
    (tmp_path / "documents.txt").write_text("".join(f"{' '.join(texts[n : n + 7])}\n" for n in range(0, 120, 7)))
    config = DistillConfig(epochs=1)
    distill(root / "teacher", out=tmp_path / "one", text=tmp_path / "lines.txt", config=config)
    distill(root / "teacher", out=tmp_path / "two", text=tmp_path / "documents.txt", split=True, config=config)
    one, two = ({path.name: path.read_bytes() for path in (tmp_path / name).glob("*.saf*")} for name in ("one", "two"))
    assert one == two and one
    assert "--text documents.txt --epochs 1 --split" in distill_commands(tmp_path / "two")[0]


def test_documents_in_one_language_without_translations(root, tmp_path):
    pytest.importorskip("sentencex")
    options = {"text": root / "text.txt", "out": tmp_path / "out", "split": True}
    with refused("language"):
        distill(root / "teacher", **options, language=["en", "de"])
    with refused("split"):
        distill(root / "teacher", **options, translations=root / "text.txt", language="de")
