"""Texts that look like repeats and are none are kept; every script is cut into words."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import dedup
from paranmt_hf.cli import main
from paranmt_hf.corpus.reading.plain_text import PlainText
from paranmt_hf.meaning.differences import DifferentDocuments
from paranmt_hf.search.dedup import DedupConfig

TEMPLATE = "The meeting of the team is on {} at {} {} in room {} of the main building."
ROOMS = [
    TEMPLATE.format(day, hour, half, room)
    for day in ("Monday", "Tuesday", "Friday")
    for hour in range(8, 12)
    for half in ("am", "pm")
    for room in range(1, 11)
]
AGAIN = [room.replace("The meeting of the team is", "The team's meeting is") for room in ROOMS[::4]]


def left(folder, lines, **settings):
    """The lines that are kept, and the number of those that each method dropped."""
    (folder / "in.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf8")
    made = dedup(folder / "in.txt", folder / "out.txt", config=DedupConfig(**settings))
    return made.folder.read_text(encoding="utf8").splitlines(), made.record.dropped


@pytest.mark.slow
@pytest.mark.parametrize("lists", [1, 7])
def test_meaning_keeps_texts_of_a_template_and_drops_repeats(tmp_path, lists):
    # Far more texts are alike than those with which each is compared, so that the ones with its claims must be found.
    kept, dropped = left(tmp_path, [*ROOMS, *AGAIN], by=("meaning",), lists=lists, probes=lists)
    assert kept == ROOMS
    assert dropped == {"exact": 0, "meaning": len(AGAIN)}


def test_near_keeps_them_if_asked(tmp_path):
    kept, dropped = left(tmp_path, [*ROOMS, *AGAIN], by=("near",), same_meaning=True)
    assert kept == ROOMS
    assert dropped == {"exact": 0, "near": len(AGAIN)}


def test_texts_of_the_same_pairs_of_words_may_differ(tmp_path):
    lines = ["to 3 to 4 to", "to 4 to 3 to"]
    assert left(tmp_path, lines, by=("near",), same_meaning=True) == (lines, {"exact": 0, "near": 0})


@pytest.mark.slow
@pytest.mark.parametrize("method", ["near", "meaning"])
def test_a_stopped_run_continues_with_other_settings(tmp_path, monkeypatch, method):
    (tmp_path / "in.txt").write_text("\n".join([*ROOMS[:40], *AGAIN[:10]]))

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(PlainText, "write", stop)
        dedup(tmp_path / "in.txt", tmp_path / "out.txt", config=DedupConfig(by=(method,), same_meaning=False))
    made = [
        dedup(tmp_path / "in.txt", tmp_path / name, config=DedupConfig(by=(method,), same_meaning=True))
        for name in ("out.txt", "again.txt")
    ]
    assert made[0].record.dropped == made[1].record.dropped == {"exact": 0, method: 10}


def test_a_text_is_dropped_only_if_it_is_like_one_that_is_kept(tmp_path):
    lines = [
        "The meeting of the whole team is on Monday in room 3 of the main building.",
        "The meeting of the whole team is on Monday in room 4 of the main building.",
        "The meeting of the whole team is on Monday, in room 4 of the main building.",
        "The meeting of the whole team is on Monday, in room 3 of the main building!",
        # Like the first and no other, though it lies between them.
        "A meeting of the whole team is on Monday in room three of the main building.",
    ]
    (tmp_path / "in.txt").write_text("\n".join(lines))
    config = DedupConfig(by=("near",), similarity=0.6, same_meaning=True)
    made = dedup(tmp_path / "in.txt", tmp_path / "out.txt", config=config, keep_dropped=tmp_path / "gone.parquet")
    report = pq.read_table(tmp_path / "gone.parquet").to_pylist()
    assert [(row["line"], row["like_line"]) for row in report] == [(3, 2), (4, 1), (5, 1)]
    assert made.record.dropped == {"exact": 2, "near": 1}


@pytest.mark.slow
def test_flags_of_the_command(tmp_path):
    (tmp_path / "in.txt").write_text("\n".join([*ROOMS[:40], *AGAIN[:10]]))
    counts = {}
    for number, flags in enumerate(([], ["--same-meaning"], ["--no-same-meaning"])):
        out = tmp_path / f"{number}.txt"
        assert main(["dedup", str(tmp_path / "in.txt"), "--by", "meaning", *flags, "--out", str(out)]) == 0
        counts[" ".join(flags)] = len(out.read_text().splitlines())
    assert counts["--same-meaning"] == counts[""] == 40
    assert counts["--no-same-meaning"] < 40


def test_numbers_in_another_order_differ():
    texts = pa.array(["at 8 in room 9", "at 9 in room 8", "in room 9 at 8", "at eight in room nine", "in a room"])
    differences = DifferentDocuments(lambda places: texts.take(pa.array(places)))
    first, second = np.array([0, 0, 0, 1]), np.array([1, 3, 4, 3])
    assert differences.between(first, second).tolist() == [True, False, True, True]


def test_only_digits_and_addresses_count_in_other_languages():
    texts = pa.array(["Das Haus hat 3 R\u00e4ume.", "Das Haus hat 4 R\u00e4ume.", "Das Geb\u00e4ude hat 3 Zimmer."])
    differences = DifferentDocuments(lambda places: texts.take(pa.array(places)), language="de")
    assert differences.between(np.array([0, 0]), np.array([1, 2])).tolist() == [True, False]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        # "An old man goes to the market early in the morning to buy bread", with a word left out.
        ("一位老人清晨很早就去市场买面包和牛奶", "一位老人清晨就去市场买面包和牛奶"),
        ("おじいさんは朝早く市場へパンを買いに行きます", "おじいさんは朝市場へパンを買いに行きます"),
        ("ชายชราไปตลาดแต่เช้าเพื่อซื้อขนมปัง", "ชายชราไปตลาดเช้าเพื่อซื้อขนมปัง"),
        ("كانت السماء صافية عندما بدأت الطائرة بالهبوط في مطار", "كانت السماء صافية عندما بدأت الطائرة بالهبوط في"),
    ],
    ids=["zh", "ja", "th", "ar"],
)
def test_near_needs_no_language(tmp_path, first, second):
    kept, dropped = left(tmp_path, [first, "Nothing else is like this one here.", second], by=("near",))
    assert dropped == {"exact": 0, "near": 1}
    assert kept == [first, "Nothing else is like this one here."]


def test_copies_have_one_normal_form(tmp_path):
    lines = ["Tom & Jerry don't co-operate, he said.", "Tom &amp; Jerry don&#39;t co-operate, he said."]
    lines += ["Tom & Jerry don\u00b4t co-op\u00aderate, he said.", "It costs 35.", "It costs \u0663\u0665."]
    kept, dropped = left(tmp_path, lines, by=("exact",))
    assert kept == [lines[0], lines[3]]
    assert dropped == {"exact": 3}
