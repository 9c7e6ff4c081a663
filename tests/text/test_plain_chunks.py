"""The memory of chunks without compiled loops numbers chunks and finds tokens as the compiled one does."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf.text.chunk_memory import ChunkMemory
from paranmt_hf.text.plain_chunks import PlainChunkMemory
from paranmt_hf.text.tokens import text_bytes

texts = st.lists(st.text("ab é\t", max_size=9), max_size=6)


def filled(memory, column):
    """The numbers of the chunks of a column and their bounds, the new chunks, and the tokens: one for each letter."""
    known = len(memory)
    numbers, bounds = memory.numbers(*text_bytes(pa.array(column, pa.string())))
    new = memory.without_tokens().to_pylist()
    assert len(new) == len(memory) - known
    letters = [ord(letter) for chunk in new for letter in chunk]
    memory.add_tokens(np.array(letters, np.int32), np.cumsum([len(chunk) for chunk in new], dtype=np.int64))
    ids, ends = memory.tokens(numbers, bounds)
    return numbers.tolist(), bounds.tolist(), new, ids.tolist(), ends.tolist()


@given(texts, texts)
def test_as_the_compiled_memory(first, second):
    compiled, plain = ChunkMemory(), PlainChunkMemory()
    for column in (first, second, first):
        assert filled(plain, column) == filled(compiled, column)


def test_by_hand():
    memory = PlainChunkMemory()
    assert filled(memory, ["ab  a", "", " ab "]) == (
        [0, 1, 0],
        [0, 2, 2, 3],
        ["ab", "a"],
        [97, 98, 97, 97, 98],
        [0, 3, 3, 5],
    )
