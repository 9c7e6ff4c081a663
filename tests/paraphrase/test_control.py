"""How far templates control paraphrases: what training measures, and what is kept."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import PairSelection, Paraphraser
from paranmt_hf.corpus.parsing.trees import linearised, read_tree, template_of
from paranmt_hf.corpus.reading.pairs import Pairs
from paranmt_hf.paraphrase import control
from paranmt_hf.paraphrase.training_data import TrainingPairs, held_out_keys
from tests.paraphrase.paraphraser_toys import FINDS as VERBS
from tests.paraphrase.paraphraser_toys import NOUNS
from tests.paraphrase.test_controlled import (  # noqa: F401 - fixtures
    SMALL,
    TEMPLATES,
    WAYS,
    pairs,
    trained,
    training,
    trees,
)
from tests.refused import refused


def text_of(pairs, config, **settings):  # noqa: F811
    return TrainingPairs(Pairs([pairs], PairSelection(), all_columns=True), "pairs", config, training(**settings))


@pytest.mark.slow
@pytest.mark.parametrize("installed", [True, False])
def test_control_is_measured_by_parsing_paraphrases(trained, pairs, trees, installed):  # noqa: F811
    # A parser that gives every third sentence the tree of a question.
    known = dict(line.split("\t") for line in trees.read_text().splitlines())
    known |= dict.fromkeys(list(known)[::3], WAYS[2][1])
    apart = pq.read_table(pairs)
    apart = apart.filter(pa.array(held_out_keys(apart["reference"], 0.1))).to_pylist()
    sources = {row["translation"]: row["translation_parse"] for row in apart}

    class Odd:
        name, at_once = "odd", None

        def trees(self, sentences):
            return [read_tree(known[sentence]) if sentence in known else None for sentence in sentences]

    class Own(Odd):
        def trees(self, sentences):
            return [
                read_tree({**known, **sources}[each]) if each in {**known, **sources} else None for each in sentences
            ]

    figures = control.measure_control(trained.folder, text_of(pairs, SMALL), Odd() if installed else None)
    paraphraser = Paraphraser.from_pretrained(trained.folder, parser=Own(), scorer=None, keep_copies=True)
    made = {each: paraphraser(list(sources), templates=[each], has_template=False) for each in TEMPLATES}
    texts = {
        (source, each): one.text for each, lists in made.items() for source, (one,) in zip(sources, lists, strict=True)
    }
    assert figures.paraphrases == len(texts) > 30
    assert figures.distinct == pytest.approx(len({(source, text) for (source, _), text in texts.items()}) / len(texts))
    if not installed:
        assert (figures.template_match, figures.other_template_match, figures.found) == (None, None, None)
        return
    searched = {each: paraphraser(list(sources), templates=[each], keep_copies=False) for each in TEMPLATES}
    found = {
        (source, each): bool(one)
        for each, lists in searched.items()
        for source, one in zip(sources, lists, strict=True)
    }
    matches = []
    for (source, template), text in texts.items():
        (tree,) = Own().trees([text])
        match = tree is not None and template_of(linearised(tree)) == template
        matches.append((match, found[source, template], template_of(sources[source]) != template))
    match, found, other = np.array(matches).T
    assert figures.template_match == pytest.approx(match.mean()) and figures.found == pytest.approx(found.mean())
    assert figures.other_template_match == pytest.approx(match[other].mean())
    assert figures.other_found == pytest.approx(found[other].mean())
    assert 0 < figures.other_template_match <= figures.other_found < 1


@pytest.mark.slow
def test_paraphrases_without_the_template_are_left_out(trained, trees):  # noqa: F811
    """By a parser that gives every third sentence the tree of a question."""
    known = dict(line.split("\t") for line in trees.read_text().splitlines())

    class Odd:
        name, at_once = "odd", None

        def trees(self, sentences):
            found = {text: WAYS[2][1] if index % 3 == 0 else tree for index, (text, tree) in enumerate(known.items())}
            return [read_tree(found[sentence]) if sentence in found else None for sentence in sentences]

    parser, sources = Odd(), [WAYS[0][0].format(a=a, b=b, c="dog") for a in NOUNS[:3] for b in VERBS[:3]]
    paraphraser = Paraphraser.from_pretrained(trained.folder, parser=parser, scorer=None, keep_copies=True, n=3)
    kept, dropped, more = 0, 0, 0
    for template in TEMPLATES:
        for source in sources:
            search = {"templates": [template], "beams": 6, "n": 6}
            every = [own.text for own in paraphraser([source], **search, has_template=False)[0]]
            right = [
                text for text in every if text in known and template_of(linearised(*parser.trees([text]))) == template
            ]
            assert [own.text for own in paraphraser([source], **search, trees=1)[0]] == right
            # What is found after the most probable tree is found after several.
            several = [own.text for own in paraphraser([source], **search, trees=3)[0]]
            assert set(right[:1]) <= set(several)
            more += len(several) > len(right)
            kept, dropped = kept + len(right), dropped + len(every) - len(right)
    assert kept > 10 and dropped > 10 and more > 0
    with refused("has_template"):
        Paraphraser.from_pretrained(trained.folder, parser=trees, scorer=None)(sources, has_template=True)


def test_pairs_of_one_template_are_left_out(pairs):  # noqa: F811
    table, text = pq.read_table(pairs), text_of(pairs, replace(SMALL, same_template=False))
    left = pa.concat_tables(text.tables("read", "to-reference"))
    templates = [
        [template_of(tree) for tree in table[f"{side}_parse"].to_pylist()] for side in ("reference", "translation")
    ]
    different = [one != other for one, other in zip(*templates, strict=True)]
    assert left["target"].to_pylist() == table["reference"].filter(pa.array(different)).to_pylist()
    assert text.dropped["same_template"] == 300 - sum(different) > 50


def test_a_parser_that_is_not_known_or_not_installed_is_not_opened(monkeypatch, caplog):
    monkeypatch.setenv("PATH", "")
    assert [control.installed_parser(name) for name in ("my own", None)] == [None, None] and not caplog.messages
    assert control.installed_parser("link-grammar 5.12") is None and "are not parsed" in caplog.text


def test_without_held_out_pairs_nothing_is_measured(trained, pairs):  # noqa: F811
    assert control.measure_control(trained.folder, text_of(pairs, SMALL, held_out=0), None) is None
