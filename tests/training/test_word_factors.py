"""One trained factor for each word: footnote 24 of arXiv:1511.08198."""

import numpy as np
import pytest
import torch

from paranmt_hf import EncoderConfig, TrainConfig, train
from paranmt_hf.encoders.building import trainable
from paranmt_hf.training.fit import fit_encoder
from tests.refused import refused
from tests.training.toys import dense_steps, encoder_of, random_text, store_of, synonyms, weights_of, write_data


def by_hand(weight, store, config):
    """Steps in plain torch, over the sum of each sentence's rows times their factors."""
    factors = torch.ones(len(weight), 1, requires_grad=True)

    def encode(mega, sentences):
        bags = mega.bags["word"].take(sentences)
        rows = (weight * factors)[torch.from_numpy(bags.rows).long()]
        return torch.stack([part.mean(dim=0) for part in rows.split(np.diff(bags.offsets).tolist())])

    megas = store.mega_batches(config.mega_pairs, seed=config.seed, epoch=0)
    losses = dense_steps(encode, [factors], megas, config)
    return factors.detach(), losses


@pytest.mark.parametrize(("optimizer", "rate"), [("adam", 0.01), ("adagrad", 0.05)])
def test_factors_are_learned_and_multiplied_in(tmp_path, optimizer, rate):
    sides = random_text(60)
    config = TrainConfig(
        batch_size=15, mega_batch=1, epochs=1, learning_rate=rate, optimizer=optimizer, word_factors=True
    )
    model = trainable(encoder_of(sides, dimension=6, words=30))
    store, before = store_of(sides, model, tmp_path / "pairs"), model[0].weight.clone()
    history = fit_encoder(model.train(), store, config, tmp_path)
    factors, losses = by_hand(before, store, config)
    np.testing.assert_allclose([loss for _, loss in history.losses], losses, atol=2e-5)
    torch.testing.assert_close(model[0].weight, before * factors, atol=1e-5, rtol=1e-4)
    assert (factors[1:] - 1).abs().max() > 0.01 and not model[0].weight[0].any()
    # It is a table like any other again.
    assert type(model[0].embedding).__name__ == "EmbeddingBag" and model[0].embedding.weight.requires_grad


@pytest.mark.slow
@pytest.mark.usefixtures("checkpoint_always")
def test_a_run_and_its_interruption(tmp_path, killed_after, counting):
    """Vectors keep their directions; a development set is measured with the factors of the moment."""
    from paranmt_hf.training.trainer_run import HistoryCallback

    data = write_data(tmp_path / "pairs.parquet", synonyms(60))
    lines = [f"{n % 2}\t{a}\t{b}" for n, (a, b) in enumerate(zip(*synonyms(20, seed=3), strict=True))]
    (tmp_path / "dev.tsv").write_text("\n".join(lines) + "\n")
    config = TrainConfig(batch_size=10, mega_batch=2, epochs=2, learning_rate=0.1, word_factors=True)
    settings = {"encoder": EncoderConfig(dimension=8), "config": config, "development": tmp_path / "dev.tsv"}
    whole = train(data, tmp_path / "whole", **settings)
    scores = [score for _, score in whole.record.history.scores]
    assert len(set(scores)) == 2 and whole.record.development == pytest.approx(max(scores), abs=1e-6)
    plain = train(data, tmp_path / "plain", **{**settings, "config": TrainConfig(epochs=1, learning_rate=1e-9)})
    words = plain.load().composition.parts[0].vocabulary.units[1:]
    before, after = plain.load().encode(words), whole.load().encode(words)
    cosines = (before * after).sum(axis=1) / np.linalg.norm(before, axis=1) / np.linalg.norm(after, axis=1)
    np.testing.assert_allclose(cosines, 1, atol=1e-4)
    assert np.ptp(np.linalg.norm(after, axis=1) / np.linalg.norm(before, axis=1)) > 0.1
    killed_after(8, train, data, tmp_path / "out", kind=HistoryCallback, name="on_step_end", **settings)
    _, steps = counting(HistoryCallback, "on_step_end", train, data, tmp_path / "out", **settings)
    assert steps < 12
    assert weights_of(tmp_path / "out") == weights_of(tmp_path / "whole")


@pytest.mark.parametrize("others", [{"freeze_words": True}, {"lambda_w": 0.1}, {"lambda_c": 0.1}])
def test_what_has_no_effect_beside_it(others):
    with refused("word_factors"):
        TrainConfig(word_factors=True, **others)


def test_other_models(tmp_path):
    data = write_data(tmp_path / "pairs.parquet", synonyms(20))
    settings = {"encoder": EncoderConfig(model="word,trigram"), "config": TrainConfig(word_factors=True)}
    with refused("word_factors"):
        train(data, tmp_path / "out", **settings)
    assert not (tmp_path / "out.work").exists()
