"""Speed is measured on text that was not seen before."""

import numpy as np
import pytest

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation import speed as module
from paranmt_hf.evaluation.speed import encoding_speed


class Counting:
    """An encoder on a clock that it moves itself: 2 ms for a sentence, 1 ms for those of the third part."""

    def __init__(self, monkeypatch):
        self.seen, self.now = [], 0.0
        monkeypatch.setattr(module.time, "process_time", lambda: self.now)

    def encode(self, sentences):
        self.now += len(sentences) * (0.001 if len(self.seen) == 2 else 0.002)
        self.seen.append(sentences)
        return np.zeros((len(sentences), 1))


def test_median_over_disjoint_parts(monkeypatch):
    encoder = Counting(monkeypatch)
    sentences = [f"sentence number {number}" for number in range(40)]
    speed = encoding_speed(encoder, sentences * 2, passes=3, count=8)
    # One part more than passes, the first of which does not count; rates are 500, 1000, 500.
    assert [len(part) for part in encoder.seen] == [8, 8, 8, 8]
    assert sum(encoder.seen, []) == sentences[:32]
    assert speed.sentences_per_second == 500 and speed.passes == 3
    assert speed.sentences == 8 and speed.words == 3.0 and speed.processor


def test_few_sentences_make_small_parts(monkeypatch):
    encoder = Counting(monkeypatch)
    assert encoding_speed(encoder, ["a", "b", "c", "d", "a b"], passes=3).sentences == 1
    with pytest.raises(InputError, match="at least 4 distinct sentences, there are 2"):
        encoding_speed(encoder, ["a", "b", "a"], passes=3)


def test_slow_encoders_are_not_asked_for_all_passes(monkeypatch):
    encoder = Counting(monkeypatch)
    monkeypatch.setattr(module.time, "monotonic", lambda: 30.0 * len(encoder.seen))
    assert encoding_speed(encoder, [str(number) for number in range(100)], passes=5).passes == 1
