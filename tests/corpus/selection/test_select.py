"""Selections from a release, beside a loop over its rows."""

import math
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import PairSelection, ReleaseFilter, select
from paranmt_hf.corpus.reading.pairs import Pairs
from paranmt_hf.corpus.release.publish import check_release
from paranmt_hf.corpus.release.record import RELEASE_RECORD
from paranmt_hf.corpus.release.release import read_record, release_files
from paranmt_hf.corpus.selection.filters import DifferentSides, LengthLimit, Tenths
from paranmt_hf.corpus.selection.repeated_rows import FirstCopies
from paranmt_hf.corpus.statistics.draws import sample_ids
from paranmt_hf.hub.repository import ASSETS
from tests.refused import refused

ROWS = 400


def rows_of(folder):
    return pa.concat_tables(pq.read_table(file) for file in release_files(folder)).to_pylist()


def plain(text):
    return "".join(character for character in text.lower() if character.isalnum())


def by_loop(rows, config):
    """Ids that are kept, and reason and number of every other row, by the definitions."""
    order = sorted(rows, key=lambda row: (row["para_score"], row["id"]))
    tenth = {row["id"]: rank * 10 // len(order) + 1 for rank, row in enumerate(order)}
    dropped, left = {}, []
    pairs, references = {}, {}
    for row in rows:
        lengths = [row["reference_length"], row["translation_length"]]
        if tenth[row["id"]] not in (3, 4, 5, 6, 7, 8, 10):
            dropped[row["id"]] = "outside tenths 3, 4, 5, 6, 7, 8, 10 of para_score", row["para_score"]
        elif row["trigram_overlap"] is None:
            dropped[row["id"]] = "without trigram_overlap", None
        elif not 4 <= row["translation_length"] <= 11:
            dropped[row["id"]] = "with translation_length outside 4 to 11", row["translation_length"]
        elif row["origin"] not in config.origin:
            dropped[row["id"]] = "not from news or web", None
        elif max(lengths) > config.max_length:
            dropped[row["id"]] = "with a side over 10 tokens", max(lengths)
        elif plain(row["reference"]) == plain(row["translation"]):
            dropped[row["id"]] = "with identical sides", None
        elif (key := (row["reference"], row["translation"])) in pairs:
            dropped[row["id"]] = "with the pair of an earlier row", pairs[key]
        else:
            pairs[key] = row["id"]
            left.append(row)
    drawn = []
    for row in left:
        if row["reference"] in references:
            dropped[row["id"]] = "with the reference of an earlier row", references[row["reference"]]
        else:
            references[row["reference"]] = row["id"]
            drawn.append(row["id"])
    kept = sample_ids(np.array(drawn), config.sample, config.seed).tolist()
    dropped |= {row: ("not among 20 sampled at random", None) for row in set(drawn) - set(kept)}
    return kept, dropped


ALL = ReleaseFilter(
    tenths="3-8,10",
    min={"trigram_overlap": 0.0, "translation_length": 4},
    max={"translation_length": 11, "trigram_overlap": 1.0},
    origin=("news", "web"),
    max_length=10,
    drop_identical=True,
    drop_copies=("reference", "pair"),
    sample=20,
    seed=4,
)


@pytest.mark.slow
def test_every_filter_at_once(whole, tmp_path):
    rows = rows_of(whole)
    kept, dropped = by_loop(rows, ALL)
    assert len({reason for reason, _ in dropped.values()}) == 8
    selected = select(whole, tmp_path / "some", ALL, keep_dropped=tmp_path / "dropped.parquet")
    assert selected.fresh and selected.rows == 20
    by_id = {row["id"]: row for row in rows}
    assert rows_of(selected.folder) == [by_id[number] for number in kept]
    table = pq.read_table(tmp_path / "dropped.parquet")
    assert table["id"].to_pylist() == sorted(dropped)
    for row in table.to_pylist():
        reason, number = dropped[row["id"]]
        assert row["reason"] == reason and row["reference"] == by_id[row["id"]]["reference"]
        assert row["translation"] == by_id[row["id"]]["translation"]
        assert row["number"] == number and (row["number_is"] is None) == (number is None)
    counted = {one.reason: one.dropped for one in selected.selection.filters}
    assert counted == {reason: [why for why, _ in dropped.values()].count(reason) for reason in counted}
    assert sum(counted.values()) == ROWS - 20 and selected.selection.rows == ROWS
    assert {path.name for path in tmp_path.iterdir()} == {"some", "dropped.parquet"}


@pytest.mark.slow
def test_the_record_and_the_card(whole, tmp_path):
    selected = select(whole, tmp_path / "some", ALL)
    record, before = read_record(tmp_path / "some"), read_record(whole)
    assert record == selected.record
    assert record.license == "cc-by-4.0" and record.made_by == "machine" and record.name == "some"
    assert record.title is None and record.description == "Words." and record.columns == before.columns
    assert record.settings["scorer"] == before.settings["scorer"] and record.dropped == before.dropped
    assert record.selection.files == before.configs["default"].files and record.selection.release == "whole"
    tenths = record.selection.filters[0]
    assert tenths.settings == {"filter": "tenths", "column": "para_score", "tenths": [3, 4, 5, 6, 7, 8, 10]}
    assert record.statistics.rows == 20 and set(record.configs) == {"default", "filtered", "sample"}
    card = (tmp_path / "some" / "README.md").read_text()
    assert "Selected from `whole`, 400 pairs in 1 file (SHA-256" in card
    assert f"| with identical sides | {record.selection.filters[6].dropped} | filter identical sides |" in card
    assert "column translation\\_length, low 4, high 11" in card
    assert check_release(tmp_path / "some").statistics == record.statistics


def test_the_same_again_and_another(whole, tmp_path):
    config = ReleaseFilter(tenths="9-10", max_length=9)
    first = select(whole, tmp_path / "some", config)
    before = (tmp_path / "some" / RELEASE_RECORD).stat().st_mtime_ns
    again = select(whole, tmp_path / "some", config)
    assert not again.fresh and again.record == first.record
    # The name of the folder that it came from decides nothing, and its rows do.
    shutil.copytree(whole, tmp_path / "moved")
    assert not select(tmp_path / "moved", tmp_path / "some", config).fresh
    assert (tmp_path / "some" / RELEASE_RECORD).stat().st_mtime_ns == before
    with refused("out", path=tmp_path / "some"):
        select(whole, tmp_path / "some", ReleaseFilter(tenths="8-10"))
    with refused("out", path=tmp_path / "moved"):
        select(tmp_path / "some", tmp_path / "moved", config)
    assert not list(tmp_path.glob("*.work"))


def test_dropped_rows_of_a_selection_that_is_there(whole, tmp_path):
    config = ReleaseFilter(tenths="9-10", max_length=9)
    file = tmp_path / "dropped.parquet"
    select(whole, tmp_path / "some", config, keep_dropped=file)
    content = file.read_bytes()
    file.unlink()
    assert not select(whole, tmp_path / "some", config, keep_dropped=file).fresh
    assert file.read_bytes() == content
    assert {path.name for path in tmp_path.iterdir()} == {"some", "dropped.parquet"}
    with refused("keep_dropped", path=file):
        select(whole, tmp_path / "other", ReleaseFilter(tenths="1"), keep_dropped=file)


def test_tenths_are_of_all_rows_and_the_length_comes_after(whole, tmp_path):
    both = select(whole, tmp_path / "both", ReleaseFilter(tenths="10", max_length=8))
    rows = rows_of(whole)
    best = sorted(rows, key=lambda row: (row["para_score"], row["id"]))[-ROWS // 10 :]
    short = [row for row in best if max(row["reference_length"], row["translation_length"]) <= 8]
    assert rows_of(both.folder) == sorted(short, key=lambda row: row["id"])
    assert 0 < len(short) < len(best)
    # Length first and then the tenth, in two selections, is something else.
    select(whole, tmp_path / "short", ReleaseFilter(max_length=8))
    other = select(tmp_path / "short", tmp_path / "other", ReleaseFilter(tenths="10"))
    assert rows_of(other.folder) != rows_of(both.folder)


def test_a_selection_of_a_selection(whole, tmp_path):
    select(whole, tmp_path / "some", ReleaseFilter(min_length=3))
    selected = select(tmp_path / "some", tmp_path / "few", ReleaseFilter(sample=30, seed=1))
    assert selected.selection.release == "some" and selected.selection.before.release == "whole"
    assert not select(tmp_path / "some", tmp_path / "few", ReleaseFilter(sample=30, seed=1)).fresh
    card = (tmp_path / "few" / "README.md").read_text()
    assert card.index("Selected from `whole`, 400") < card.index("Selected from `some`")
    assert len(list(Pairs([tmp_path / "few"], PairSelection()).batches())[0]) == 30


@pytest.mark.slow
def test_the_order_of_the_filters(whole):
    pytest.importorskip("py3langid")
    schema = pq.read_schema(release_files(whole)[0])
    config = ReleaseFilter(
        tenths="1",
        by="trigram_overlap",
        min={"translation_length": 2},
        max={"trigram_overlap": 1},
        origin=("web",),
        min_length=2,
        drop_identical=True,
        drop_copies=("translation", "reference", "pair"),
        language="en",
        decontaminate=(str(ASSETS / "sample"),),
        drop_near_duplicates="pair",
        sample=3,
    )
    assert [one.identity["filter"] for one in config.filters(schema)] == [
        *("has value", "tenths", "range", "range", "origin", "length", "identical sides", "copies"),
        *("language", "evaluation sets", "copies", "copies", "near-duplicates", "sample"),
    ]


def test_a_release_on_the_hub(whole, tmp_path, releases_on_hub):
    releases_on_hub.folders["you/whole"] = whole
    selected = select("you/whole@v1", tmp_path / "some", ReleaseFilter(tenths="10"))
    assert releases_on_hub.asked == [("you/whole", "v1", "default")] and selected.selection.release == "you/whole"
    assert rows_of(selected.folder) == rows_of(select(whole, tmp_path / "own", ReleaseFilter(tenths="10")).folder)
    with refused():
        select("you/other", tmp_path / "x", ReleaseFilter(tenths="10"))


class Stopped(Exception):
    pass


def stopped(monkeypatch, kind, rows):
    """Let a filter judge a number of rows, and then be interrupted; returns how many rows it judged."""
    judge, judged = kind.judge, []

    def judging(self, table):
        if sum(judged) >= rows:
            raise Stopped
        judged.append(table.num_rows)
        return judge(self, table)

    monkeypatch.setattr(kind, "judge", judging)
    return judged


@pytest.mark.slow
def test_stopped_and_continued(whole, tmp_path, monkeypatch, checkpoint_always):
    expected = select(whole, tmp_path / "expected", ALL, keep_dropped=tmp_path / "expected.parquet")
    with monkeypatch.context() as patch:
        stopped(patch, DifferentSides, 40)
        with pytest.raises(Stopped):
            select(whole, tmp_path / "some", ALL, keep_dropped=tmp_path / "dropped.parquet")
    assert not (tmp_path / "some").exists() and not (tmp_path / "dropped.parquet").exists()
    with monkeypatch.context() as patch:
        ranked = stopped(patch, Tenths, math.inf)
        seen = stopped(patch, LengthLimit, math.inf)
        found = select(whole, tmp_path / "some", ALL, keep_dropped=tmp_path / "dropped.parquet")
    # Tenths were done, and of the next pass some tables.
    assert not ranked and 0 < sum(seen) < sum(one.dropped for one in expected.selection.filters[5:]) + 20
    assert rows_of(found.folder) == rows_of(expected.folder)
    assert found.selection == expected.selection
    dropped = [pq.read_table(tmp_path / f"{name}.parquet") for name in ("dropped", "expected")]
    assert dropped[0].equals(dropped[1])
    assert {path.name for path in tmp_path.iterdir()} == {"expected", "expected.parquet", "some", "dropped.parquet"}


@pytest.mark.slow
@pytest.mark.parametrize("other", [ReleaseFilter(tenths="3-8,10", max_length=7), ReleaseFilter(max_length=12)])
def test_stopped_and_begun_with_other_filters(whole, tmp_path, monkeypatch, checkpoint_always, other):
    with monkeypatch.context() as patch:
        stopped(patch, FirstCopies, 10)
        with pytest.raises(Stopped):
            select(whole, tmp_path / "some", ALL)
    found = select(whole, tmp_path / "some", other)
    expected = select(whole, tmp_path / "expected", other)
    assert rows_of(found.folder) == rows_of(expected.folder) and found.selection == expected.selection
