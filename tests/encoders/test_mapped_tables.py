"""Tables that stay in their files: rows in float32 from when they are needed, and vocabularies without objects."""

import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from paranmt_hf import StaticEncoder
from paranmt_hf.encoders.modules.paranmt_tables import SCALE, WEIGHT, map_stored, restore, store
from paranmt_hf.encoders.packed_units import PackedUnits
from paranmt_hf.encoders.widened_rows import WidenedRows, placed, table_rows
from paranmt_hf.hub.repository import ASSETS
from tests.refused import refused

ROWS = np.random.default_rng(0).standard_normal((50, 8), np.float32)
UNITS = [f"w{number}" for number in range(50)]


def test_rows_by_hand() -> None:
    # Two numbers of int4 share a byte, the first in its lower half: 0xF7 is 7 and -1.
    stored = {WEIGHT: np.array([[0xF7], [0x21]], np.uint8), SCALE: np.array([0.5, 2], np.float32)}
    table = WidenedRows(stored)
    assert table.shape == (2, 2)
    assert table.array[table.places(np.array([1, 0, 1]))].tolist() == [[2, 4], [3.5, -0.5], [2, 4]]


def test_a_row_is_there_after_the_next_fill() -> None:
    table = WidenedRows(store(ROWS, "int8"))
    assert [table.place(row) for row in (7, 3, 7)] == [0, 1, 0]
    assert not table.array.any()
    table.fill()
    np.testing.assert_array_equal(table.array[:2], restore(store(ROWS, "int8"))[[7, 3]])
    assert not table.array[2:].any()


@pytest.mark.parametrize("precision", ["float16", "int8", "int4"])
@given(st.lists(st.lists(st.integers(0, 49), max_size=20), max_size=6))
def test_rows_are_those_of_the_whole_table(precision: str, asked: list[list[int]]) -> None:
    stored = store(ROWS, precision)
    table, whole = WidenedRows(stored), restore(stored)
    for rows in asked:
        array, places = placed(table, np.array(rows, np.int64))
        np.testing.assert_array_equal(array[places], whole[rows])
    distinct = len({row for rows in asked for row in rows})
    assert not table.array[distinct:].any()


def test_threads_share_rows() -> None:
    stored = store(np.random.default_rng(1).standard_normal((5000, 8), np.float32), "int4")
    table, whole = WidenedRows(stored), restore(stored)

    def differs(seed: int) -> bool:
        order = np.random.default_rng(seed).permutation(5000)
        found = []
        for rows in np.split(order, 100):
            places = [table.place(row) for row in rows.tolist()]
            table.fill()
            found.append(table.array[places])
        return not np.array_equal(np.concatenate(found), whole[order])

    with ThreadPoolExecutor(4) as pool:
        assert not any(pool.map(differs, range(8)))


def test_copies_for_other_processes_are_equal() -> None:
    stored = store(ROWS, "int4")
    table = pickle.loads(pickle.dumps(WidenedRows(stored)))
    assert not table.array.any()
    np.testing.assert_array_equal(table.array[table.places(np.arange(50))], restore(stored))


@pytest.mark.parametrize("precision", ["float32", "float16", "int8", "int4"])
def test_tensors_of_a_file_are_mapped(tmp_path: Path, precision: str) -> None:
    stored = store(ROWS, precision)
    save_file(stored, tmp_path / "table")
    found = map_stored(tmp_path / "table", UNITS)
    assert found.keys() == stored.keys()
    for name, tensor in stored.items():
        np.testing.assert_array_equal(found[name], tensor)
        # Nothing was copied, so that processes share the memory.
        assert not found[name].flags.owndata
    assert isinstance(table_rows(found), np.ndarray) == (precision == "float32")
    # A new file takes the place of the old one, which stays what it was.
    save_file(store(-ROWS, precision), tmp_path / "new")
    (tmp_path / "new").replace(tmp_path / "table")
    np.testing.assert_array_equal(restore(found), restore(stored))


def test_a_model_that_is_replaced_keeps_its_vectors_where_it_is_loaded(tmp_path: Path) -> None:
    StaticEncoder.from_pretrained("base").save_pretrained(tmp_path / "model")
    loaded, texts = StaticEncoder.from_pretrained(tmp_path / "model"), [f"{number} people" for number in range(2000)]
    StaticEncoder.from_pretrained("small").save_pretrained(tmp_path / "model")
    np.testing.assert_array_equal(loaded.encode(texts), StaticEncoder.from_pretrained("base").encode(texts))
    found = StaticEncoder.from_pretrained(tmp_path / "model")
    np.testing.assert_array_equal(found.encode(texts), StaticEncoder.from_pretrained("small").encode(texts))
    # A model may be saved into its own folder.
    found.save_pretrained(tmp_path / "model")
    np.testing.assert_array_equal(StaticEncoder.from_pretrained(tmp_path / "model").encode(texts), found.encode(texts))


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        (WEIGHT, np.zeros(8, np.float32)),
        (WEIGHT, np.zeros((8, 2, 2), np.float32)),
        (WEIGHT, np.zeros((8, 0), np.int8)),
        (WEIGHT, np.zeros((8, 2), np.int16)),
        (SCALE, np.ones((8, 1), np.float32)),
    ],
)
def test_tensors_of_another_shape_or_type_are_refused(tmp_path: Path, name: str, tensor: np.ndarray) -> None:
    save_file({WEIGHT: np.zeros((8, 2), np.int8), SCALE: np.ones(8, np.float32), name: tensor}, tmp_path / "table")
    with pytest.raises(ValueError, match=str(tmp_path / "table")):
        map_stored(tmp_path / "table", UNITS[:8])


@pytest.mark.parametrize("change", ["without scales", "fewer scales", "other name"])
def test_tensors_that_do_not_fit_are_refused(tmp_path: Path, change: str) -> None:
    folder = shutil.copytree(ASSETS / "small", tmp_path / "model")
    tensors = load_file(folder / "model.safetensors")
    if change == "other name":
        tensors["another"] = tensors.pop(WEIGHT)
    else:
        scales = tensors.pop(SCALE)
        if change == "fewer scales":
            tensors[SCALE] = scales[:-1]
    save_file(tensors, folder / "model.safetensors")
    with refused() as error:
        StaticEncoder.from_pretrained(folder)
    assert error.value.path in (folder, folder / "model.safetensors")


@given(st.lists(st.text(max_size=4) | st.sampled_from(["\ud800", "a\udfff", "zwölf", ""]), max_size=40))
def test_units_are_those_of_a_list_and_rows_those_of_a_dictionary(units: list[str]) -> None:
    packed, row_of = PackedUnits(units), {unit: row for row, unit in enumerate(units)}
    assert len(packed) == len(units) and list(packed) == units and packed[1:3] == units[1:3]
    assert [packed[row] for row in range(-len(units), len(units))] == units * 2
    for unit in [*units, "not there", "\udfff", "a"]:
        assert packed.find(unit) == row_of.get(unit)
    copy = pickle.loads(pickle.dumps(packed))
    assert list(copy) == units and [copy.find(unit) for unit in units] == [row_of[unit] for unit in units]


def test_many_units() -> None:
    units = [f"{number:x}" for number in range(20_000)]
    packed = PackedUnits(units)
    assert list(map(packed.find, units)) == list(range(20_000))
    assert packed.find("g") is None
