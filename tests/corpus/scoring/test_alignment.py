"""Sections of a bitext where one side is shifted: where they are, what the warnings say, and the column."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import EngineConfig, ReleaseConfig, import_pairs, select
from paranmt_hf.corpus.jobs import job
from paranmt_hf.corpus.release import release_run
from paranmt_hf.corpus.score import rescore
from paranmt_hf.corpus.scoring.alignment import WARNING, Misaligned, alignment_warnings, misaligned_sections
from paranmt_hf.corpus.scoring.line_shifts import ALIGNED, EVIDENCE, NO_VOTE, dice, likeliest_states, rows_to_ask
from paranmt_hf.corpus.selection.release_filter import ReleaseFilter
from tests.refused import refused
from tests.toys import LOCAL, bytes_of, write_vectors

NOUNS = ["a dog", "the old man", "a small child", "my brother", "the tall woman", "our teacher", "a black cat"]
VERBS = ["runs over", "looks at", "jumps across", "sits under", "walks around", "points to", "sleeps behind"]
PLACES = ["the green field", "a wooden bridge", "the city market", "some white boats", "her garden", "that hill"]
TIMES = ["in winter", "at noon", "every Monday", "before dinner", "after the rain", "for three hours"]
COLUMNS = {"reference": "1", "translation": "2", "para_score": "3"}
RELEASE = ReleaseConfig(license="cc-by-4.0")


def sentences(count, seed=0):
    draw = np.random.default_rng(seed)
    return [" ".join(draw.choice(part) for part in (NOUNS, VERBS, PLACES, TIMES)) for _ in range(count)]


def write(folder, references, translations, scores, rows=40, **more):
    """Write rows as Parquet files of `rows` rows each."""
    table = pa.table(
        {"id": np.arange(len(references)), "reference": references, "translation": translations}
        | {"reference_length": [len(text.split()) for text in references]}
        | {"translation_length": [len(text.split()) for text in translations]}
        | {"para_score": np.asarray(scores, np.float32), **more}
    )
    files = []
    for start in range(0, len(references), rows):
        files.append(folder / f"{start:06d}.parquet")
        pq.write_table(table.slice(start, rows), files[-1])
    return files


def noise(count, mean, seed=1):
    return np.random.default_rng(seed).normal(mean, 0.1, count)


def shifted(count, place, lines, end=None):
    """Sentences whose translations are those of `lines` further on, from row `place` to `end`; and their scores."""
    end = count if end is None else end
    texts = sentences(count + 40)
    wrong = [place <= row < end for row in range(count)]
    translations = [texts[row + 20 + (lines if wrong[row] else 0)] + " ." for row in range(count)]
    scores = np.where(wrong, noise(count, 0.1), noise(count, 0.8))
    return texts[20 : 20 + count], translations, scores


@pytest.mark.parametrize(("place", "lines"), [(30, 1), (30, -1), (100, 3), (130, -7), (0, 2)])
def test_a_shift_is_found_at_its_place(tmp_path, place, lines):
    (section,) = misaligned_sections(write(tmp_path, *shifted(160, place, lines)))
    assert abs(section.first - 1 - place) <= 2
    assert (section.last, section.ends) == (160, False)
    assert section.rows == 160 - section.first + 1
    # The translation of reference n is `lines` before, where that of reference n + lines was put in its place.
    assert section.shift == section.change == -lines
    assert section.score == pytest.approx(0.1, abs=0.05)
    assert section.others == (None if place == 0 else pytest.approx(0.8, abs=0.05))


@pytest.mark.parametrize("length", [25, 60, 700])
@pytest.mark.parametrize("count", [1000, 5000])
def test_a_section_in_the_middle(tmp_path, count, length):
    (section,) = misaligned_sections(write(tmp_path, *shifted(count, 240, 1, 240 + length), rows=900))
    assert abs(section.first - 241) <= 2
    assert abs(section.last - 240 - length) <= 2
    assert (section.shift, section.ends) == (-1, True)


def test_a_file_that_drifts(tmp_path):
    texts = sentences(3000)
    translations = list(texts)
    for place in (2500, 1700, 400):
        del translations[place]
    del texts[2100]
    count = len(translations)
    right = np.array([text == other for text, other in zip(texts, translations, strict=False)])
    scores = np.where(right, noise(count, 0.8), noise(count, 0.1))
    found = misaligned_sections(write(tmp_path, texts[:count], translations, scores))
    assert [section.shift for section in found] == [-1, -2, -1, -2]
    assert [section.change for section in found] == [-1, -1, 1, -1]
    places = [section.first - 1 for section in found]
    assert np.abs(np.array(places) - [400, 1699, 2100, 2498]).max() <= 3
    assert not any(section.ends for section in found)


def test_a_shift_without_low_scores(tmp_path):
    # The scores of other encoders may say nothing; rows at regular distances show the shift all the same.
    references, translations, _ = shifted(6000, 1234, 2)
    (section,) = misaligned_sections(write(tmp_path, references, translations, noise(6000, 0.5), rows=1000))
    assert (abs(section.first - 1235) <= 2, section.shift) == (True, -2)


def test_lines_that_were_dropped_do_not_count(tmp_path):
    references, translations, scores = shifted(400, 200, 1)
    kept = np.delete(np.arange(400), [150, 210, 250, 300])
    table = {"id": kept}
    files = write(
        tmp_path, [references[row] for row in kept], [translations[row] for row in kept], scores[kept], **table
    )
    (section,) = misaligned_sections(files)
    assert (abs(section.first - 201) <= 2, section.last, section.shift) == (True, 400, -1)
    assert section.rows == 400 - section.first + 1 - 3


def test_two_lines_that_were_joined(tmp_path):
    texts = [f"{text.capitalize()}." for text in sentences(200)]
    translations = list(texts)
    references = [*texts[:99], f"{texts[99]} {texts[100]}", *texts[101:]]
    scores = [*noise(100, 0.8), *noise(99, 0.1)]
    (section,) = misaligned_sections(write(tmp_path, references, translations[:199], scores))
    assert section.shift == 1
    assert section.joined.startswith("reference 100 has more sentences than translation 100")
    (section,) = misaligned_sections(write(tmp_path, translations[:199], references, scores))
    assert section.shift == -1
    assert section.joined.startswith("reference 100 has fewer sentences than translation 100")


def test_another_text_from_a_place_on(tmp_path):
    texts, others = sentences(200), sentences(200, seed=9)
    files = write(tmp_path, texts, [*texts[:60], *others[60:]], [*noise(60, 0.8), *noise(140, 0.1)])
    (section,) = misaligned_sections(files)
    assert (abs(section.first - 61) <= 1, section.shift, section.change) == (True, None, None)


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_found_where_nothing_is_shifted(tmp_path, seed):
    draw = np.random.default_rng(seed)
    # Sentences of which some are repeated, near each other and far, each with a bad or a good translation.
    texts = np.array(sentences(300, seed))[np.sort(draw.integers(0, 300, 600))].tolist()
    words = [draw.permutation(text.split())[: draw.integers(3, 9)] for text in texts]
    translations = [" ".join(kept) for kept in words]
    scores = draw.uniform(-0.2, 1, 600)
    assert not misaligned_sections(write(tmp_path, texts, translations, scores))
    # Also sorted, so that neighbours are alike, and with a block of worse ones.
    order = np.argsort(translations)
    pairs = [texts[row] for row in order], [translations[row] for row in order]
    assert not misaligned_sections(write(tmp_path, *pairs, np.sort(scores)))
    worse = [" ".join(text.split()[:4]) if 200 < row < 400 else text for row, text in enumerate(texts)]
    assert not misaligned_sections(
        write(tmp_path, texts, worse, [*noise(200, 0.8), *noise(200, 0.2), *noise(200, 0.8)])
    )


def test_what_is_no_shift(tmp_path):
    texts = sentences(200)
    # Nothing in common, few rows.
    assert not misaligned_sections(write(tmp_path, ["aaaa"] * 60, ["bbbb"] * 60, [*noise(30, 0.8), *noise(30, 0.8)]))
    assert not misaligned_sections(write(tmp_path, texts[:10], texts[1:11], noise(10, 0.1)))


def test_first_hypotheses_decide(tmp_path):
    references, translations, scores = shifted(160, 60, 1)
    doubled = {"rank": np.tile([1, 2], 160).astype(np.int32), "id": np.repeat(np.arange(160), 2)}
    others = [text for translation in translations for text in (translation, "something else")]
    files = write(tmp_path, np.repeat(references, 2), others, np.repeat(scores, 2), rows=80, **doubled)
    (section,) = misaligned_sections(files)
    assert (abs(section.first - 61) <= 2, section.last, section.shift) == (True, 160, -1)


@pytest.mark.parametrize(("votes", "inside"), [(10, False), (11, True)])
def test_how_many_votes_a_shift_needs(votes, inside):
    # A vote is worth log(0.45 / (0.55 / 20)) = 2.795, and a change costs 15: two changes 30, one 15.
    found = likeliest_states(EVIDENCE[[ALIGNED] * 30 + [ALIGNED + 2] * votes + [ALIGNED] * 30])
    assert found.tolist() == [ALIGNED] * 30 + [ALIGNED + 2 * inside] * votes + [ALIGNED] * 30
    # At the end half as many, and rows without a vote count for neither.
    ends = EVIDENCE[[ALIGNED] * 9 + [ALIGNED - 1, NO_VOTE] * (votes - 5)]
    assert likeliest_states(ends)[[8, -1]].tolist() == [ALIGNED, ALIGNED - inside]


def test_which_rows_vote_at_first():
    # Every 250 rows, and at the end.
    regular = [(0, 40), (250, 290), (500, 540), (750, 790), (960, 1000)]
    scores = 0.5 + 0.01 * np.sin(np.arange(1000))
    assert rows_to_ask(scores) == regular
    # Where scores are low, from ten rows before to ten rows behind.
    scores[620:640] = 0
    assert rows_to_ask(scores) == [*regular[:3], (600, 640), (640, 660), *regular[3:]]
    assert rows_to_ask(np.full(20, 0.5)) == [(0, 20)]


def test_dice_by_hand():
    sets = np.array([[1, 1, 0, 0], [0, 1, 1, 1], [0, 0, 0, 0]], np.float32)
    assert dice(sets, sets).tolist() == pytest.approx(np.array([[1, 0.4, 0], [0.4, 1, 0], [0, 0, 0]]))


def test_what_a_warning_says():
    section = Misaligned(30_000, 31_999, 1_998, 1, 0.25, 0.75, 1, "", ends=True)
    (warning,) = alignment_warnings([section])
    for part in (
        "from line 30,000 to 31,999 (1,998 pairs, mean para_score 0.25, elsewhere 0.75)",
        "shifted by 1, reference n fits translation n+1",
        "before line 30,000 the reference lacks 1 line, or the other side has 1 line too many",
        "from line 32,000 on they belong together again",
    ):
        assert part in warning
    # At most ten, the last of which counts the others.
    warnings = alignment_warnings([section] * 13)
    assert len(warnings) == 10
    assert "3 other sections" in warnings[-1]
    assert all(one.startswith(WARNING) for one in warnings)
    assert alignment_warnings([]) == []


@pytest.fixture
def pairs(tmp_path):
    """A file of 120 pairs, of which those from line 61 to 99 are shifted; the translation of line 100 is lost."""
    rows = zip(*shifted(120, 60, -1, 100), strict=True)
    path = tmp_path / "pairs.tsv"
    path.write_text(
        "".join(f"{reference}\t{translation}\t{score.clip(-1, 1):.3f}\n" for reference, translation, score in rows)
    )
    return path


def imported(pairs, name, rows, **more):
    engine = EngineConfig("local", 1, 1, shard_rows=rows)
    return import_pairs(pairs, pairs.parent / name, columns=COLUMNS, release=RELEASE, engine=engine, **more)


def test_record_card_and_column_say_it(pairs):
    built = imported(pairs, "out", 25)
    (warning,) = built.record.warnings
    assert warning.startswith(f"{WARNING} from line 61 to 99 (39 pairs")
    assert "from line 61 to 99" in (built.folder / "README.md").read_text()
    added = rescore(built.folder, add=["alignment"])
    assert added.record.warnings == [warning]
    assert added.record.statistics.mismatches == {"alignment": 39}
    column = pq.read_table(built.folder / "data")["alignment"].to_pylist()
    assert column == [0] * 60 + [1] * 39 + [0] * 21
    # The same column, whatever the shards are, and again if it is there already.
    other = imported(pairs, "other", 7, add=["alignment"])
    assert bytes_of(other.folder / "data") == bytes_of(built.folder / "data")
    assert not rescore(built.folder, add=["alignment"]).fresh
    # What is left of the corpus belongs together, and its card says nothing else.
    aligned = select(built.folder, pairs.parent / "aligned", ReleaseFilter(min={"alignment": 0}, max={"alignment": 0}))
    assert (aligned.rows, aligned.record.warnings) == (81, [])


def test_scores_of_a_static_encoder(pairs):
    words = {word for line in pairs.read_text().split("\n") for word in line.lower().split()}
    vectors = write_vectors(pairs.parent / "vectors.txt", sorted(words))
    sides = {"reference": "1", "translation": "2"}
    built = import_pairs(pairs, pairs.parent / "out", columns=sides, release=RELEASE, scorer=vectors, engine=LOCAL)
    (warning,) = built.record.warnings
    assert "from line 61 to 99" in warning


def test_an_interrupted_import_has_the_same_column(pairs, killed_after):
    whole = imported(pairs, "whole", 25, add=["alignment"])
    killed_after(3, imported, pairs, "out", 25, add=["alignment"], kind=job, name="run_shard")
    killed_after(0, imported, pairs, "out", 25, add=["alignment"], kind=release_run, name="write_release")
    assert bytes_of(imported(pairs, "out", 25, add=["alignment"]).folder / "data") == bytes_of(whole.folder / "data")


def test_the_column_is_null_where_no_shift_is_known(pairs):
    lines = pairs.read_text().splitlines()[:60]
    lines += [f"{text}\t{other}\t0.1" for text, other in zip(sentences(120, 8), sentences(120, 9), strict=True)]
    pairs.write_text("\n".join(lines))
    built = imported(pairs, "out", 50, add=["alignment"])
    column = pq.read_table(built.folder / "data")["alignment"].to_pylist()
    count = column.count(None)
    assert abs(count - 120) <= 6
    assert column == [0] * (180 - count) + [None] * count
    assert built.record.statistics.mismatches == {"alignment": count}


def test_a_selection_gets_no_column(pairs):
    built = imported(pairs, "out", 25)
    chosen = select(built.folder, pairs.parent / "chosen", ReleaseFilter(sample=30))
    with refused("add"):
        rescore(chosen.folder, add=["alignment"])
    # If it has the column, this stays with its rows.
    rescore(built.folder, add=["alignment"])
    marked = select(built.folder, pairs.parent / "marked", ReleaseFilter(sample=60))
    before = pq.read_table(marked.folder / "data")["alignment"]
    rescore(marked.folder, add=["alignment", "sentence_mismatch"])
    assert pq.read_table(marked.folder / "data")["alignment"].equals(before)
    assert 0 < marked.record.statistics.mismatches["alignment"] < 40


def test_the_place_of_a_shift_in_real_captions(tmp_path, shared_data):
    table = pq.read_table(shared_data / "pairs" / "captions.parquet", columns=["caption_1", "caption_2"]).slice(
        0, 3000
    )
    references, translations = table["caption_1"].to_pylist(), table["caption_2"].to_pylist()
    scores = noise(3000, 0.5)
    assert not misaligned_sections(write(tmp_path, references, translations, scores, rows=1000))
    del references[2000]
    (section,) = misaligned_sections(write(tmp_path, references, translations[:2999], scores[:2999], rows=1000))
    assert (abs(section.first - 2001) <= 20, section.shift, section.last) == (True, 1, 2999)
