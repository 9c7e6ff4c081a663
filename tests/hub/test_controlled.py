"""A syntactically controlled network goes to the Hub with both its models, and loads without this package too."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.slow

TREES = {
    "the man sees a dog .": "(ROOT (S (NP the man) (VP sees (NP a dog)) (. .)))",
    "a dog , the man sees .": "(ROOT (S (NP a dog) (, ,) (NP the man) (VP sees) (. .)))",
}
TEMPLATE = "(S(NP)(VP)(.))"

# Both searches by hand: a parse out of the sentence's tree and a template, then the sentence in that form.
LOAD = """
import sys
name, tree, template, sentence, way = sys.argv[1:]
if way == "package":
    from paranmt_hf.paraphrase import models  # noqa: F401 - registers the models
    options = {}
else:
    options = {"trust_remote_code": True}
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

def read(**where):
    both = AutoModelForSeq2SeqLM, AutoTokenizer
    model, tokenizer = (each.from_pretrained(name, **where, **options) for each in both)
    return model.eval(), lambda text: tokenizer([text], return_tensors="pt").input_ids

parses, tree_ids = read(subfolder="parse-generator")
words, ids = read()
search = {"num_beams": 1, "do_sample": False}
parse = parses.generate(input_ids=tree_ids(tree), control_ids=tree_ids(template), max_length=20, **search)
found = words.generate(input_ids=ids(sentence), control_ids=parse[:, 1:], max_length=9, **search)
print("found", found.tolist(), "paranmt_hf" in sys.modules)
"""


def test_publish_and_load(hub, tmp_path):
    path, folder, name = tmp_path / "pairs.parquet", tmp_path / "model", hub.name("controlled")
    first, second = list(TREES)
    pq.write_table(pa.table({"reference": [first] * 9, "translation": [second] * 9}), path)
    trees = tmp_path / "trees.tsv"
    trees.write_text("".join(f"{sentence}\t{tree}\n" for sentence, tree in TREES.items()))

    def run(*words):
        done = hub.paranmt(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("parse", path, "--parser", trees, "--out", tmp_path / "parsed")
    shape = ["--architecture", "pieces=300,embedding=8,hidden=8,tree_hidden=8"]
    once = ["--max-steps", "1", "--held-out", "0", "--device", "cpu"]
    run("paraphrase", "train", tmp_path / "parsed", "--model", "controlled", "--out", folder, *shape, *once)
    assert f"load it: paranmt_hf.Paraphraser.from_pretrained({name!r}, revision='v1')" in run(
        "publish", folder, name, "--license", "mit"
    )
    again = run("publish", folder, name, "--license", "mit")
    assert "unchanged, everything was there already" in again

    text = tmp_path / "text.txt"
    text.write_text(f"{first}\n{second}\n")
    made = []
    for model in (folder, name):
        out = tmp_path / f"{len(made)}.tsv"
        options = "--decoding max_length=9,keep_copies=true --min-score -1 --device cpu --engine workers=1 --out"
        words = ["--model", model, "--templates", TEMPLATE, "--parser", trees, *options.split(), out]
        run("paraphrase", "text", text, *words)
        made.append(out.read_text())
    assert made[0] == made[1] and made[0].count(TEMPLATE) == 2

    hub.loads_alike(LOAD, name, "(S(NP)(,)(NP)(VP)(.))", TEMPLATE, second)
