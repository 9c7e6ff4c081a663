"""Controlled networks: from parsed pairs to a network whose templates decide, stopped, resumed, refused."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from paranmt_hf import PairSelection, ParaphraseConfig, Paraphraser, ParaphraserConfig, train_paraphraser
from paranmt_hf.corpus.parsing.trees import template_of
from paranmt_hf.errors import OtherSettingsError
from paranmt_hf.paraphrase.paraphrase_file import paraphrase_file
from paranmt_hf.paraphrase.training_data import held_out_keys
from tests.paraphrase import paraphraser_toys as toys
from tests.paraphrase.paraphraser_toys import FINDS as VERBS
from tests.paraphrase.paraphraser_toys import LOCAL, NOUNS, stopped_training
from tests.refused import refused

SMALL = ParaphraserConfig(
    model="controlled", pieces=330, embedding=32, hidden=32, dropout=0.0, tree_hidden=32, same_template=True
)
# Each way to say it, with its tree: the template of the target decides the order of words.
WAYS = (
    ("the {a} {b} a {c} .", "(S(NP(DT)(NN))(VP(VBZ)(NP(DT)(NN)))(.))"),
    ("a {c} , the {a} {b} it .", "(S(NP(DT)(NN))(,)(NP(DT)(NN))(VP(VBZ)(NP(PRP)))(.))"),
    ("{b} the {a} a {c} ?", "(SQ(VBZ)(NP(DT)(NN))(NP(DT)(NN))(?))"),
)


def training(**settings):
    given = {"epochs": 5, "learning_rate": 0.02, "batch_tokens": 300, "evaluations": 1}
    return toys.training(**{**given, **settings})


def rows(count, seed=0):
    """Pairs of two ways to say the same."""
    random = np.random.default_rng(seed)
    columns = {name: [] for name in ("reference", "translation", "reference_parse", "translation_parse")}
    for a, b, c in random.integers(0, 5, (count, 3)):
        words = {"a": NOUNS[a], "b": VERBS[b], "c": NOUNS[c]}
        ways = random.integers(0, len(WAYS), 2)
        for side, way in zip(("reference", "translation"), ways, strict=True):
            columns[side].append(WAYS[way][0].format(**words))
            columns[f"{side}_parse"].append(WAYS[way][1])
    return columns


def write(path, count=300, **changed):
    pq.write_table(pa.table({**rows(count), **changed}), path)
    return path


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    return write(tmp_path_factory.mktemp("pairs") / "pairs.parquet")


@pytest.fixture(scope="module")
def trained(pairs, tmp_path_factory):
    out = tmp_path_factory.mktemp("network") / "out"
    return train_paraphraser(pairs, out, config=SMALL, training=training())


def test_the_folder_holds_two_models_of_transformers(trained):
    names = sorted(path.name for path in trained.folder.iterdir())
    files = ["config.json", "generation_config.json", "model.safetensors"]
    files += ["modeling_paranmt_controlled.py", "modeling_paranmt_lstm.py", "tokenizer.json", "tokenizer_config.json"]
    assert names == sorted([*files, "README.md", "parse-generator", "templates.json", "paraphraser.json"])
    assert sorted(path.name for path in (trained.folder / "parse-generator").iterdir()) == sorted(files)
    readable = trained.folder.stat().st_mode & 0o666
    assert {path.stat().st_mode & 0o777 for path in trained.folder.rglob("*.safetensors")} == {readable}
    model, tokenizer = (kind.from_pretrained(trained.folder) for kind in (AutoModelForSeq2SeqLM, AutoTokenizer))
    trees = AutoTokenizer.from_pretrained(trained.folder, subfolder="parse-generator")
    control_ids = trees([WAYS[0][1]], return_tensors="pt").input_ids
    source = tokenizer(["a dog , the man sees it ."], return_tensors="pt")
    assert model.generate(**source, control_ids=control_ids, num_beams=2, max_new_tokens=9).shape[0] == 1
    assert not trained.folder.with_name("out.work").exists()
    for folder in (trained.folder, trained.folder / "parse-generator"):
        assert json.loads((folder / "config.json").read_text())["use_cache"] is True
    counts = json.loads((trained.folder / "templates.json").read_text())
    assert sum(counts.values()) == 300 and list(counts.values()) == sorted(counts.values(), reverse=True)
    assert set(counts) == {"(S(NP)(VP)(.))", "(S(NP)(,)(NP)(VP)(.))", "(SQ(VBZ)(NP)(NP)(?))"}


def test_figures(trained):
    record = trained.record
    assert record.pairs + record.held_out == 300 and record.parses.templates == 3
    assert (record.parses.without_tree, record.parses.long_trees, record.too_long) == (0, 0, 0)
    for course in (record.course, record.parses.course):
        assert course.steps == course.measured[-1].step
        assert course.best.perplexity == pytest.approx(np.exp(course.best.loss))
    assert record.course.best.template_match is None and 0 <= record.course.best.bleu <= 100
    assert record.parses.course.best.bleu is None and 0.3 <= record.parses.course.best.template_match <= 1
    assert f"{record.parses.course.best.template_match:.1%} have the template asked for" in trained.summary()


@pytest.mark.slow
def test_held_out_loss_is_that_of_the_kept_weights(trained, pairs):
    """Computed from text, pair by pair: both models."""
    table = pq.read_table(pairs)
    apart = table.filter(pa.array(held_out_keys(table["reference"], 0.1))).to_pylist()
    trees = AutoTokenizer.from_pretrained(trained.folder, subfolder="parse-generator")
    words = AutoTokenizer.from_pretrained(trained.folder)
    assert len(apart) == trained.record.held_out

    def loss(folder, tokenizer, items):
        model, total, count = AutoModelForSeq2SeqLM.from_pretrained(folder).eval(), 0.0, 0
        for source, target, tree in items:
            labels = tokenizer([target], return_tensors="pt").input_ids
            ids, control_ids = (
                kind([text], return_tensors="pt").input_ids for kind, text in ((tokenizer, source), (trees, tree))
            )
            found = model(input_ids=ids, control_ids=control_ids, labels=labels).loss
            total, count = total + float(found.detach()) * labels.numel(), count + labels.numel()
        return total / count

    sentences = [(row["translation"], row["reference"], row["reference_parse"]) for row in apart]
    assert trained.record.course.best.loss == pytest.approx(loss(trained.folder, words, sentences), rel=1e-4)
    half = len(apart) // 2
    others = [(source, target, sentences[row - half][2]) for row, (source, target, _) in enumerate(sentences)]
    found = loss(trained.folder, words, others)
    assert trained.record.course.best.loss_other_tree == pytest.approx(found, rel=1e-4)
    assert found > trained.record.course.best.loss
    parses = [(r["translation_parse"], r["reference_parse"], template_of(r["reference_parse"])) for r in apart]
    found = loss(trained.folder / "parse-generator", trees, parses)
    assert trained.record.parses.course.best.loss == pytest.approx(found, rel=1e-4)


def test_the_card_says_how_it_was_made(trained):
    text = (trained.folder / "README.md").read_text()
    (line,) = re.findall(r"^paranmt paraphrase train (.*)$", text, re.M)
    assert set(line.split(" --")) == {
        *("pairs.parquet", "model controlled", "batch-tokens 300", "learning-rate 0.02", "held-out 0.1", "device cpu"),
        *("architecture pieces=330,embedding=32,hidden=32,dropout=0,tree_hidden=32,same_template=true", "out FOLDER"),
        "optimization warmup=2,evaluations=1",
    }
    assert "| `(S(NP)(VP)(.))` |" in text and "templates=[" in text
    assert f"{trained.record.parses.course.best.template_match:.1%}" in text


@pytest.mark.slow
@pytest.mark.parametrize("during", ["parses", "paraphrases"])
def test_a_run_that_was_stopped_ends_with_the_same_bytes(trained, pairs, tmp_path, during):
    settings = {"config": SMALL, "training": training(checkpoint_seconds=0)}
    with stopped_training(during):
        train_paraphraser(pairs, tmp_path / "out", **settings)
    assert not (tmp_path / "out").exists()
    assert any((tmp_path / "out.work" / during / "trainer").glob("checkpoint-*/complete"))
    torch.manual_seed(99)
    done = train_paraphraser(pairs, tmp_path / "out", **settings)
    assert done.record.course.losses == trained.record.course.losses
    names = {path.relative_to(trained.folder) for path in trained.folder.rglob("*") if path.is_file()}
    # These say how many seconds training took.
    names -= {Path("paraphraser.json"), Path("README.md")}
    assert len(names) == 15
    for name in names:
        assert (done.folder / name).read_bytes() == (trained.folder / name).read_bytes(), name
    assert not train_paraphraser(pairs, tmp_path / "out", **settings).fresh


@pytest.mark.slow
def test_pairs_without_a_tree_or_with_a_long_one_are_left_out(tmp_path):
    columns = rows(100)
    columns["translation_parse"][:10] = [None] * 10
    columns["reference_parse"][5:20] = ["(S" + "(NP)" * 80 + ")"] * 15
    path = write(tmp_path / "pairs.parquet", 100, **columns)
    settings = training(max_steps=1, held_out=0, direction="both")
    done = train_paraphraser(path, tmp_path / "out", config=SMALL, training=settings)
    assert (done.record.parses.without_tree, done.record.parses.long_trees, done.record.pairs) == (10, 10, 2 * 80)
    assert done.record.course.steps == done.record.parses.course.steps == 1 and not done.record.course.measured
    assert "No pairs were held out" in (done.folder / "README.md").read_text()


def test_bad_data_is_refused_and_nothing_left(pairs, trained, tmp_path):
    plain = tmp_path / "plain.parquet"
    pq.write_table(pq.read_table(pairs).select(["reference", "translation"]), plain)
    small = {"config": SMALL, "training": training()}
    columns = (pa.nulls(5, pa.string()), pa.array([["(S(NP)(VP))"]] * 5), pa.array([b"\xff"] * 5))
    for data, option, settings in [
        (plain, "data", small),
        *(
            (write(tmp_path / f"{place}.parquet", 5, reference_parse=column), "data" if place else None, small)
            for place, column in enumerate(columns)
        ),
        (pairs, "noise", {**small, "training": training(noise=0.5)}),
        (pairs, None, {**small, "selection": PairSelection(min_score=0.5)}),
        (plain, "base", {"config": ParaphraserConfig(base=str(trained.folder))}),
    ]:
        with refused(option):
            train_paraphraser(data, tmp_path / "out", **settings)
    assert not list(tmp_path.glob("out*"))


LINES = [
    "the man sees a dog .",
    "",
    "a dog , the child likes it .",
    "the man sees a dog . " * 30,
    "no tree here .",
    "?",
]
TEMPLATES = {"(S(NP)(VP)(.))": WAYS[0], "(S(NP)(,)(NP)(VP)(.))": WAYS[1], "(SQ(VBZ)(NP)(NP)(?))": WAYS[2]}
QUESTION = "(SQ(VBZ)(NP)(NP)(?))"


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A network that has seen enough of the toy language to speak it."""
    folder = tmp_path_factory.mktemp("learned")
    pairs = write(folder / "pairs.parquet", 600)
    settings = training(epochs=8, held_out=0)
    return train_paraphraser(pairs, folder / "out", config=SMALL, training=settings).folder


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    """Trees of the sentences of the toy language, with words, as parsers give them."""
    path = tmp_path_factory.mktemp("trees") / "trees.tsv"
    lines = {}
    for way, tree in WAYS:
        for a in NOUNS:
            for b in VERBS:
                for c in NOUNS:
                    lines[way.format(a=a, b=b, c=c)] = f"(ROOT {tree.replace('(', ' (')})"
    path.write_text(
        "".join(f"{sentence}\t{tree}\n" for sentence, tree in lines.items()) + "?\t(S" + "(NP)" * 90 + ")\n"
    )
    return path


