"""evaluate_paraphrases() and evaluate_canonical(): models, files, decodings, what is refused."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import ParaphraseConfig, ParaphraserTraining
from paranmt_hf.cli import main
from paranmt_hf.corpus.reading.pairs import Pairs, PairSelection
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.results import read_results
from paranmt_hf.paraphrase.config import ParaphraseEvaluationData, read_decodings
from paranmt_hf.paraphrase.evaluate import DECODINGS, evaluate_canonical, evaluate_paraphrases, together
from paranmt_hf.paraphrase.figures import read_outputs
from paranmt_hf.paraphrase.noise import add_noise
from paranmt_hf.paraphrase.paraphrase_file import paraphrase_file
from paranmt_hf.paraphrase.paraphraser import Paraphraser
from paranmt_hf.paraphrase.train import train_paraphraser
from paranmt_hf.paraphrase.training_pairs import TrainingPairs, held_out_keys
from tests.paraphrase.paraphraser_toys import LOCAL, SMALL
from tests.refused import refused

SHORT = ParaphraseConfig(max_length=20, seed=3)
WAYS = ["greedy", "beams=3,n=2", "sample,temperature=0.5"]


def figures_of(row):
    """All that does not depend on the time."""
    return {name: value for name, value in row.values.items() if name != "sentences_per_second"}


def measured(models, pairs=(), decodings=("beams=3,n=2",), *, search=SHORT, items=7, **data):
    data = ParaphraseEvaluationData(items=items, **data)
    return evaluate_paraphrases(models, data=pairs, items=data, decodings=decodings, search=search).results


@pytest.fixture(scope="module")
def model(pairs, tmp_path_factory):
    training = ParaphraserTraining(
        epochs=4, learning_rate=0.01, batch_tokens=300, held_out=0.1, warmup=2, evaluations=1, device="cpu", noise=0.3
    )
    return train_paraphraser(pairs, tmp_path_factory.mktemp("model") / "out", config=SMALL, training=training).folder


@pytest.fixture(scope="module")
def record(model, pairs):
    (found,) = measured(model, pairs, WAYS)
    return found


def test_rows_are_the_baselines_and_the_ways(record):
    assert [row.name for row in record.rows] == [*WAYS, "copied input", "first reference"]
    *ways, copied, reference = record.rows
    assert copied["copies"] == 1 and "bleu" not in reference.values
    assert copied["self_bleu"] == pytest.approx(100)
    assert copied.items == 7 and record.settings["references"] >= 7
    assert ["among_bleu" in own.values for own in ways] == [False, True, False]
    settings = [{"beams": 1, "n": 1}, {"beams": 3, "n": 2}, {"sample": True, "temperature": 0.5}]
    assert [row.details["settings"] for row in ways] == settings
    assert record.settings["command"] == (
        "paranmt paraphrase evaluate out --data pairs.parquet --sentences items=7 --search max_length=20,seed=3 "
        "--decodings greedy beams=3,n=2 sample,temperature=0.5"
    )
    variants = record.settings["variants"]
    assert variants["bleu"].startswith("sacrebleu") and variants["meteor"].startswith("nltk")
    assert "sacrebleu" in record.versions and "nltk" in record.versions


@pytest.mark.slow
@pytest.mark.parametrize("way", ["beams=3", "beams=3,order=score", "beams=3,min_score=-1"])
def test_outputs_are_those_of_the_paraphraser(model, pairs, way):
    """A paraphraser that chooses by scores gets a scorer."""
    (found,) = measured(model, pairs, [way])
    paraphraser = Paraphraser(model, SHORT)
    for example in found.examples:
        (three,) = paraphraser([example["source"]], n=3, beams=3, keep_copies=True)
        best = max(three, key=lambda each: each.score) if "order" in way else three[0]
        assert example["outputs"][way] == [best.text]


@pytest.mark.slow
def test_a_seed_decides(record, model, pairs):
    again, other = (measured(model, pairs, WAYS[2:], search=replace(SHORT, seed=seed))[0] for seed in (3, 4))
    assert again.data == record.data != other.data
    first, second = (next(row for row in found.rows if row.name == WAYS[2]) for found in (again, record))
    assert figures_of(first) == figures_of(second)


@pytest.mark.slow
def test_which_sentences(model, pairs):
    (found,) = measured(model, pairs, ["greedy"], items=0, direction="to-translation")
    table = pq.read_table(pairs).select(["reference", "translation"])
    assert next(found.rows).items == len(set(table["reference"].to_pylist()))
    assert found.settings["references"] == len(table.to_pandas().drop_duplicates())
    apart = table.filter(pa.array(held_out_keys(table["reference"], 0.1)))
    (found,) = measured(model, pairs, ["greedy"], items=0, held_out=True)
    assert next(found.rows).items == len(set(apart["translation"].to_pylist())) < 60


@pytest.mark.slow
def test_a_file_is_measured_as_its_model(model, pairs, tmp_path):
    (whole,) = measured(model, pairs, items=0)
    lines, sources = tmp_path / "lines.txt", sorted(set(pq.read_table(pairs)["translation"].to_pylist()))
    lines.write_text("\n".join(sources) + "\n")
    config = ParaphraseConfig(n=2, beams=3, max_length=20, min_score=-1.0)
    for suffix in ("parquet", "jsonl", "tsv"):
        out = tmp_path / f"out.{suffix}"
        paraphrase_file(lines, out, model=model, config=config, engine=LOCAL)
        (found,) = measured(out, pairs, items=0)
        assert [row.name for row in found.rows] == [f"out.{suffix}", "copied input", "first reference"]
        assert figures_of(next(found.rows)) == figures_of(next(whole.rows))
    both = measured([model, out], pairs, items=0)
    starts = [line.split("|")[1].strip() for line in together(both).splitlines() if line.startswith("|")]
    assert starts[2:] == [f"{model.name}: beams=3,n=2", "copied input", "first reference", "out.tsv"]
    (alone,) = measured(tmp_path / "out.tsv")
    assert alone.value("out.tsv", "bleu") is None
    assert alone.value("out.tsv", "self_bleu") == pytest.approx(next(whole.rows)["self_bleu"])
    assert "--decodings" not in alone.settings["command"] and "--decodings" in both[0].settings["command"]
    (tmp_path / "others.tsv").write_text("one thing\tanother thing\n")
    with pytest.raises(InputError, match="out.tsv holds none of the sentences of others.tsv"):
        measured(tmp_path / "out.tsv", tmp_path / "others.tsv")


def test_templates_of_a_file(tmp_path, monkeypatch):
    from paranmt_hf.corpus.parsing import parsers
    from paranmt_hf.corpus.parsing.trees import read_tree

    class Toy:
        name, at_once = "toy", None

        def trees(self, texts):
            return [read_tree("(ROOT (S (NP (NN a)) (VP (VB b))))") if text == "a b" else None for text in texts]

    monkeypatch.setattr(parsers, "LinkGrammar", lambda **_: Toy())
    path = tmp_path / "out.tsv"
    rows = ["b a\ta b\t1\t(S (NP) (VP))", "NA\ta c\t1\t(S (NP) (VP))", "null\td\t1\t", "e\t\t0\t"]
    path.write_text("\n".join(["source\tparaphrase\trank\ttemplate", *rows]) + "\n")
    (found,) = evaluate_paraphrases(path, template_parser="link-grammar").results
    own = next(found.rows)
    assert (own["template_match"], own["without"], own.items) == (0.5, 1, 4)


def test_ways_in_words_and_in_yaml(tmp_path):
    base = ParaphraseConfig(n=3, max_length=30)
    found = read_decodings(DECODINGS, base)
    assert [each.config.beams for each in found[:4]] == [1, 4, 8, 8]
    assert [each.config.n for each in found] == [1, 3, 3, 3, 3, 3, 3]
    assert all(each.config.max_length == 30 for each in found)
    path = tmp_path / "ways.yaml"
    path.write_text("wide: {beams: 20}\nhot: {sample: true, temperature: 1.5, n: 5}\n")
    wide, hot = read_decodings([str(path)], base)
    assert (wide.name, wide.config.beams, wide.config.n) == ("wide", 20, 3)
    assert (hot.config.sample, hot.config.temperature, hot.config.n) == (True, 1.5, 5)


@pytest.mark.parametrize(
    "ways",
    [
        ["beam=4"],
        ["beams"],
        ["beams=x"],
        ["greedy", "greedy"],
        ["sample,groups=2"],
        ["device=cpu"],
        [],
    ],
)
def test_ways_that_are_none(ways):
    with refused("decodings"):
        read_decodings(ways, ParaphraseConfig())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("wide: 20\n", r"ways.yaml: expected names of decodings"),
        ("wide: {beams: 0}\n", r"wide: beams must be from 1 to 200, was 0"),
    ],
)
def test_a_yaml_file_that_is_none(tmp_path, content, message):
    path = tmp_path / "ways.yaml"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        read_decodings([str(path)], ParaphraseConfig())


def test_canonical_sentences_are_the_noisy_references(model, pairs):
    items = ParaphraseEvaluationData(items=9)
    (found,) = evaluate_canonical(model, data=pairs, items=items, noise=0.4, search=SHORT).results
    noise, count = found.settings["noise"], next(found.rows).items
    assert count + noise["unchanged"] == 9
    for example in found.examples:
        assert example["noisy"] == add_noise(example["clean"], 0.4, 3)[0] != example["clean"]
    assert found.value("noisy input", "equal") == 0 and found.value("noisy input", "character_edits") > 0
    assert sum(noise["changes"].values()) >= count
    assert "--noise 0.4" in found.settings["command"]


def test_noisy_and_clean_sentences_of_a_file(model, tmp_path):
    path = tmp_path / "noisy.tsv"
    path.write_text(
        "teh man sees a dog .\tthe man sees a dog .\nthe bird bird follows a cat .\tthe bird follows a cat .\n"
    )
    (found,) = evaluate_canonical(model, data=path, search=SHORT).results
    assert (next(found.rows).items, found.settings["noise"]) == (2, None)
    assert found.value("noisy input", "character_edits") == pytest.approx(100 * (2 + 5) / (20 + 25), rel=0.1)


def test_noise_of_training_leaves_held_out_pairs_alone(pairs):
    table = pq.read_table(pairs)
    training = ParaphraserTraining(noise=0.5, held_out=0.2, seed=1)
    own = TrainingPairs(Pairs([pairs], PairSelection()), "pairs", training)
    (made,) = [table["source"].to_pylist() for table in own.tables("read")]
    apart = held_out_keys(table["reference"], 0.2)
    changed = np.array([one != other for one, other in zip(made, table["translation"].to_pylist(), strict=True)])
    assert not changed[apart].any()
    assert 0.4 < changed[~apart].mean() < 0.6
    row = int(np.flatnonzero(changed)[0])
    assert made[row] == add_noise(table["reference"][row].as_py(), 0.15, f"1 {row}")[0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["evaluate", "MODEL"], "data is missing"),
        (["evaluate", "OUT", "--template-parser", "link-grammar"], "needs files with a column template"),
        (["evaluate", "MODEL", "--data", "none.tsv"], "none.tsv"),
        (["evaluate", "MODEL", "--data", "TSV", "--held-out"], "holds sentences and references, not pairs"),
        (["evaluate", "no.tsv"], "no.tsv"),
        (["evaluate", "TSV"], "has no column source, paraphrase, rank"),
        (["canonical", "MODEL", "--data", "PAIRS", "--noise", "2"], "--noise must be above 0 and at most 1, was 2.0"),
        (["canonical", "no-model", "--data", "PAIRS"], "no-model"),
    ],
)
def test_refused(words, message, model, pairs, tmp_path, capsys):
    path = tmp_path / "two.tsv"
    path.write_text("a b\tc d\n")
    (tmp_path / "out.tsv").write_text("source\tparaphrase\trank\na b\tc d\t1\n")
    names = {"MODEL": str(model), "PAIRS": str(pairs), "TSV": str(path), "OUT": str(tmp_path / "out.tsv")}
    assert main(["paraphrase", *(names.get(word, word) for word in words)]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_the_commands_print_tables_and_write_records(model, pairs, tmp_path, capsys):
    out = tmp_path / "figures.json"
    options = "--sentences items=5 --search max_length=20 --json"
    words = [str(model), "--data", str(pairs), *options.split(), str(out)]
    assert main(["paraphrase", "evaluate", *words, "--decodings", "greedy"]) == 0
    shown = capsys.readouterr().out
    assert "copied input" in shown and "greedy" in shown and "Self-BLEU" in shown and "Template" not in shown
    (found,) = read_results(out)
    assert found.kind == "paraphrases" and next(found.rows).items == 5
    assert found.settings["command"].endswith("--decodings greedy")
    out.unlink()
    assert main(["paraphrase", "canonical", *words, "--noise", "0.1"]) == 0
    shown = capsys.readouterr().out
    (found,) = read_results(out)
    unchanged = found.settings["noise"]["unchanged"]
    assert found.kind == "canonical" and unchanged + next(found.rows).items == 5 and unchanged
    assert "noisy input" in shown and f"{unchanged} more, which noise did not change, are left out" in shown


LINE = b'{"source":"a dog","rank":1,"paraphrase":"dogs"}\n'


def test_the_best_of_a_file_comes_first(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(LINE.replace(b"1", b"2").replace(b"dogs", b"hounds") + LINE)
    assert read_outputs(tmp_path / "a.jsonl")["a dog"].texts == ["dogs", "hounds"]


def test_a_file_of_any_format_with_these_columns(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("source,rank,paraphrase\na dog,1,dogs\na cat,0,\n")
    found = read_outputs(path)
    assert {source: output.texts for source, output in found.items()} == {"a dog": ["dogs"], "a cat": []}


@pytest.mark.parametrize(
    "content",
    [
        LINE.replace(b"dogs", b"d\xff"),
        LINE.replace(b"a dog", b"\xff"),
        LINE.replace(b"rank", b"r\xff"),
        LINE.replace(b"1", b'"first"'),
        LINE.replace(b"1", b"1.5"),
        LINE.replace(b"1", b"1e999"),
        LINE.replace(b'"dogs"', b"[3]"),
    ],
)
def test_values_that_are_no_paraphrases(tmp_path, content):
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError) as error:
        read_outputs(path)
    assert error.value.path == path


def test_a_column_that_is_there_twice(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("source\tparaphrase\tparaphrase\trank\na\tb\tc\t1\n")
    with pytest.raises(InputError) as error:
        read_outputs(path)
    assert error.value.path == path
