"""Settings, batches, memory, order, and the step from table to table, without any model."""

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
import torch

from paranmt_hf import InputError, TranslatorConfig
from paranmt_hf.corpus.translation.batches import MemoryGuard, token_batches
from paranmt_hf.corpus.translation.translator import translate_table
from tests.corpus.translation.letters import LetterCodec, ReversingTranslator
from tests.refused import refused


class TestTranslatorConfig:
    def test_the_papers_search_is_the_default(self):
        """ParaNMT-50M, section 3: beam search with 12 beams."""
        config = TranslatorConfig("model")
        assert (config.beam, config.max_source_tokens, config.max_target_tokens) == (12, 256, 256)
        assert (config.backend, config.dtype, config.device) == ("auto", "auto", None)

    @pytest.mark.parametrize(
        ("values", "option"),
        [
            ({"name": " "}, "name"),
            ({"backend": "marian"}, "backend"),
            ({"dtype": "float8"}, "dtype"),
            ({"beam": 0}, "beam"),
            ({"beam": 2.5}, "beam"),
            ({"batch_tokens": 0}, "batch_tokens"),
            ({"max_source_tokens": 1}, "max_source_tokens"),
            ({"max_target_tokens": -5}, "max_target_tokens"),
            ({"device": "gpu"}, "device"),
            ({"dtype": "int8", "backend": "transformers"}, "backend"),
            ({"hypotheses": 13}, "hypotheses"),
            ({"hypotheses": 0}, "hypotheses"),
            ({"beam_groups": 5}, "beam_groups"),
            ({"beam_groups": 3, "sample": True}, None),
            ({"sample": True, "temperature": 0.0}, "temperature"),
            ({"sample": True, "top_p": 1.5}, "top_p"),
        ],
    )
    def test_bad_values_are_named(self, values, option):
        with pytest.raises(InputError) as caught:
            TranslatorConfig(**{"name": "model", **values})
        assert caught.value.option == option

    def test_the_settings_are_quick_to_import(self):
        program = (
            "import sys, paranmt_hf.corpus.translation.translator\n"
            "print([name for name in ('torch', 'transformers', 'ctranslate2') if name in sys.modules])"
        )
        output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        assert output.strip() == "[]"


@pytest.mark.parametrize("kind", [pa.Table, pa.RecordBatch])
class TestTranslateTable:
    def test_by_hand(self, kind):
        batch = kind.from_pydict(
            {
                "id": pa.array([7, 8, 9, 12], pa.int64()),
                "source": ["ab c", "much too long", "", "x y"],
                "reference": ["One two", "three", "four", "five"],
            }
        )
        table, dropped = translate_table(batch, ReversingTranslator())
        assert table.to_pydict() == {
            "id": [7, 12],
            "reference": ["One two", "five"],
            "translation": ["c ba", "y x"],
            "source": ["ab c", "x y"],
            "translation_score": [-5.0, -4.0],
        }
        assert dropped == {"source over 10 pieces": 1, "empty translation": 1}
        assert table.schema.field("translation_score").type == pa.float32()
        assert table.schema.field("id").type == pa.int64()

    def test_no_rows(self, kind):
        empty = pa.schema([("id", pa.int64()), ("source", pa.string()), ("reference", pa.string())]).empty_table()
        batch = empty if kind is pa.Table else pa.RecordBatch.from_pylist([], schema=empty.schema)
        table, dropped = translate_table(batch, ReversingTranslator())
        assert table.num_rows == 0
        assert table.schema.types == [pa.int64(), pa.string(), pa.string(), pa.string(), pa.float32()]
        assert dropped == {}


class TestTokenBatches:
    def test_by_hand(self):
        """Longest first; 3 x 5 fits into 16 and 4 x 5 does not; equal lengths keep their order."""
        batches = token_batches([3, 5, 1, 5, 5, 2, 3], budget=16)
        assert [batch.tolist() for batch in batches] == [[1, 3, 4], [0, 6, 5, 2]]

    def test_nothing(self):
        assert token_batches([], budget=10) == []

    @pytest.mark.parametrize("budget", [1, 40, 300])
    def test_every_sentence_once_and_within_the_budget(self, budget):
        lengths = np.random.default_rng(3).integers(1, 60, 500)
        batches = token_batches(lengths, budget)
        assert sorted(np.concatenate(batches)) == list(range(500))
        assert all(len(batch) == 1 or len(batch) * lengths[batch].max() <= budget for batch in batches)
        tops = [int(lengths[batch].max()) for batch in batches]
        assert all(first >= second for first, second in pairwise(tops))