@pytest.fixture(scope="module")
def network(trained):
    return trained.folder


def paraphrased(model, trees, lines, out, **settings):
    text = out.with_name("text.txt")
    text.write_bytes("\n".join(lines).encode() + b"\n\xff\xfe\n")
    config = ParaphraseConfig(max_length=40, device="cpu", min_score=-1.0)
    return paraphrase_file(text, out, model=model, config=config, engine=LOCAL, parser=trees, **settings)


@pytest.mark.slow
def test_templates_decide_the_order_of_words(learned, trees):
    paraphraser = Paraphraser.from_pretrained(learned, parser=trees)
    sentences = [WAYS[way][0].format(a="man", b=verb, c="dog") for way in range(3) for verb in VERBS]
    right = 0
    for template, (way, _) in TEMPLATES.items():
        # A sentence that has the template already is answered by itself.
        found = paraphraser(sentences, templates=[template], beams=1, keep_copies=True)
        assert all(len(own) == 1 and own[0].template == template for own in found)
        wanted = [way.format(a="man", b=verb, c="dog") for _ in range(3) for verb in VERBS]
        right += sum(own[0].text == text for own, text in zip(found, wanted, strict=True))
    assert right >= 0.9 * 3 * len(sentences)


@pytest.mark.slow
def test_a_batch_finds_what_each_sentence_finds_alone_the_best_score_first(network, trees):
    paraphraser = Paraphraser.from_pretrained(network, parser=trees)
    sentences = [LINES[0], LINES[2], "", LINES[0]]
    found = paraphraser(sentences, n=2, templates=3)
    assert found[0] == found[3] and found[2] == [] and {each.template for each in found[0]} == set(TEMPLATES)
    assert all(len(own) <= 6 and [-e.score for e in own] == sorted(-e.score for e in own) for own in found)
    for template in TEMPLATES:
        assert sum(each.template == template for each in found[0]) <= 2
    assert paraphraser(sentences[:1], n=2, templates=3) == found[:1]
    bound = found[0][1].score
    good = paraphraser(sentences, n=2, templates=3, min_score=bound)[0]
    assert good[0].score >= found[0][0].score and all(each.score >= bound for each in good)
    drawn = [paraphraser(sentences, n=2, templates=[QUESTION], sample=True, seed=seed) for seed in (1, 1)]
    assert drawn[0] == drawn[1]
    own = paraphraser([LINES[0]], templates=[f"(ROOT {QUESTION.replace('(', ' (')})"])
    assert own == paraphraser([LINES[0]], templates=[QUESTION])


