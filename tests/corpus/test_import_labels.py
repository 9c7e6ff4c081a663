"""A column of something else than sentences: refused where no corpus could be so, else a warning that is kept."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import EngineConfig, InputError, ReleaseConfig, import_pairs
from paranmt_hf.corpus.release.input_checks import unlike_sentences

COLUMNS = {
    "one code": lambda row: "de",
    "codes": lambda row: ("de", "cs", "fr")[row % 3],
    "labels": lambda row: ("entailment", "neutral")[row % 2],
    "numbers": lambda row: f"{row / 7:.3f}",
    "nearly one text": lambda row: "not translated yet" if row % 20 else f"a sentence {row}",
}
# In 1,000 pairs one reference may have many translations, and a list of numbers may be in a phrase table.
REAL = {
    "one reference in four rows": lambda row: "the same again" if row % 4 == 0 else f"word {row}",
    "few sentences": lambda row: f"one of {row % 7} long sentences",
    "many words": lambda row: f"word{row % 100}",
    "half of them numbers": lambda row: str(row) if row % 2 else f"the {row}th",
}


def imported(folder, text, rows):
    table = {"reference": [f"this is sentence {row}" for row in range(rows)], "translation": map(text, range(rows))}
    pq.write_table(pa.table({name: list(column) for name, column in table.items()}), folder / "pairs.parquet")
    release, engine = ReleaseConfig(license="cc-by-4.0"), EngineConfig(workers=1)
    return import_pairs(folder / "pairs.parquet", folder / "out", release=release, engine=engine).record


@pytest.mark.parametrize("name", COLUMNS)
def test_labels_are_not_sentences(tmp_path, caplog, name):
    with pytest.raises(InputError) as caught:
        imported(tmp_path, COLUMNS[name], 1000)
    assert caught.value.option == "columns" and not list(tmp_path.glob("out*"))
    record = imported(tmp_path, COLUMNS[name], 100)
    assert record.statistics.rows == 100 and len(record.warnings) == 1
    assert record.warnings[0] in caplog.text


@pytest.mark.parametrize("name", REAL)
def test_unusual_corpora_are_taken(tmp_path, name):
    assert not imported(tmp_path, REAL[name], 1000).warnings


@pytest.mark.slow
def test_real_columns_of_sentences_and_of_labels(shared_data):
    """In the order of the file and sorted, whatever shard is looked at."""
    file = shared_data / "pairs" / "machine-translations.parquet"
    sides, labels = ["reference", "translation"], ["source_lang", "system", "test_set"]
    whole = pq.read_table(file, columns=[*sides, *labels])
    for table in (whole, whole.sort_by("reference")):
        for name in sides:
            for start in range(0, table.num_rows - 1000, 50 * 1000):
                assert not unlike_sentences(table[name].slice(start, 1000))
    for name in labels:
        assert unlike_sentences(whole[name].cast(pa.string()).slice(0, 1000))


@pytest.mark.parametrize("wrong", [2, 3])
def test_files_in_another_encoding_are_refused(tmp_path, wrong):
    """A file in Latin-1 has lines without an accent, which must not become a corpus."""
    lines = ["déjà\tvu"] * wrong + ["a\tb"] * 2
    (tmp_path / "pairs.tsv").write_bytes("\n".join(lines).encode("latin1"))
    release = ReleaseConfig(license="cc-by-4.0")
    if wrong == 2:
        assert import_pairs(tmp_path / "pairs.tsv", tmp_path / "out", release=release).record.statistics.rows == 2
    else:
        with pytest.raises(InputError):
            import_pairs(tmp_path / "pairs.tsv", tmp_path / "out", release=release)
        assert not list(tmp_path.glob("out*"))
