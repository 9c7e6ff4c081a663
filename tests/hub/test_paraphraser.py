"""A paraphraser goes to the Hub by `push_to_hub` or `paranmt publish`; it loads with this package and without it."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.slow

PUSH = """
import sys
import torch
from paranmt_hf.paraphrase import models  # noqa: F401 - registers the models
from paranmt_hf.paraphrase.modeling_paranmt_lstm import ParaNMTLstmConfig, ParaNMTLstmForConditionalGeneration
from paranmt_hf.paraphrase.models import train_tokenizer

torch.manual_seed(0)
tokenizer = train_tokenizer([["a man is playing a guitar ."] * 3], 300)
config = ParaNMTLstmConfig(vocab_size=len(tokenizer), embedding_size=8, hidden_size=8)
ParaNMTLstmForConditionalGeneration(config).push_to_hub(sys.argv[1])
tokenizer.push_to_hub(sys.argv[1])
"""

LOAD = """
import sys
if sys.argv[2] == "package":
    from paranmt_hf import Paraphraser
    assert Paraphraser.from_pretrained(sys.argv[1], max_length=9)(["a man"], n=2)
    options = {}
else:
    options = {"trust_remote_code": True}
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

model = AutoModelForSeq2SeqLM.from_pretrained(sys.argv[1], **options)
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1], **options)
found = model.generate(**tokenizer(["a man is"], return_tensors="pt"), max_new_tokens=5, num_beams=2)
print("found", found.tolist(), "paranmt_hf" in sys.modules)
"""


def test_push_and_load(hub):
    name = hub.name("paraphraser")
    pushed = hub.python(PUSH, name)
    assert pushed.returncode == 0, pushed.stderr
    hub.loads_alike(LOAD, name)


def test_publish_and_load(hub, tmp_path):
    path, folder, name = tmp_path / "pairs.parquet", tmp_path / "model", hub.name("paraphraser")
    sides = [[f"the {word} is {other} ." for word in "abcdef" for other in "uvwxyz"] for _ in range(2)]
    pq.write_table(pa.table({"reference": sides[0], "translation": sides[1]}), path)
    shape = ["--architecture", "pieces=300,embedding=8,hidden=8", "--max-steps", "1", "--device", "cpu"]
    trained = hub.paranmt("paraphrase", "train", path, "--out", folder, *shape)
    assert trained.returncode == 0, trained.stderr
    published = hub.paranmt("publish", folder, name, "--license", "mit")
    assert published.returncode == 0, published.stderr
    assert f"load it: paranmt_hf.Paraphraser.from_pretrained({name!r}, revision='v1')" in published.stdout
    again = hub.paranmt("publish", folder, name, "--license", "mit")
    assert "unchanged, everything was there already" in again.stdout, again.stderr
    hub.loads_alike(LOAD, name)