@pytest.mark.slow
@pytest.mark.parametrize("beams", [1, 3])
def test_parses_and_paraphrases_are_those_of_generate(network, trees, beams):
    """Both searches by hand, through transformers alone."""
    words, tokens = AutoTokenizer.from_pretrained(network), AutoTokenizer.from_pretrained(network / "parse-generator")
    parses, model = (AutoModelForSeq2SeqLM.from_pretrained(network / name).eval() for name in ("parse-generator", "."))
    settings = {"num_beams": beams, "do_sample": False, "early_stopping": beams > 1}

    def ids(tokenizer, text):
        return tokenizer([text], return_tensors="pt").input_ids

    tree = parses.generate(
        input_ids=ids(tokens, WAYS[0][1]), control_ids=ids(tokens, QUESTION), max_length=150, **settings
    )
    given = {"input_ids": ids(words, LINES[0]), "control_ids": tree[:, 1:]}
    found = model.generate(**given, max_length=40, num_return_sequences=beams, **settings)
    expected = {" ".join(text.split()) for text in words.batch_decode(found, skip_special_tokens=True)}
    paraphraser = Paraphraser.from_pretrained(network, parser=trees)
    own = paraphraser([LINES[0]], n=beams, templates=[QUESTION], beams=beams)[0]
    assert {each.text for each in own} == expected


