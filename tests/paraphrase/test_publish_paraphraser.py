"""What is checked of a paraphraser before it is sent; no Hub is needed."""

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from safetensors.torch import load_file, save_file

from paranmt_hf import About, PairSelection, ParaphraserConfig, ParaphraserTraining, publish
from paranmt_hf.cli import main
from paranmt_hf.errors import InputError
from paranmt_hf.paraphrase.train import train_paraphraser

NAME = "org/paraphraser"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    sides = [[f"the {word} sees a {other} ." for word in "abcdef" for other in "uvwxyz"] for _ in range(2)]
    lengths = pa.array([6] * 36, pa.int32())
    columns = {
        "reference": sides[0],
        "translation": sides[1],
        "reference_length": lengths,
        "translation_length": lengths,
    }
    pq.write_table(pa.table(columns), folder / "pairs.parquet")
    (folder / "sets.txt").write_text("The a sees a u!\n")
    done = train_paraphraser(
        folder / "pairs.parquet",
        folder / "paraphraser",
        config=ParaphraserConfig(pieces=300, embedding=8, hidden=8),
        training=ParaphraserTraining(max_steps=1, held_out=0.2, device="cpu"),
        selection=PairSelection(min_length=3, max_length=9),
        exclude=folder / "sets.txt",
    )
    assert done.record.pairs + done.record.held_out == 35
    return done.folder


@pytest.fixture
def model(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / "paraphraser")


def test_it_is_laid_out(model):
    (model / "secrets.txt").write_text("mine")
    plan = publish(model, NAME, license="mit", about=About(datasets=["org/pairs"]), dry_run=True)
    names = {path.name for path in model.iterdir()} - {"secrets.txt"}
    assert set(plan.parcel.files) == names and plan.left_here == ["secrets.txt"]
    head = yaml.safe_load(plan.card.split("---\n")[1])
    assert head["license"] == "mit" and head["datasets"] == ["org/pairs"] and head["library_name"] == "transformers"
    assert 'load_paraphraser("org/paraphraser")' in plan.card and "published under mit" not in plan.card
    line = next(line for line in plan.card.split("\n") if line.startswith("paranmt paraphrase train"))
    assert line == (
        "paranmt paraphrase train pairs.parquet --pieces 300 --embedding 8 --hidden 8 --max-steps 1 "
        "--learning-rate 0.001 --held-out 0.2 --device cpu --min-length 3 --max-length 9 --exclude SETS --out FOLDER"
    )
    assert plan.missing == [
        "your own words on the data: 'data' in --about FILE",
        "your own words on the license text: 'license_text' in --about FILE",
    ]
    assert plan.parcel.owns("modeling_paranmt_lstm.py") and not plan.parcel.owns("mine.txt")


def test_the_code_is_that_of_the_package(model):
    (model / "modeling_paranmt_lstm.py").write_text("import os")
    content = publish(model, NAME, license="mit", dry_run=True).parcel.files["modeling_paranmt_lstm.py"]
    assert isinstance(content, bytes) and b"class ParaNMTLstmForConditionalGeneration" in content


def _edit(path, **values):
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def _break_weights(model):
    weights = load_file(model / "model.safetensors")
    first = next(iter(weights))
    save_file({**weights, first: weights[first] * float("nan")}, model / "model.safetensors", {"format": "pt"})


@pytest.mark.parametrize(
    ("spoil", "match"),
    [
        (
            lambda model: _edit(model / "paraphraser.json", parameters=7),
            "parameters [0-9]+, its paraphraser.json says 7",
        ),
        (lambda model: _edit(model / "paraphraser.json", model_type="bart"), "model_type paranmt-lstm, .* says bart"),
        (lambda model: (model / "other.py").write_text(""), "is code that is not this package's"),
        (lambda model: (model / "pytorch_model.bin").write_bytes(b""), "pickle"),
        (
            lambda model: _edit(model / "config.json", auto_map={"AutoConfig": "you/x--y.Z"}),
            "names the code 'you/x--y.Z'",
        ),
        (
            lambda model: _edit(model / "generation_config.json", auto_map=["you/x--y.Z"]),
            r"generation_config.json is damaged: expected an object under 'auto_map', found \['you/x--y.Z'\]",
        ),
        (_break_weights, "holds weights that are not finite"),
        (lambda model: (model / "model.safetensors").unlink(), "model.safetensors"),
    ],
)
def test_what_is_wrong_is_told(model, spoil, match):
    spoil(model)
    with pytest.raises(InputError, match=match):
        publish(model, NAME, license="mit", dry_run=True)


EDITED = [
    ("settings.training", {}, "it has no 'settings.training.learning_rate'"),
    ("settings.training.direction", "sideways", "one of to-reference, to-translation, both under '[a-z.]*', found 's"),
    ("settings.training.learning_rate", None, "it has no 'settings.training.learning_rate'"),
    ("settings.paraphraser", 3, "expected an object under 'settings.paraphraser', found 3"),
    ("settings.data.sources", None, "expected a list under 'settings.data.sources', found None"),
    ("settings.data.ranges", 3, "expected an object under 'settings.data.ranges', found 3"),
    ("inputs", 3, "expected an object under 'inputs', found 3"),
]


def edit_record(folder, key, value):
    """Write another value at a place such as `settings.data` of the record of a model."""
    path = folder / "paraphraser.json"
    inner = values = json.loads(path.read_text())
    *parents, last = key.split(".")
    for name in parents:
        inner = inner[name]
    inner[last] = value
    path.write_text(json.dumps(values))


@pytest.mark.parametrize(("key", "value", "match"), EDITED)
def test_an_edited_record_is_damaged(model, key, value, match):
    edit_record(model, key, value)
    with pytest.raises(InputError, match=f"paraphraser.json is damaged: .*{match}"):
        publish(model, NAME, license="mit", dry_run=True)


def test_the_command(model, capsys, tmp_path):
    (tmp_path / "about.yaml").write_text("notes: For *news*.")
    words = ["publish", str(model), NAME, "--dry-run", "--license", "mit", "--about", str(tmp_path / "about.yaml")]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert "## Notes\n\nFor *news*.\n\n## Citation" in printed and "dry run: nothing was sent" in printed
    assert main([*words, "--results", "r.json"]) == 1
    assert "results are shown for encoders" in capsys.readouterr().err