OUT_OF_MEMORY = [
    MemoryError(),
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    RuntimeError("CUDA failed with error out of memory"),
    RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 99 bytes"),
]


class TestMemoryGuard:
    @pytest.mark.parametrize("error", OUT_OF_MEMORY, ids=lambda error: type(error).__name__ + str(error)[:12])
    def test_a_batch_is_halved_until_it_fits(self, error):
        lengths = np.full(9, 10)
        sizes = []

        def work(part):
            sizes.append(len(part))
            if len(part) > 2:
                raise error
            return part.tolist()

        done = MemoryGuard("lower beam").run(np.arange(9), lengths, work)
        assert [index for _, result in done for index in result] == list(range(9))
        assert all(part.tolist() == result for part, result in done)
        assert [size for size in sizes if size > 2] == [9, 5, 3], "a size that failed is not tried again"

    def test_the_limit_found_holds_for_later_batches(self):
        guard, sizes = MemoryGuard("lower beam"), []

        def work(part):
            sizes.append(len(part))
            if len(part) > 4:
                raise MemoryError
            return None

        guard.run(np.arange(8), np.full(8, 10), work)
        sizes.clear()
        guard.run(np.arange(8), np.full(8, 10), work)
        assert sizes == [4, 4]
        sizes.clear()
        with pytest.raises(InputError):
            # Shorter sentences: more of them are tried at once.
            guard.run(np.arange(8), np.full(8, 5), lambda part: (sizes.append(len(part)), work(np.arange(9))))
        assert sizes[0] == 8

    def test_one_sentence_that_does_not_fit_says_what_to_lower(self):
        def work(part):
            raise MemoryError

        with refused():
            MemoryGuard("lower beam, max_source_tokens").run(np.arange(2), np.array([7, 6]), work)


class TestBatchTranslator:
    @pytest.mark.parametrize("workers", [1, 3])
    def test_the_order_is_restored(self, workers):
        rng = np.random.default_rng(5)
        sentences = ["".join(rng.choice(list("abcdef"), rng.integers(1, 9))) for _ in range(200)]
        translator = ReversingTranslator(workers=workers)
        result = translator.translate(sentences)
        assert result.texts == [text[::-1] for text in sentences]
        assert result.scores.dtype == np.float32
        assert result.scores.tolist() == [-(len(text) + 1) for text in sentences]
        assert len(translator.batches) > 10

    def test_too_long_is_none_and_the_limit_itself_is_not(self):
        result = ReversingTranslator().translate(["a" * 9, "a" * 10, "b"])
        assert result.texts == ["a" * 9, None, "b"]
        assert np.isnan(result.scores).tolist() == [False, True, False]

    def test_blank_sentences_reach_no_model(self):
        translator = ReversingTranslator()
        result = translator.translate(["", " \t", "\u00a0"])
        assert result.texts == ["", "", ""]
        assert np.isnan(result.scores).all()
        assert translator.batches == []

    def test_nothing(self):
        result = ReversingTranslator().translate([])
        assert result.texts == []
        assert result.scores.shape == (0,)

    def test_a_repeated_sentence_is_translated_once(self):
        translator = ReversingTranslator()
        assert translator.translate(["abc", "de", " abc ", "abc"]).texts == ["cba", "ed", "cba", "cba"]
        assert sorted(length for batch in translator.batches for length in batch) == [3, 4]

    def test_white_space_of_translations_is_normalised(self):
        class Spaced(LetterCodec):
            def decode(self, hypotheses):
                return [f" {text[0]}\u3000 {text[1:]}\n" for text in super().decode(hypotheses)]

        translator = ReversingTranslator()
        translator._checkpoint = Spaced()
        assert translator.translate(["abc", "x\u3000y\n"]).texts == ["c ba", "y x"]

    @pytest.mark.parametrize("workers", [1, 2])
    def test_little_memory_changes_nothing_but_the_batches(self, workers):
        sentences = [chr(97 + number % 26) * (1 + number % 9) for number in range(60)]
        ample = ReversingTranslator(batch_tokens=200)
        scarce = ReversingTranslator(batch_tokens=200, workers=workers, capacity=25)
        expected, result = ample.translate(sentences), scarce.translate(sentences)
        assert result.texts == expected.texts
        assert np.array_equal(result.scores, expected.scores)
        assert len(scarce.batches) > 2 * len(ample.batches)