@pytest.mark.slow
def test_every_line_keeps_its_place(network, trees, tmp_path, caplog):
    wanted = ["(S (NP) (VP) (.))", QUESTION]
    done = paraphrased(network, trees, LINES, tmp_path / "out.parquet", templates=wanted)
    rows = pq.read_table(done.folder).to_pylist()
    assert list(rows[0]) == ["index", "source", "paraphrase", "template", "rank", "score", "note"]
    marked = {row["index"]: row["note"] for row in rows if row["note"]}
    notes = ["empty line", "over 40 pieces", "no tree", "tree over 150 tokens", "not UTF-8"]
    assert marked == dict(zip([1, 3, 4, 5, 6], notes, strict=True)) and "1 no tree" in done.summary()
    assert [row["index"] for row in rows] == [0, 0, 1, 2, 2, 3, 4, 5, 6]
    for index in (0, 2):
        own = [row for row in rows if row["index"] == index]
        assert [row["rank"] for row in own] == [1, 2] and own[0]["score"] >= own[1]["score"]
        assert {row["template"] for row in own} == {"(S(NP)(VP)(.))", QUESTION}
    assert not (tmp_path / "out.parquet.work").exists()
    assert not paraphrased(network, trees, LINES, tmp_path / "out.parquet", templates=wanted).fresh
    paraphrased(network, trees, LINES[:1], tmp_path / "all.tsv", templates=9)
    assert "the model knows 3 templates, fewer than 9; all are taken" in caplog.messages
    with refused("out", kind=OtherSettingsError):
        paraphrased(network, trees, LINES, tmp_path / "out.parquet", templates=2)
    lines = paraphrased(network, trees, LINES, tmp_path / "out.tsv", templates=wanted).folder.read_text().splitlines()
    assert lines[0] == "index\tsource\tparaphrase\ttemplate\trank\tscore\tnote" and len(lines) == len(rows) + 1


