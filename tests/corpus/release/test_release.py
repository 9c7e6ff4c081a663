"""Selection, statistics, the Parquet release and the builder, on rows that can be counted by hand."""

import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf import ParaNMTBuilder, ReleaseConfig, import_pairs, publish
from paranmt_hf.corpus.reading.readers import TableFiles
from paranmt_hf.corpus.release.release import read_record, read_tables, release_files, write_files, write_release
from paranmt_hf.corpus.release.release_card import release_card
from paranmt_hf.corpus.release.schema import arrow_schema
from paranmt_hf.corpus.statistics.draws import in_ranges, lottery, sample_ids, top_tenths
from paranmt_hf.corpus.statistics.release_counts import ReleaseCounter, plot_histograms, text_histogram
from tests.refused import refused
from tests.toys import LOCAL


def make_rows(count: int, start: int = 0) -> pa.Table:
    """Rows whose score is id / 1000 and whose reference has id % 40 tokens."""
    ids = np.arange(start, start + count)
    return pa.table(
        {
            "id": ids,
            "reference": [f"reference {number}" for number in ids],
            "translation": [f"translation {number}" for number in ids],
            "source": ["quelle"] * count,
            "translation_score": pa.array([None if n % 2 else -0.5 for n in ids], pa.float32()),
            "para_score": (ids / 1000).astype(np.float32),
            "trigram_overlap": pa.array([None if n % 4 == 0 else 0.5 for n in ids], pa.float32()),
            "reference_length": (ids % 40).astype(np.int32),
            "translation_length": np.full(count, 7, np.int32),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("release") / "corpus"
    write_release([make_rows(400), make_rows(600, 400)], folder)
    return folder


def test_top_tenths_by_hand():
    scores = np.array([0.1, 0.9, 0.5, 0.3, 0.7, 0.2, 0.8, 0.4, 0.6, 0.0])
    assert top_tenths(scores) == 0.8
    assert top_tenths(np.array([0.5])) == 0.5


@given(st.lists(st.floats(-1, 1, width=32), min_size=10, max_size=60))
def test_top_tenths_equals_sorting(scores):
    threshold = top_tenths(np.array(scores, np.float32))
    assert threshold == sorted(scores, reverse=True)[len(scores) * 2 // 10 - 1]


def test_ranges_take_both_ends_and_no_null():
    table = pa.table({"a": pa.array([1, 2, None, 4, 3]), "b": [5.0, 5.0, 5.0, 5.0, 6.0]})
    assert in_ranges(table, {"a": (2, 4), "b": (None, 5.0)}).to_pylist() == [False, True, False, True, False]
    assert in_ranges(table, {}).to_pylist() == [True] * 5


def test_sample_does_not_depend_on_order_or_seedless_chance():
    ids = np.arange(5000)
    chosen = sample_ids(ids, 100, seed=3)
    assert len(chosen) == 100
    assert (sample_ids(ids[::-1], 100, seed=3) == chosen).all()
    assert (sample_ids(ids, 100, seed=4) != chosen).any()
    assert sample_ids(ids[:5], 100, seed=3).tolist() == [0, 1, 2, 3, 4]
    # Evenly spread: the mean of 5,000 draws lies within four standard errors of the middle.
    draws = lottery(ids, 0) / 2**64
    assert abs(draws.mean() - 0.5) < 4 * 0.2887 / np.sqrt(5000)


def test_statistics_by_hand():
    statistics = ReleaseCounter()
    table = make_rows(1000)
    statistics.add(table.slice(0, 300))
    statistics.add(table.slice(300))
    summary = statistics.summary()
    assert summary.rows == 1000
    # Scores are 0, 0.001, ..., 0.999: an edge belongs to the lower range.
    assert [part.rows for part in summary.ranges] == [201, 200, 200, 200, 199]
    assert {part.mean_trigram_overlap for part in summary.ranges} == {0.5}
    assert summary.mean_reference_length == 19.5
    assert summary.mean_translation_length == 7
    assert summary.mean_translation_score == -0.5
    assert sum(summary.histogram) == 1000
    assert summary.histogram[:20] == [0] * 20
    # Overlaps are 0.5 and translation scores -0.5, where they are there; two sentences in each row.
    spread = summary.histograms
    assert {name: sum(counts) for name, counts in spread.items()} == {
        "trigram_overlap": 750,
        "length": 2000,
        "translation_score": 500,
    }
    assert spread["trigram_overlap"][10] == 750 and spread["translation_score"][25] == 500
    # References have 0 to 39 tokens in turn, translations 7.
    assert spread["length"][:4] == [50, 50, 50, 1050]
    whole = ReleaseCounter()
    whole.add(table)
    assert whole.summary() == summary, "the batches must not matter"


@pytest.mark.slow
def test_histogram_is_drawn(drawing):
    histogram = [0] * 38 + [5, 10]
    text = text_histogram(histogram, width=10)
    assert text == "  0.9 to  1.0 | ########## 15"
    older = replace(ReleaseCounter().summary(), histogram=histogram, histograms={})
    for summary in (older, ReleaseCounter().summary()):
        assert plot_histograms(summary)[:4] == b"\x89PNG"


def test_release_by_hand(folder):
    table = pa.concat_tables(read_tables(release_files(folder)))
    assert table.schema.equals(arrow_schema())
    assert table["id"].to_pylist() == list(range(1000))
    assert table["para_score"].null_count == 0
    filtered = pa.concat_tables(read_tables(release_files(folder, "filtered")))
    assert filtered["id"].to_pylist() == [n for n in range(800, 1000) if n % 40 <= 30]
    sample = pa.concat_tables(read_tables(release_files(folder, "sample")))
    assert sample.num_rows == 1000


def test_files_are_cut_at_the_size(tmp_path):
    generator = np.random.default_rng(0)
    rows = make_rows(1000)
    noise = pa.array([generator.bytes(100).hex() for _ in range(1000)])
    rows = rows.set_column(1, "reference", noise)
    rows = rows.select(arrow_schema().names).cast(arrow_schema())
    files = write_files([rows], tmp_path / "data", rows.schema, group_rows=40, max_bytes=40_000)
    assert len(files) > 2 and release_files(tmp_path) == files
    assert files[0].name == f"train-00000-of-{len(files):05d}.parquet"
    assert max(path.stat().st_size for path in files) <= 40_000
    assert pa.concat_tables(read_tables(files))["reference"].to_pylist() == noise.to_pylist()


def test_same_rows_same_bytes_however_they_come(tmp_path):
    write_release([make_rows(1000)], tmp_path / "a")
    write_release([make_rows(10, 0), make_rows(990, 10)], tmp_path / "b")
    for path in sorted((tmp_path / "a").rglob("*.parquet")):
        assert path.read_bytes() == (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_bytes()


def test_nothing_to_release(tmp_path):
    with refused():
        write_release([make_rows(0)], tmp_path)


def test_incomplete_release_is_told(tmp_path):
    with refused():
        release_files(tmp_path / "none")
    with refused(path=tmp_path):
        release_files(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train-00000-of-00002.parquet").touch()
    with refused():
        release_files(tmp_path)
    with refused("config"):
        release_files(tmp_path, "best")


def test_damaged_parquet_is_told(tmp_path):
    path = tmp_path / "train-00000-of-00001.parquet"
    pq.write_table(make_rows(10), path)
    path.write_bytes(path.read_bytes()[:-100])
    with refused(path=path):
        list(read_tables([path]))
    pq.write_table(make_rows(10).drop_columns(["para_score"]), path)
    with refused():
        list(read_tables([path]))


@pytest.mark.parametrize("processes", [None, 2])
def test_builder_gives_the_release(folder, tmp_path, processes):
    for config in ("default", "filtered", "sample"):
        builder = ParaNMTBuilder(config_name=config, data_dir=str(folder), cache_dir=str(tmp_path))
        builder.download_and_prepare(num_proc=processes)
        built = builder.as_dataset(split="train")
        released = pa.concat_tables(read_tables(release_files(folder, config)))
        assert built.with_format("arrow")[:].to_pylist() == released.to_pylist()
    files = {"train": [str(path) for path in release_files(folder)]}
    builder = ParaNMTBuilder(data_files=files, cache_dir=str(tmp_path))
    builder.download_and_prepare()
    assert builder.as_dataset(split="train").num_rows == 1000


def test_import_is_light():
    code = "import paranmt_hf, sys; print([m for m in ('torch', 'datasets', 'transformers') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_sample_of_a_larger_corpus(tmp_path):
    written = write_release([make_rows(700), make_rows(1800, 700)], tmp_path)
    sample = pa.concat_tables(read_tables(release_files(tmp_path, "sample")))
    assert sample["id"].to_pylist() == sample_ids(np.arange(2500), 1000, seed=0).tolist()
    assert written.configs["sample"].rows == 1000


def test_a_bound_is_taken_in_the_precision_of_the_column():
    table = pa.table({"para_score": pa.array([0.35, 0.7, 0.70001], pa.float32())})
    assert in_ranges(table, {"para_score": (0.35, 0.7)}).to_pylist() == [True, True, False]
    assert in_ranges(table, {"para_score": (0.7, None)}).to_pylist() == [False, True, True]


def test_a_file_without_rows_gives_one_table_without_rows(tmp_path):
    pq.write_table(pa.table({"translation_score": pa.array([], pa.float32())}), tmp_path / "empty.parquet")
    assert [table.num_rows for table in read_tables([tmp_path / "empty.parquet"], ["translation_score"])] == [0]


RELEASE = ReleaseConfig(license="mit")
# What would say that a machine wrote the pairs.
OF_MACHINES = re.compile(
    r"translat(?!ion`|ion_length|ion\\_length|ion\)|ion `|ion \|)|hypothesis|beam|machine", re.IGNORECASE
)


def make(folder, release=RELEASE, **options):
    table = {"a": ["a b", "b"], "b": ["a c", "b"], "score": [0.5, 1.0], "system": ["x|y", None]}
    pq.write_table(pa.table(table), folder.with_suffix(".parquet"))
    columns = {"reference": "a", "translation": "b", "para_score": "score", "origin": "system"}
    pairs = TableFiles([folder.with_suffix(".parquet")], columns, numbers={"para_score"}, optional={"origin"})
    return import_pairs(pairs, folder, scorer=None, release=release, engine=LOCAL, **options)


@pytest.fixture(scope="module")
def plain_record(tmp_path_factory):
    return make(tmp_path_factory.mktemp("release") / "corpus").record


def body(card):
    """The card without header, examples of commands and citation."""
    text = card.split("---\n", 2)[2].split("## Citation")[0]
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


@pytest.mark.parametrize("made_by", ["people", "machine", None])
def test_cards(tmp_path, golden, made_by):
    """Of pairs that people wrote, that a machine wrote, and that nobody knows where from."""
    folder = make(tmp_path / "corpus", made_by=made_by).folder
    # Compares the card with its file.
    golden(f"corpus-{made_by or 'unknown'}.md", (folder / "README.md").read_text(encoding="utf8"))


def test_pairs_that_people_wrote(tmp_path):
    record = make(tmp_path / "corpus", made_by="people").record
    assert record.settings["pairs"]["made_by"] == "people"
    assert "translation_score" not in record.columns
    card = (tmp_path / "corpus" / "README.md").read_text()
    assert not OF_MACHINES.findall(body(card)), body(card)
    top = yaml.safe_load(card.split("---\n")[1])
    assert top["language_creators"] == ["found"] and "back-translation" not in top["tags"]
    schema = pq.read_schema(tmp_path / "corpus" / "data" / "train-00000-of-00001.parquet")
    assert [feature["name"] for feature in top["dataset_info"][0]["features"]] == schema.names
    assert publish(tmp_path / "corpus", "org/corpus", dry_run=True).left_here == []


def test_pairs_that_nobody_knows(tmp_path):
    record = make(tmp_path / "unknown").record
    # The record is that of releases before there was a choice, which are still taken for built.
    assert "made_by" not in record.settings["pairs"]
    card = (tmp_path / "unknown" / "README.md").read_text()
    assert not OF_MACHINES.findall(body(card)), body(card)
    with refused("made_by"):
        make(tmp_path / "other", made_by="me")


def test_origin_is_what_was_mapped_to_it(tmp_path):
    make(tmp_path / "corpus")
    card = (tmp_path / "corpus" / "README.md").read_text()
    assert "| `origin` | string | what stands in the input's column 'system' (null where that is empty) |" in card
    (tmp_path / "t.tsv").write_text("a\tb\t0.5\tnews\n")
    columns = {"reference": "1", "translation": "2", "para_score": "3", "origin": "4"}
    pairs = TableFiles([tmp_path / "t.tsv"], columns, numbers={"para_score"}, optional={"origin"})
    import_pairs(pairs, tmp_path / "tab", scorer=None, release=RELEASE, engine=LOCAL)
    assert "what stands in the input's column '4'" in (tmp_path / "tab" / "README.md").read_text()


def test_title_description_and_uses(tmp_path):
    words = {"title": "Pairs | of\nmine", "description": "Mine, from [here](http://x)."}
    record = make(tmp_path / "corpus", replace(RELEASE, **words)).record
    assert (record.title, record.description) == (words["title"], words["description"])
    assert record.settings["release"]["title"] == words["title"]
    assert read_record(tmp_path / "corpus") == record
    card = release_card(record, picture=True)
    assert "\n# Pairs \\| of mine\n\nMine, from \\[here\\](http://x).\n\n2 pairs of English" in card
    assert yaml.safe_load(card.split("---\n")[1])["pretty_name"] == "Pairs | of mine"
    assert card.count("http://x") == 1 and "- **release**: license `mit`" in card
    assert "**Intended:**" in card and "**Out of scope:**" in card
    assert "Provenance: `id` counts the rows of the input" in card and "`origin` repeats what the input says" in card


def test_one_histogram(plain_record):
    drawn, typed = (release_card(plain_record, picture=picture) for picture in (True, False))
    assert "histograms.png" in drawn and "####" not in drawn
    assert "histograms.png" not in typed and "####" in typed


@pytest.mark.parametrize(
    "name", ["a|b", "`a`", "a](http://x)", "<script>alert(1)</script>", 'a"b', "a\n---\nlicense: mit", "```\nx", "$x"]
)
def test_a_name_stays_a_name(plain_record, name):
    record = replace(plain_record, name=name)
    card = release_card(record, picture=True)
    plain = release_card(replace(record, name="corpus"), picture=True)
    header, text = (card.split("\n---\n", 1)[part] for part in (0, 1))
    top = yaml.safe_load(header.removeprefix("---\n"))
    assert top["pretty_name"] == " ".join(name.split()) and top["license"] == "mit"
    # One line for each line of a card with a harmless name, and fences in the same places.
    assert len(text.split("\n")) == len(plain.split("\n---\n", 1)[1].split("\n"))
    for line, other in zip(text.split("\n"), plain.split("\n---\n", 1)[1].split("\n"), strict=True):
        assert line.startswith("```") == other.startswith("```")
    heading = next(line for line in text.split("\n") if line.startswith("# "))
    assert not re.search(r"(?<!\\)[|`\[\]<>]", heading)
    code = text.split("```python\n")[1].split("\n```")[0]
    compile(code, "card", "exec")


def test_another_wording_needs_no_other_release(tmp_path):
    folder = tmp_path / "corpus"
    first = make(folder)
    data = {path: path.read_bytes() for path in folder.rglob("*.parquet")}
    worded = replace(RELEASE, title="Words and | bars", description="A first try.")
    again = make(folder, worded)
    assert not again.fresh
    assert {path: path.read_bytes() for path in folder.rglob("*.parquet")} == data
    card = (folder / "README.md").read_text(encoding="utf8")
    assert "# Words and \\| bars" in card and "A first try." in card
    record = read_record(folder)
    assert (record.title, record.description) == ("Words and | bars", "A first try.")
    assert record == again.record
    (tmp_path / "other").mkdir()
    # The folder is the one that a build with this wording makes.
    other = make(tmp_path / "other" / "corpus", worded)
    assert (other.folder / "build.json").read_bytes() == (folder / "build.json").read_bytes()
    assert (other.folder / "README.md").read_bytes() == (folder / "README.md").read_bytes()
    make(folder)
    assert read_record(folder) == first.record
    with refused("out", path=folder):
        make(folder, replace(worded, keep_source=True))
