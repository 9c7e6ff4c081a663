"""Bitexts in Parquet files, in folders of datasets and on the Hub."""

import json
from types import SimpleNamespace

import datasets
import huggingface_hub
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import TextInput
from paranmt_hf.corpus.reading.hub_dataset import HubDataset, is_on_hub, split_dataset
from paranmt_hf.corpus.reading.readers import TableFiles
from tests.corpus.reading.bitexts import OPUS, in_blocks, read, translations, write
from tests.refused import refused


def test_parquet_reaches_into_structs_and_counts_over_files(tmp_path):
    for name in ("1", "2"):
        pq.write_table(translations(3), tmp_path / name)
    rows, _ = read(TableFiles([tmp_path / "1", tmp_path / "2"], OPUS), rows=4)
    assert rows == [(n, f"cs {n % 3}", f"en {n % 3}") for n in range(6)]


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())])
def test_parquet_types_of_text(tmp_path, kind):
    column = pa.array(["a", None, "é ", "a"], pa.string())
    pq.write_table(pa.table({"text": column.cast(kind), "n": [1.5, 2, 3, 4]}), tmp_path / "t.parquet")
    rows, report = read(TableFiles([tmp_path / "t.parquet"], {"score": "n", "t": "text"}, numbers=["score"]))
    assert rows == [(0, 1.5, "a"), (2, 3, "é"), (3, 4, "a")]
    assert report.dropped == {"empty": 1}


def test_parquet_name_with_a_dot_and_deeper_structs(tmp_path):
    table = pa.table({"a.g": ["x"], "a": [{"b": "no", "c": {"d.e": "y", "f": "z"}}]})
    pq.write_table(table, tmp_path / "t")
    assert read(TableFiles([tmp_path / "t"], {"1": "a.g", "2": "a.c.d.e", "3": "a.c.f"}))[0] == [(0, "x", "y", "z")]


def test_parquet_null_struct_is_empty(tmp_path):
    pq.write_table(pa.table({"translation": [{"cs": "a", "en": "b"}, None, {"cs": None, "en": "b"}]}), tmp_path / "t")
    rows, report = read(TableFiles([tmp_path / "t"], OPUS))
    assert (rows, report.dropped) == ([(0, "a", "b")], {"empty": 2})


def test_parquet_text_that_is_not_utf8(tmp_path):
    raw = pa.array([b"fine", b"\xff"], pa.binary())
    column = pa.Array.from_buffers(pa.string(), 2, raw.buffers())
    pq.write_table(pa.table({"t": column}), tmp_path / "t")
    rows, report = read(TableFiles([tmp_path / "t"], {"t": "t"}))
    assert (rows, report.dropped) == ([(0, "fine")], {"undecodable": 1})


def test_parquet_column_of_nothing_but_null(tmp_path):
    pq.write_table(pa.table({"t": ["a"], "origin": pa.nulls(1)}), tmp_path / "t")
    text = TableFiles([tmp_path / "t"], {"t": "t", "origin": "origin"}, optional=["origin"])
    assert read(text)[0] == [(0, "a", None)]


@pytest.mark.parametrize("name", ["english", "translation.de", ""])
def test_parquet_column_that_is_missing(tmp_path, name):
    pq.write_table(translations(1).append_column("n", [[1]]), tmp_path / "t")
    with refused("columns", path=tmp_path / "t"):
        read(TableFiles([tmp_path / "t"], {"a": name}))


def test_parquet_columns_of_other_types(tmp_path):
    pq.write_table(pa.table({"n": [1], "flag": [True], "list": [["a"]], "s": [{"x": "a"}]}), tmp_path / "t")
    for name in ("n", "list"):
        with refused():
            read(TableFiles([tmp_path / "t"], {"a": name}))


def test_parquet_bad_number_names_file_and_row(tmp_path):
    pq.write_table(pa.table({"n": [1.0] * 10_001 + [None]}), tmp_path / "t")
    with refused(path=tmp_path / "t") as caught:
        read(TableFiles([tmp_path / "t"], {"score": "n"}, numbers=["score"]))
    assert "row (from 0) 10001:" in str(caught.value)
    (tmp_path / "j").mkdir()
    (tmp_path / "j" / "train.jsonl").write_text('{"n": 1}\n{"n": 2}\n{"n": null}\n')
    with in_blocks(1 << 20, rows=2), refused() as caught:
        read(HubDataset(str(tmp_path / "j"), {"score": "n"}, numbers=["score"]))
    assert "row (from 0) 2:" in str(caught.value)