@pytest.mark.parametrize(
    ("settings", "option"),
    [
        ({"templates": ["(S(NP)"]}, None),
        ({"templates": ["(S (NP the) (VP))"]}, None),
        ({"templates": ["(SQ(VBZ)(NP)(?))"]}, "templates"),
        ({"templates": []}, "templates"),
        ({"templates": ["0"]}, "templates"),
        ({}, "model"),
        ({"trees": "nowhere.tsv", "templates": 2}, "parser"),
    ],
)
def test_bad_templates_are_refused(network, trees, tmp_path, settings, option):
    given = {"trees": trees, **settings}
    with refused(option):
        paraphrased(network, given.pop("trees"), LINES, tmp_path / "out.tsv", **given)
    assert not list(tmp_path.glob("*.work")) and not list(tmp_path.glob("out.*"))


def test_models_and_calls_without_templates_are_refused(network, trees, model, tmp_path):
    with refused("templates"):
        paraphrased(model, trees, LINES, tmp_path / "out.tsv", templates=2)
    with refused("model"):
        Paraphraser(network)
    paraphraser = Paraphraser.from_pretrained(network, parser=trees)
    for templates in (QUESTION, -1, []):
        with refused("templates"):
            paraphraser([LINES[0]], templates=templates)


def test_an_incomplete_network_is_refused(network, trees, tmp_path):
    broken = shutil.copytree(network, tmp_path / "broken")
    (broken / "templates.json").write_text("{}")
    with refused(path=broken / "templates.json"):
        Paraphraser.from_pretrained(broken, parser=trees)
    (broken / "templates.json").unlink()
    with refused(path=broken / "templates.json"):
        Paraphraser.from_pretrained(broken, parser=trees)
    shutil.rmtree(broken / "parse-generator")
    with refused(path=broken / "parse-generator"):
        Paraphraser.from_pretrained(broken, parser=trees)


def test_a_parser_that_is_not_installed_is_refused(network, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with refused():
        Paraphraser.from_pretrained(network)
