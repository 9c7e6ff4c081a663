"""find_adversarial(): which paraphrases change the label of sentences that a classifier gets right."""

import json
import shutil

import pytest
import torch
from transformers import BertForSequenceClassification

from paranmt_hf import InputError
from paranmt_hf.hub.repository import ASSETS
from paranmt_hf.paraphrase import paraphrase_file as files
from paranmt_hf.paraphrase.adversarial import AdversarialSearch, find_adversarial, find_classifier
from paranmt_hf.paraphrase.paraphraser import Paraphrase, Paraphrased, Paraphraser
from tests.paraphrase.paraphraser_toys import LOCAL, SENTENCES, label_of, stopped_job, write_classifier
from tests.refused import refused

# Twelve sentences; the classifier gets those with a man or a woman right, and no others.
ROWS = [{"text": text, "label": label_of(text)} for text in SENTENCES[::6]]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def always_people(sentences):
    return ["others" if sentence.startswith("changed") else "people" for sentence in sentences]


def _given(own, sentences, config=None):
    """Three paraphrases, of which the second and the third are changed; of sentences about dogs none."""
    texts = ("same {}", "changed {}", "changed again {}")
    return [
        Paraphrased([], "nothing generated")
        if "dog" in source
        else Paraphrased([Paraphrase(text.format(source), 0.8) for text in texts], None)
        for source in sentences
    ]


def run(file, out, model, classifier=always_people, **config):
    settings = {"n": 10, "min_score": -1.0, "sample": True, "max_length": 12, "device": "cpu", **config}
    search = AdversarialSearch(**settings)
    return find_adversarial(file, out, model=model, classifier=classifier, search=search, engine=LOCAL)


def test_by_hand(file, model, tmp_path, monkeypatch):
    monkeypatch.setattr(Paraphraser, "paraphrase", _given)
    done = run(file, tmp_path / "out.jsonl", model, n=3)
    right = [at for at, row in enumerate(ROWS) if row["label"] == "people"]
    tried = [at for at in right if "dog" not in ROWS[at]["text"]]
    assert 0 < len(tried) < len(right) < len(ROWS)
    own = done.record
    assert (own.total("sentences"), own.total("right"), own.total("tried")) == (len(ROWS), len(right), len(tried))
    assert [own.total(name) for name in ("broken", "paraphrases", "changed")] == [n * len(tried) for n in (1, 3, 2)]
    assert done.before == len(right) / len(ROWS) and done.after == pytest.approx((len(right) - len(tried)) / len(ROWS))
    others = len(ROWS) - len(right)
    counts = {"right": 0, "tried": 0, "broken": 0, "paraphrases": 0, "changed": 0}
    assert own.labels["others"] == {"sentences": others, **counts}
    assert own.labels["people"]["right"] == own.labels["people"]["sentences"] == len(right)
    assert own.notes == {"nothing generated": len(right) - len(tried)}
    assert f"{len(tried)} sentences broken" in done.summary()
    rows = [json.loads(line) for line in done.folder.read_text().splitlines()]
    assert [row["index"] for row in rows] == tried
    for row in rows:
        text = ROWS[row["index"]]["text"]
        assert (row["source"], row["paraphrase"], row["rank"]) == (text, f"changed {text}", 2)
        assert (row["label"], row["predicted"], row["score"]) == ("people", "others", pytest.approx(0.8))
    again = run(file, tmp_path / "out.jsonl", model, n=3)
    assert not again.fresh and again.record == own and again.before == done.before
    with refused("out", path=tmp_path / "out.jsonl"):
        run(file, tmp_path / "out.jsonl", model, n=4)


def test_a_row_without_text_is_an_empty_sentence(model, tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text('{"text": null, "label": "people"}\n{"text": "the man sees a dog .", "label": "people"}\n')
    done = run(file, tmp_path / "out.jsonl", model, n=1)
    assert [done.record.total(name) for name in ("sentences", "right", "tried")] == [2, 2, 1]
    assert done.record.notes == {"empty line": 1}


@pytest.mark.slow
def test_work_that_was_stopped_continues(file, model, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "SHARD_ROWS", 2)

    def by_length(sentences):
        return ["people" if len(sentence) % 3 else "others" for sentence in sentences]

    whole = run(file, tmp_path / "whole.tsv", model, by_length)
    with stopped_job():
        run(file, tmp_path / "out.tsv", model, by_length)
    again = run(file, tmp_path / "out.tsv", model, by_length)
    assert again.folder.read_bytes() == whole.folder.read_bytes()
    assert again.record == whole.record and 0 < whole.record.total("broken")


@pytest.fixture(scope="module")
def bert(model, tmp_path_factory):
    """A tiny classifier of transformers with random weights."""
    return write_classifier(tmp_path_factory.mktemp("bert") / "bert", model)


@pytest.mark.slow
def test_a_classifier_of_transformers(bert, model, tmp_path):
    from transformers import AutoTokenizer

    judge = find_classifier(bert)
    tokenizer, plain = AutoTokenizer.from_pretrained(bert), BertForSequenceClassification.from_pretrained(bert).eval()
    with torch.inference_mode():
        expected = [int(plain(**tokenizer([text], return_tensors="pt")).logits.argmax()) for text in SENTENCES]
    assert judge.labels_of(SENTENCES, 0) == expected
    assert judge.labels_of(SENTENCES, "x") == [("others", "people")[at] for at in expected]
    # Labels of a file are names, or numbers of classes.
    path = tmp_path / "rows.jsonl"
    path.write_text(
        "".join(json.dumps({"text": text, "label": at}) + "\n" for text, at in zip(SENTENCES, expected, strict=True))
    )
    done = run(path, tmp_path / "out.tsv", model, bert, n=2)
    assert done.record.total("right") == done.record.total("sentences") == len(SENTENCES)
    lines = [f"{text}\t{at}\n" for text, at in zip(SENTENCES, expected, strict=True)]
    (tmp_path / "rows.tsv").write_text("text\tlabel\n" + "".join(lines))
    same = run(tmp_path / "rows.tsv", tmp_path / "same.tsv", model, bert, n=2)
    assert same.record.labels == done.record.labels
    assert (tmp_path / "same.tsv").read_bytes() == done.folder.read_bytes()
    path.write_text('{"text": "a man", "label": 2}\n')
    with pytest.raises(
        InputError, match=r"has the label 2, and the classifier gives others, people \(or, .* 0 to 1\)"
    ):
        run(path, tmp_path / "other.tsv", model, bert)


@pytest.mark.slow
def test_other_models_are_no_classifiers(file, model, tmp_path):
    with pytest.raises(InputError, match="cannot be read as a text classifier"):
        run(file, tmp_path / "out.tsv", model, model)
    (shutil.copytree(model, tmp_path / "trained") / "paraphraser.json").write_text("{}")
    with pytest.raises(InputError, match=r"trained is a paraphraser, not a classifier; expected a model of `paranmt"):
        run(file, tmp_path / "out.tsv", model, tmp_path / "trained")
    with pytest.raises(InputError, match="small is an encoder, not a classifier"):
        run(file, tmp_path / "out.tsv", model, ASSETS / "small")
    with pytest.raises(InputError, match="no model 'nothing/at/all'"):
        run(file, tmp_path / "out.tsv", model, "nothing/at/all")
    with pytest.raises(InputError, match="gave 1 labels for 12 sentences|gave 1 labels for 13 sentences"):
        run(file, tmp_path / "out.tsv", model, lambda sentences: ["people"])