def test_parquet_that_is_none_or_damaged_or_empty(tmp_path):
    with refused(path=tmp_path / "a.parquet"):
        read(TableFiles([write(tmp_path / "a.parquet", "text")], {"a": "a"}))
    pq.write_table(pa.table({"t": ["some text " * 20] * 50}), tmp_path / "t", compression="zstd", use_dictionary=False)
    content = bytearray((tmp_path / "t").read_bytes())
    content[4:24] = b"\xff" * 20
    (tmp_path / "t").write_bytes(content)
    with refused(path=tmp_path / "t"):
        read(TableFiles([tmp_path / "t"], {"t": "t"}))
    (tmp_path / "cut.parquet").write_bytes(content[: len(content) // 2])
    with refused(path=tmp_path / "cut.parquet"):
        read(TableFiles([tmp_path / "cut.parquet"], {"t": "t"}))
    pq.write_table(pa.table({"t": pa.array([], pa.string())}), tmp_path / "empty")
    with refused():
        read(TableFiles([tmp_path / "empty"], {"t": "t"}))


@pytest.fixture
def folder(tmp_path):
    """A dataset folder in the layout of OPUS, with a config."""
    (tmp_path / "opus").mkdir()
    pq.write_table(translations(5), tmp_path / "opus" / "train-0.parquet")
    pq.write_table(translations(4, "large_string"), tmp_path / "opus" / "train-1.parquet")
    pq.write_table(translations(2), tmp_path / "opus" / "test-0.parquet")
    return tmp_path / "opus"


def test_dataset_folder(folder):
    rows, _ = read(HubDataset(str(folder), OPUS), rows=4)
    assert rows == [(n, f"cs {n % 5}", f"en {n % 5}") for n in range(9)]
    assert len(read(HubDataset(str(folder), OPUS, split="test"))[0]) == 2


def test_dataset_of_json_lines_with_numbers_and_optional(tmp_path):
    rows = [{"s": " a ", "n": 1, "o": "x"}, {"s": "b", "n": 0.5, "o": None}, {"s": None, "n": 2, "o": "y"}]
    (tmp_path / "j").mkdir()
    (tmp_path / "j" / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    text = HubDataset(str(tmp_path / "j"), {"t": "s", "score": "n", "o": "o"}, numbers=["score"], optional=["o"])
    found, report = read(text)
    assert found == [(0, "a", 1, "x"), (1, "b", 0.5, None)]
    assert report.dropped == {"empty": 1}


def test_dataset_errors(folder):
    with refused("columns"):
        read(HubDataset(str(folder), {"a": "translation.de"}))
    (folder.parent / "nothing").mkdir()
    for name, options in ((folder, {"split": "dev"}), (folder, {"config": "cs-en"}), (folder.parent / "nothing", {})):
        with refused():
            read(HubDataset(str(name), OPUS, **options))


def test_identity_of_a_folder(folder, tmp_path):
    before = HubDataset(str(folder), OPUS).identity
    assert [file["name"] for file in before["files"]] == ["train-0.parquet", "train-1.parquet"]
    assert str(tmp_path) not in json.dumps(before)
    assert HubDataset(str(folder), OPUS, split="test").identity != before
    pq.write_table(translations(6), folder / "train-0.parquet")
    assert HubDataset(str(folder), OPUS).identity != before


@pytest.fixture
def hub(monkeypatch):
    """A stand-in for the Hub: one dataset, whose main branch moves on after each look-up."""
    calls = SimpleNamespace(lookups=0, loads=[], files=["hf://datasets/org/opus@1/train.parquet"])

    def dataset_info(self, id, revision=None):
        if id != "org/opus":
            raise huggingface_hub.errors.HFValidationError(f"no {id}")
        calls.lookups += 1
        return SimpleNamespace(sha=f"commit-{revision or 'main'}-{calls.lookups}")

    def load_dataset(id, config, **options):
        calls.loads.append((id, config, options))
        return datasets.Dataset(translations(3)).to_iterable_dataset()

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", dataset_info)

    def load_dataset_builder(id, config, *, revision):
        assert revision.startswith("commit-")
        return SimpleNamespace(config=SimpleNamespace(data_files={"train": calls.files}))

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    monkeypatch.setattr(datasets, "load_dataset_builder", load_dataset_builder)
    return calls


def test_hub_dataset_is_pinned_to_one_commit(hub):
    text = HubDataset("org/opus", OPUS, config="cs-en", split="test", revision="refs/convert/parquet")
    assert text.identity == {
        "kind": "hub", "dataset": "org/opus", "revision": "commit-refs/convert/parquet-1", "config": "cs-en",
        "split": "test", "columns": OPUS, "numbers": [], "optional": [], "max_characters": 1000,
    }  # fmt: skip
    assert read(text)[0] == [(n, f"cs {n}", f"en {n}") for n in range(3)]
    options = {"split": "test", "revision": "commit-refs/convert/parquet-1", "streaming": True}
    assert hub.loads == [("org/opus", "cs-en", options)]
    assert hub.lookups == 1


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("org/opus", ("org/opus", None, "train")),
        ("org/opus:cs-en", ("org/opus", "cs-en", "train")),
        ("org/opus@v1:cs-en:test[:10%]", ("org/opus@v1", "cs-en", "test[:10%]")),
        ("org/opus::test", ("org/opus", None, "test")),
        (r"C:\data\opus", (r"C:\data\opus", None, "train")),
        ("C:/data/opus:cs-en:test", ("C:/data/opus", "cs-en", "test")),
        ("./a:b", ("./a:b", None, "train")),
        ("./a:b:c", ("./a", "b", "c")),
    ],
)
def test_a_dataset_with_its_config_and_split(tmp_path, monkeypatch, text, parts):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a:b").mkdir()
    assert split_dataset(text) == parts


@pytest.mark.parametrize(
    ("name", "expected"),
    [("org/pairs-1.5", True), ("org/pairs-v2.0@main", True), ("org/a.b", False), ("org/a.tsv", False)],
)
def test_a_version_in_a_name_is_no_ending(tmp_path, monkeypatch, name, expected):
    """Also if there is a folder named as the organisation."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "org").mkdir()
    assert is_on_hub(name) == expected


def test_text_from_a_dataset(hub, folder):
    columns = {"source": OPUS["source"], "reference": OPUS["reference"]}
    assert read(TextInput(data=("org/opus@v1:cs-en:test",), columns=columns).open())[1].kept == 3
    assert hub.loads == [("org/opus", "cs-en", {"split": "test", "revision": "commit-v1-1", "streaming": True})]
    local = TextInput(data=(f"{folder}::test",), columns=columns).open()
    assert (local.id, local.config, local.split) == (str(folder), None, "test")
