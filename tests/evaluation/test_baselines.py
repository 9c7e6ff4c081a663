"""BLEU, METEOR and the dictionary behind it, on cases that can be worked out by hand."""

from pathlib import Path

import pytest

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation import baselines
from paranmt_hf.evaluation.baselines import Bleu, Meteor, WordNet, baseline, find_wordnet
from paranmt_hf.evaluation.sts import evaluate_sts
from paranmt_hf.evaluation.sts_data import read_sts


@pytest.fixture
def no_wordnet(monkeypatch, tmp_path):
    """As on a machine without a dictionary."""
    monkeypatch.delenv("WNSEARCHDIR", raising=False)
    monkeypatch.setattr(baselines, "DEBIAN", tmp_path / "nowhere")


@pytest.fixture
def dictionary(tmp_path) -> Path:
    """Two sets of nouns (car, auto, motor_car; foot), one of adjectives (quick, fast), one irregular plural."""
    folder = tmp_path / "wordnet"
    folder.mkdir()
    licence = "  1 This is the licence.\n"
    cars = f"{len(licence):08d} 06 n 03 car 0 auto 0 motor_car 0 000 | a vehicle\n"
    feet = f"{len(licence) + len(cars):08d} 08 n 01 foot 0 000 | part of a leg\n"
    quick = f"{len(licence):08d} 00 a 02 quick 0 fast(p) 0 000 | not slow\n"
    texts = {
        "data.noun": licence + cars + feet,
        "index.noun": licence
        + "".join(f"{word} n 1 0 1 0 {cars[:8]}  \n" for word in ("auto", "car", "motor_car"))
        + f"foot n 1 1 @ 1 0 {feet[:8]}  \n",
        "noun.exc": "feet foot\n",
        "data.adj": licence + quick,
        "index.adj": licence + "".join(f"{word} a 1 0 1 0 {quick[:8]}  \n" for word in ("fast", "quick")),
    }
    for name in ("data.verb", "index.verb", "data.adv", "index.adv"):
        texts[name] = licence
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf8")
    return folder


def test_bleu():
    pytest.importorskip("sacrebleu")
    same, none, part = Bleu().similarities(["a b c d", "a b", "A b c d"], ["a b c d", "x y", "a b c d e"])
    assert same == pytest.approx(1)
    assert none == 0
    # One way all n-grams match and the brevity penalty is exp(1 - 5/4); the other way 4/5, 3/4, 2/3 and 1/2 match.
    brief, long = 2.718281828 ** (1 - 5 / 4), (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** (1 / 4)
    assert part == pytest.approx((brief + long) / 2)


def test_bleu_does_not_depend_on_the_order():
    pytest.importorskip("sacrebleu")
    left, right = ["The cat sat on it .", "a b c"], ["A cat sat", "c b a c"]
    assert Bleu().similarities(left, right).tolist() == Bleu().similarities(right, left).tolist()


def test_meteor(no_wordnet):
    """nltk's parameters: F = PR / (0.9 P + 0.1 R), penalty 0.5 (chunks / matches) ** 3."""
    pytest.importorskip("nltk")
    meteor = Meteor()
    assert meteor.stages == ("exact", "stem")
    same, none, part = meteor.similarities(["a b c d", "a b", "cats sit"], ["a b c d", "x y", "cat sit down now"])
    assert same == pytest.approx(1 - 0.5 * (1 / 4) ** 3)
    assert none == 0
    # Two matches in one chunk, of two words and of four: precision and recall change places with the direction.
    one_way, other = 1 * 0.5 / (0.9 * 1 + 0.1 * 0.5), 0.5 * 1 / (0.9 * 0.5 + 0.1 * 1)
    assert part == pytest.approx((one_way + other) / 2 * (1 - 0.5 * (1 / 2) ** 3))
    assert meteor.notes == (
        "METEOR: nltk's; the paper's is that of Denkowski & Lavie 2014. Mean of both directions; stages: exact, stem.",
    )


def test_meteor_with_synonyms(dictionary):
    pytest.importorskip("nltk")
    meteor = Meteor(dictionary)
    assert meteor.stages == ("exact", "stem", "synonym")
    assert meteor.similarities(["a quick car"], ["a fast auto"]) == pytest.approx([1 - 0.5 * (1 / 3) ** 3])
    assert meteor.similarities(["a slow car"], ["a fast auto"])[0] < 0.7


def test_dictionary(dictionary):
    words = WordNet(dictionary)
    assert words.synonyms("cars") == {"car", "auto"}
    assert words.synonyms("quick") == {"quick", "fast"}
    assert words.synonyms("feet") == {"foot"}
    assert words.synonyms("quicker") == {"quick", "fast"}
    assert words.synonyms("unheard") == set()
    assert WordNet(None).synonyms("car") == set()


def test_where_the_dictionary_is(dictionary, no_wordnet, monkeypatch, tmp_path):
    assert find_wordnet() is None
    assert find_wordnet(dictionary) == dictionary
    monkeypatch.setenv("WNSEARCHDIR", str(dictionary))
    assert find_wordnet() == dictionary
    with pytest.raises(InputError, match=r"holds no dictionary of WordNet: expected index\.noun"):
        find_wordnet(tmp_path)


def test_damaged_dictionary(dictionary):
    (dictionary / "index.verb").write_text("run v many\n", encoding="utf8")
    with pytest.raises(InputError, match="cannot read the verbs of WordNet in .*install the dictionary again"):
        WordNet(dictionary)


def test_baselines_by_name(no_wordnet):
    for package, name, kind in (("sacrebleu", "bleu", Bleu), ("nltk", "meteor", Meteor)):
        pytest.importorskip(package)
        assert isinstance(baseline(name), kind)
    with pytest.raises(InputError, match="baselines must be bleu or meteor, was 'rouge'"):
        baseline("rouge")


@pytest.mark.slow
def test_real_data(shared_data, no_wordnet):
    """The figures were recorded when this test was written."""
    for package in ("sacrebleu", "nltk"):
        pytest.importorskip(package)
    sets = [one for one in read_sts(shared_data / "sts") if one.year == "STS13"]
    for name, expected in (("bleu", 33.0), ("meteor", 41.6)):
        result = evaluate_sts(baseline(name), sets, bootstrap=0)
        assert 100 * result.mean == pytest.approx(expected, abs=0.1)
        assert any(note.startswith(name.upper()) for note in result.notes)
