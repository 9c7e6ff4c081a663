"""Sections of a bitext where one side is shifted."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import ReleaseConfig, import_pairs
from paranmt_hf.corpus.scoring.alignment import WARNING, cut_into_sections, misaligned_sections

NOUNS = ["a dog", "the old man", "a small child", "my brother", "the tall woman", "our teacher", "a black cat"]
VERBS = ["runs over", "looks at", "jumps across", "sits under", "walks around", "points to", "sleeps behind"]
PLACES = ["the green field", "a wooden bridge", "the city market", "some white boats", "her garden", "that hill"]


def sentences(count, seed=0):
    draw = np.random.default_rng(seed)
    return [f"{draw.choice(NOUNS)} {draw.choice(VERBS)} {draw.choice(PLACES)}" for _ in range(count)]


def write(folder, references, translations, scores, rows=40, **more):
    """Write rows as Parquet files of `rows` rows each."""
    table = pa.table(
        {"id": np.arange(len(references)), "reference": references, "translation": translations}
        | {"para_score": np.asarray(scores, np.float32), **more}
    )
    files = []
    for start in range(0, len(references), rows):
        files.append(folder / f"{start:06d}.parquet")
        pq.write_table(table.slice(start, rows), files[-1])
    return files


def noise(count, mean, seed=1):
    return np.random.default_rng(seed).normal(mean, 0.1, count)


def shifted(count, place, lines):
    """Sentences whose translations are those of `lines` further on, from row `place`; and their scores."""
    texts = sentences(count + 20)
    translations = [texts[row + (lines if row >= place else 0)] + " ." for row in range(count)]
    return texts[:count], translations, np.append(noise(place, 0.8), noise(count - place, 0.1))


@pytest.mark.parametrize(("place", "lines"), [(30, 1), (30, -1), (100, 3), (130, -7), (0, 2)])
def test_a_shift_is_found_at_its_place(tmp_path, place, lines):
    (section,) = misaligned_sections(write(tmp_path, *shifted(160, place, lines)))
    assert abs(section.first - 1 - place) <= 2
    assert section.last == 160
    # Line i of the reference has its translation `lines` before, where that of line i + lines was put in its place.
    assert section.shift == -lines
    assert section.score == pytest.approx(0.1, abs=0.05)
    assert section.others == (None if place == 0 else pytest.approx(0.8, abs=0.05))


def test_a_section_in_the_middle(tmp_path):
    texts = sentences(200)
    translations = [*texts[:80], *texts[81:121], *texts[120:]]
    scores = [*noise(80, 0.8), *noise(40, 0.1), *noise(80, 0.8)]
    (section,) = misaligned_sections(write(tmp_path, texts, translations, scores))
    assert (abs(section.first - 81) <= 1, abs(section.last - 120) <= 1, section.shift) == (True, True, -1)


def test_another_text_from_a_place_on(tmp_path):
    texts, others = sentences(120), [f"question {number} about the weather in winter" for number in range(120)]
    files = write(tmp_path, texts, [*texts[:60], *others[60:]], [*noise(60, 0.8), *noise(60, 0.1)])
    (section,) = misaligned_sections(files)
    assert (abs(section.first - 61) <= 1, section.shift) == (True, None)


def test_bad_translations_are_no_shift(tmp_path):
    texts = sentences(200)
    worse = [" ".join(text.split()[:3]) for text in texts]
    assert not misaligned_sections(
        write(tmp_path, texts, [*texts[:100], *worse[100:]], [*noise(100, 0.9), *noise(100, 0.4)])
    )


def test_what_is_no_shift(tmp_path):
    texts = sentences(200)
    # Sorted by score, nothing in common, few rows.
    assert not misaligned_sections(write(tmp_path, texts, texts, np.sort(noise(200, 0.5))))
    assert not misaligned_sections(write(tmp_path, ["aaaa"] * 60, ["bbbb"] * 60, [*noise(30, 0.8), *noise(30, 0.8)]))
    assert not misaligned_sections(write(tmp_path, texts[:10], texts[1:11], noise(10, 0.1)))


def test_first_hypotheses_decide(tmp_path):
    references, translations, scores = shifted(160, 60, 1)
    doubled = {"rank": np.tile([1, 2], 160).astype(np.int32)}
    files = write(
        tmp_path, np.repeat(references, 2), np.repeat(translations, 2), np.repeat(scores, 2), rows=80, **doubled
    )
    (section,) = misaligned_sections(files)
    assert (abs(section.first - 121) <= 4, section.shift) == (True, -1)


def test_sections_of_equal_means():
    scores = np.concatenate([noise(100, 0.8), noise(50, 0.3), noise(100, 0.6)])
    bounds = cut_into_sections(scores)
    assert (bounds[0], bounds[-1]) == (0, 250)
    assert all(min(abs(bound - cut) for bound in bounds) <= 1 for cut in (100, 150))
    assert cut_into_sections(np.full(100, 0.5)) == [0, 100]
    assert cut_into_sections(np.zeros(0)) == [0, 0]


@pytest.mark.slow
def test_the_record_and_the_card_say_it(tmp_path):
    references, translations, _ = shifted(100, 30, 1)
    lines = [f"{reference}\t{translation}" for reference, translation in zip(references, translations, strict=True)]
    (tmp_path / "pairs.tsv").write_text("\n".join(lines) + "\n")
    release = ReleaseConfig(license="cc-by-4.0")
    columns = {"reference": "1", "translation": "2"}
    built = import_pairs(tmp_path / "pairs.tsv", tmp_path / "out", columns=columns, release=release)
    (warning,) = built.record.warnings
    assert warning.startswith(WARNING)
    assert "lines 31 to 100" in (tmp_path / "out" / "README.md").read_text()
