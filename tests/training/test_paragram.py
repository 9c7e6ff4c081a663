"""Each architecture of PARAGRAM-PHRASE, trained: loaded by everybody, published, averaged, with what its card says."""

import json

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from paranmt_hf import EncoderConfig, PairSelection, TrainConfig, average_encoders, load, publish, train
from tests.training.toys import random_text, write_data

SENTENCES = ["w1 w2 w3", "w3 w2 w1", "unheard w1", "", "w2"]
ORDER = "It reads words in order"
SETTINGS = {
    "dan": {"layers": 2, "activation": "relu"},
    "rnn": {"activation": "relu"},
    "irnn": {},
    "plstm": {"output_gate": "without"},
}


@pytest.mark.parametrize(
    "model", ["dan", "plstm", *(pytest.param(name, marks=pytest.mark.slow) for name in ("rnn", "irnn"))]
)
def test_what_is_trained_goes_everywhere(tmp_path, model):
    data = write_data(tmp_path / "pairs.parquet", random_text(60))
    config = {"batch_size": 25, "mega_batch": 1, "lambda_c": 0.01, "clip": 1.0, "device": "cpu"}
    first, second = (
        train(
            data,
            tmp_path / f"{model}-{optimizer}",
            encoder=EncoderConfig(model=model, dimension=6, **SETTINGS[model]),
            config=TrainConfig(epochs=1, optimizer=optimizer, **config),
        )
        for optimizer in ("adam", "adagrad")
    )
    vectors = first.load().encode(SENTENCES)
    assert np.isfinite(vectors).all() and np.abs(vectors[0] - vectors[4]).max() > 1e-6
    plain = SentenceTransformer(str(first.folder), device="cpu", trust_remote_code=model != "dan")
    np.testing.assert_allclose(plain.encode(SENTENCES), vectors, atol=1e-6)
    # The classes lie beside the weights, so nothing of this package is needed.
    types = [entry["type"] for entry in json.loads((first.folder / "modules.json").read_text())]
    assert all(name.startswith("sentence_transformers.") for name in types) == (model == "dan")

    plan = publish(first.folder, "org/model", license="mit", dry_run=True)
    assert plan.left_here == []
    assert ("paranmt_recurrent.py" in plan.repository.files) == (model != "dan")
    assert "PARAGRAM-PHRASE (Wieting et al. 2016, section 3)" in plan.card
    assert (ORDER in plan.card) == (model != "dan")
    assert "Adam at 0.001" in plan.card and "AdaGrad at 0.001" in plan_card(second)
    for flag in ("clip=1", "lambda_c=0.01", f"--model {model}", "--mega-batch 1"):
        assert flag in plan.card

    average_encoders([first.folder, second.folder], tmp_path / "mean")
    mean = load(tmp_path / "mean", device="cpu").state_dict()
    for name, weight in first.load().state_dict().items():
        torch.testing.assert_close(mean[name], (weight + second.load().state_dict()[name]) / 2)


def plan_card(trained):
    return (trained.folder / "README.md").read_text(encoding="utf8")


def test_what_phrases_trained_is_known_again_and_published(tmp_path):
    """The files of PPDB are the data of this paper; a record that names them is read as any other."""
    rules = [
        f"[NN] ||| {first} ||| {second} ||| PPDB2.0Score=3.1 ||| 0-0 ||| Equivalence"
        for first, second in [("good", "nice"), ("car", "auto"), ("house", "home"), ("dog", "hound")]
    ]
    (tmp_path / "ppdb").write_text("\n".join(rules) + "\n")

    def run():
        return train(
            tmp_path / "ppdb",
            tmp_path / "word",
            encoder=EncoderConfig(model="word", dimension=4),
            config=TrainConfig(epochs=1, batch_size=2, mega_batch=1, device="cpu"),
            selection=PairSelection(min_score=1.0, ppdb_score="PPDB2.0Score"),
        )

    first, second = run(), run()
    assert first.fresh and not second.fresh and second.record == first.record
    plan = publish(first.folder, "org/model", license="mit", dry_run=True)
    assert "Trained on 4 pairs of sentences of ppdb." in plan.card
    assert "paranmt train --data ppdb " in plan.card and "--selection min_score=1,ppdb_score=PPDB2.0Score" in plan.card
