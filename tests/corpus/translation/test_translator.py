"""Settings and the step from table to table, without any model."""

import json
import math
import subprocess
import sys

import pyarrow as pa
import pytest

from paranmt_hf.corpus.translation.translator import TranslatorConfig, translate_table
from paranmt_hf.errors import InputError
from tests.corpus.translation.letters import ReversingTranslator


class TestTranslatorConfig:
    def test_the_papers_search_is_the_default(self):
        """ParaNMT-50M, section 3: beam search with 12 beams."""
        config = TranslatorConfig("model")
        assert (config.beam, config.max_source_tokens, config.max_target_tokens) == (12, 256, 256)
        assert (config.backend, config.dtype, config.device) == ("auto", "auto", None)

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            ({"name": " "}, "folder or a Hub id; got ' '"),
            ({"backend": "marian"}, "backend must be one of auto, transformers, ctranslate2, was 'marian'"),
            ({"dtype": "float8"}, "dtype must be one of auto, float32, float16, bfloat16, int8, was 'float8'"),
            ({"beam": 0}, "beam must be from 1 to 200, was 0"),
            ({"beam": 2.5}, "beam must be a whole number from 1 to 200, was 2.5"),
            ({"beam": True}, "beam must be a whole number from 1 to 200, was True"),
            ({"batch_tokens": 0}, "batch_tokens must be from 1 to 10,000,000, was 0"),
            ({"max_source_tokens": 1}, "max_source_tokens must be from 2 to 10,000, was 1"),
            ({"max_source_tokens": None}, "max_source_tokens must be a whole number from 2 to 10,000, was None"),
            ({"max_target_tokens": -5}, "max_target_tokens must be from 2 to 10,000, was -5"),
            ({"device": "gpu"}, "device must be cpu, cuda or cuda:N, was 'gpu'"),
            ({"dtype": "int8", "backend": "transformers"}, "'int8' needs backend ctranslate2"),
        ],
    )
    def test_bad_values_are_named(self, values, message):
        with pytest.raises(InputError, match=message):
            TranslatorConfig(**{"name": "model", **values})

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


def test_the_identity_of_the_fake_is_like_the_real_ones():
    """Guards the fake: what `translate_table` reads must be there and survive JSON."""
    identity = ReversingTranslator().identity
    assert json.loads(json.dumps(identity)) == identity
    assert math.isfinite(identity["max_source_tokens"])
