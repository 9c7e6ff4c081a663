"""What is checked before anything is sent; no Hub is needed."""

import fnmatch
import json
import shutil

import pytest

from paranmt_hf import InputError, TrainConfig, average_encoders, evaluate, publish, train
from paranmt_hf.cli import main
from paranmt_hf.encoders.building import EncoderConfig
from paranmt_hf.hub.publish import kind_of
from paranmt_hf.hub.repository import ASSETS, weights_checksum
from paranmt_hf.training.card import encoder_card
from tests.hub.releases import header
from tests.refused import refused

DATASET, MODEL = "org/corpus", "org/word"


@pytest.fixture
def results(model, tmp_path):
    path = tmp_path / "results.json"
    similarity = str(ASSETS / "sample" / "similarity.tsv")
    assert main(["evaluate", "sts", str(model), "--data", similarity, "--speed", "--json", str(path)]) == 0
    return path


def test_release_is_laid_out(release):
    (release / "notes.txt").write_text("mine")
    plan = publish(release, DATASET, dry_run=True)
    record = json.loads((release / "build.json").read_text())
    parquet = [path for config in record["configs"].values() for path in config["files"]]
    assert set(plan.repository.files) == {*parquet, "build.json", "README.md", "histograms.png"}
    assert plan.left_here == ["notes.txt"] and plan.missing == []
    info = {entry["config_name"]: entry for entry in header(plan.card)["dataset_info"]}
    for name, config in record["configs"].items():
        assert "splits" not in info[name], "datasets would compare them with what `filters=` leaves"
        assert info[name]["dataset_size"] == config["bytes"]
        assert f"| `{name}` | {config['rows']:,} |" in plan.card
        assert info[name]["download_size"] == sum((release / path).stat().st_size for path in config["files"])
    assert header(plan.card)["license"] == "cc-by-4.0"
    assert header(plan.card)["source_datasets"] == ["extended|other"]
    # A version with a name has the files of one without.
    assert publish(release, DATASET, tag="v3", dry_run=True).card == plan.card
    assert "&id" not in plan.card and "$" not in plan.card
    assert f"Schema version {record['schema_version']}, written by paranmt-hf {record['paranmt_hf']}." in plan.card
    assert plan.repository.sizes["build.json"] == (release / "build.json").stat().st_size
    record["settings"]["pairs"] |= {"kind": "hub", "dataset": "org/bitext"}
    (release / "build.json").write_text(json.dumps(record))
    assert header(publish(release, DATASET, dry_run=True).card)["source_datasets"] == ["extended|org/bitext"]


def test_header_of_the_card_agrees_with_the_files(release):
    """What the Hub reads of the card: patterns that match the files of each config and no others."""
    record = json.loads((release / "build.json").read_text())
    plan = publish(release, DATASET, dry_run=True)
    top = header(plan.card)
    assert [info["config_name"] for info in top["dataset_info"]] == list(record["configs"])
    assert [config["config_name"] for config in top["configs"]] == list(record["configs"])
    for config in top["configs"]:
        (entry,) = config["data_files"]
        matching = {path for path in plan.repository.files if fnmatch.fnmatchcase(path, entry["path"])}
        assert entry["split"] == "train" and matching == set(record["configs"][config["config_name"]]["files"])


def test_model_folder_keeps_what_is_no_part_of_the_model(model):
    for name in ("client_secret.json", "passwords.txt", "logs/notes.txt", "checkpoint-5/model.safetensors"):
        (model / name).parent.mkdir(exist_ok=True)
        (model / name).write_text("{}")
    plan = publish(model, MODEL, license="mit", dry_run=True)
    assert plan.left_here == [
        "checkpoint-5/model.safetensors",
        "client_secret.json",
        "logs/notes.txt",
        "passwords.txt",
    ]
    # Of a repository that held another kind of model before, nothing is left over; other files are.
    assert plan.repository.owns("1_LSTM/model.safetensors") and plan.repository.owns("wordembedding_config.json")
    assert not plan.repository.owns("onnx/model.onnx") and not plan.repository.owns("README.md")


@pytest.mark.parametrize("settings", [{"model": "blstm", "pooling": "max"}, {"model": "word,trigram,lstm"}])
def test_every_kind_of_encoder_goes_whole(made, tmp_path, settings):
    train(made, tmp_path / "model", encoder=EncoderConfig(dimension=3, **settings), config=TrainConfig(epochs=1))
    plan = publish(tmp_path / "model", MODEL, license="mit", dry_run=True)
    assert plan.left_here == [] and "paranmt_recurrent.py" in plan.repository.files


def test_model_is_laid_out(model, results):
    plan = publish(model, MODEL, license="mit", about={"datasets": ["org/corpus"]}, results=results, dry_run=True)
    assert set(plan.repository.files) >= {"model.safetensors", "modules.json", "tokenizer.json", "training.json"}
    assert "README.md" in plan.repository.files and plan.left_here == []
    top = header(plan.card)
    assert top["license"] == "mit" and top["datasets"] == ["org/corpus"] and "widget" not in top
    assert top["library_name"] == "sentence-transformers" and top["pipeline_tag"] == "sentence-similarity"
    recorded = json.loads(results.read_text())[0]
    (entry,) = top["model-index"][0]["results"]
    assert entry["metrics"][0]["value"] == round(100 * recorded["tables"]["Set"][0]["values"]["pearson"], 2)
    assert "paranmt train --data corpus --dimension 4 --epochs 1 --out FOLDER" in plan.card
    assert "60 pairs of sentences of corpus." in plan.card and "$" not in plan.card
    assert recorded["weights"] == weights_checksum(model) and recorded["speed"]["passes"] == 5
    assert str(model.parent) not in plan.card


def test_values_of_the_card(model, release):
    results = evaluate(model, data=ASSETS / "sample" / "similarity.tsv", stored=["int8"])
    about = {"notes": "Made for **tests**."}
    plan = publish(model, MODEL, license="mit", about=about, results=results, dry_run=True)
    values = json.loads(json.dumps(plan.values))
    assert encoder_card(values) == plan.card and "Made for **tests**." in plan.card
    assert values["precisions"]["int8"]["bytes"] == results[1].settings["bytes"]
    assert f"| int8 | {results[1].settings['bytes'] / 1e6:.1f} |" in plan.card
    assert publish(release, DATASET, dry_run=True).values is None


def test_the_card_in_the_folder_of_a_model(model, golden):
    """Training writes one; publishing writes it again with what people say, and shows the picture of training."""
    card = (model / "README.md").read_text()
    golden("encoder.md", card)
    assert "s of training" not in card, "equal runs have equal cards"
    plan = publish(model, MODEL, license="mit", dry_run=True)
    golden("published-encoder.md", plan.card)
    assert plan.missing[0].startswith("results: paranmt evaluate sts") and "model-index" not in header(plan.card)
    assert plan.left_here == [] and header(plan.card)["license"] == "mit"
    assert ("training.png" in plan.repository.files) == ("](training.png)" in plan.card) == ("](training.png)" in card)
    assert "training.png" in plan.repository.files, "needs matplotlib, as the other tests of pictures"
    (model / "README.md").write_text(card + "mine")
    assert publish(model, MODEL, license="mit", dry_run=True).left_here == [
        "README.md (the card is rendered from records; `notes` of `about` adds to it)"
    ]


def test_the_mean_of_models_has_a_card(model, tmp_path):
    average_encoders([model, model], tmp_path / "mean")
    card = (tmp_path / "mean" / "README.md").read_text()
    assert "# mean\n" in card and "The weights are the mean of those of the models `word`, `word`" in card
    assert "training.png" not in card
    assert publish(tmp_path / "mean", MODEL, license="mit", dry_run=True).left_here == []


def test_results_from_python(model, results):
    records = evaluate([model, "small"], data=ASSETS / "sample" / "similarity.tsv").results
    plan = publish(model, MODEL, license="mit", results=records, dry_run=True)
    written = publish(model, MODEL, license="mit", results=results, dry_run=True)
    assert header(plan.card)["model-index"] == header(written.card)["model-index"]
    with refused("results"):
        publish(model, MODEL, license="mit", results=records[1:], dry_run=True)


def test_publishing_is_planning_and_sending(release, model, fake_hub):
    where = {"private": True, "revision": "trial", "tag": "t"}
    shown = publish(release, DATASET, **where).summary()
    assert shown.endswith("load it: load_dataset('org/corpus', revision='t')")
    assert "6 files changed, version t" in shown
    assert publish(model, MODEL, license="mit", **where).sent.tag == "t"
    plan = publish(model, MODEL, license="mit", dry_run=True)
    assert set(fake_hub.repositories[MODEL].files("t")) == set(plan.repository.files)
    assert fake_hub.repositories[DATASET].kind == "dataset" and fake_hub.repositories[MODEL].private
    assert "unchanged" in publish(release, DATASET, **where).summary()


def test_one_place_tells_what_a_folder_is(release, model, tmp_path):
    assert [kind_of(folder).title for folder in (release, model)] == ["a corpus", "an encoder"]
    assert kind_of(tmp_path) is None
    with refused("folder", path=tmp_path):
        publish(tmp_path, MODEL)


def test_a_model_that_went_on_from_another_needs_its_commands(model):
    path = model / "training.json"
    record = json.loads(path.read_text())
    record["inputs"] = {"init_from": "taught"}
    path.write_text(json.dumps(record))
    plan = publish(model, MODEL, license="mit", dry_run=True)
    assert "the commands of the models it came from: 'commands' in --about FILE" in plan.missing
    assert "It continued from the encoder `taught`." in plan.card
    plan = publish(model, MODEL, license="mit", about={"commands": ["paranmt train"]}, dry_run=True)
    assert not [sentence for sentence in plan.missing if "commands" in sentence]


def test_code_beside_the_weights_is_ours_or_refused(trained, tmp_path):
    folder = shutil.copytree(trained / "word,trigram", tmp_path / "both")
    plan = publish(folder, MODEL, license="mit", dry_run=True)
    assert "paranmt_combination.py" in plan.repository.files and "trust_remote_code=True" in plan.card
    # That of an older or mended version goes as this version has it, which loaded the model.
    path = folder / "paranmt_combination.py"
    code = path.read_text()
    path.write_text(code + "\nimport os\n")
    assert publish(folder, MODEL, license="mit", dry_run=True).repository.files[path.name] == code.encode()
    path.unlink()
    assert publish(folder, MODEL, license="mit", dry_run=True).repository.files[path.name] == code.encode()
    for name in ("other.py", "paranmt_other.py", "0_0_WordEmbedding/paranmt_averages.py"):
        (folder / name).write_text("x = 1")
        with refused():
            publish(folder, MODEL, license="mit", dry_run=True)
        (folder / name).unlink()


def test_code_beside_a_stock_model_stays_here(model):
    (model / "paranmt_averages.py").write_text("raise SystemExit")
    plan = publish(model, MODEL, license="mit", dry_run=True)
    assert plan.left_here == ["paranmt_averages.py"]
    assert not [path for path in plan.repository.files if path.endswith(".py")]
    # A model that needed code may have been there before.
    assert plan.repository.owns("paranmt_averages.py")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "training.json").unlink(), "holds no record of this package"),
        (lambda folder: (folder / "training.json").write_text("[]"), "training.json is damaged"),
        (lambda folder: (folder / "pytorch_model.bin").write_bytes(b"x"), "pytorch_model.bin can hold a pickle"),
        (lambda folder: (folder / "modules.json").write_text("{"), "is not a sentence encoder"),
    ],
)
def test_model_that_is_refused(model, spoil, message):
    spoil(model)
    with pytest.raises(InputError) as caught:
        publish(model, MODEL, license="mit", dry_run=True)
    assert message in str(caught.value)


def test_dimension_must_be_the_recorded_one(model):
    training = json.loads((model / "training.json").read_text()) | {"dimension": 5}
    (model / "training.json").write_text(json.dumps(training))
    with refused(path=model):
        publish(model, MODEL, license="mit", dry_run=True)


def test_results_of_other_weights_are_refused(model, results, tmp_path):
    entries = json.loads(results.read_text())
    entries[0]["weights"] = "sha256:0"
    results.write_text(json.dumps(entries))
    with refused("results"):
        publish(model, MODEL, license="mit", results=results, dry_run=True)
    for text in ("", "{}", "[1]"):
        results.write_text(text)
        with refused(path=results):
            publish(model, MODEL, license="mit", results=results, dry_run=True)
    with refused(path=tmp_path / "none.json"):
        publish(model, MODEL, license="mit", results=tmp_path / "none.json", dry_run=True)


@pytest.mark.parametrize("text", ["- a list", "summary: [a]", "unknown: 1"])
def test_words_that_are_refused(text, release, tmp_path):
    (tmp_path / "about.yaml").write_text(text)
    with pytest.raises(InputError) as caught:
        publish(release, DATASET, about=tmp_path / "about.yaml", dry_run=True)
    assert "about.yaml" in str(caught.value)


def test_dry_run_sends_nothing(release, model, results, capsys, login):
    login(None)
    assert main(["publish", str(release), "org/corpus", "--private", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "dataset org/corpus, private: 6 files" in said and "data/train-00000-of-00001.parquet" in said
    assert "pretty_name: corpus" in said and said.endswith("dry run: nothing was sent\n")
    assert said.index("pretty_name") < said.index("6 files"), "what is missing must not scroll away"
    about = model.parent / "about.yaml"
    about.write_text("summary: A small one.\ndata: Random words.\nlicense_text: Ours.\n")
    command = ["publish", str(model), "org/word", "--results", str(results), "--about", str(about)]
    command += ["--license", "cc-by-4.0"]
    assert main([*command, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "missing" not in said and "A small one." in said and "Random words." in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["RELEASE", "corpus"], "'corpus' is not a name on the Hub: expected ORGANISATION/NAME"),
        (["RELEASE", "org/corpus", "--tag", "a b"], "--tag 'a b' is not a valid git name"),
        (["RELEASE", "org/corpus", "--license", "cc-by-4"], "did you mean cc-by-"),
        (["RELEASE", "org/corpus", "--results", "x.json"], "shows no --results"),
        (["MODEL", "org/word"], "a license is needed"),
        (["NOWHERE", "org/corpus"], "expected the folder of a corpus or a model"),
    ],
)
def test_arguments_that_are_refused(arguments, message, release, model, tmp_path, capsys):
    places = {"RELEASE": str(release), "MODEL": str(model), "NOWHERE": str(tmp_path / "nowhere")}
    assert main(["publish", *(places.get(word, word) for word in arguments)]) == 1
    said = capsys.readouterr().err
    assert said.startswith("paranmt: ") and message in said and len(said.splitlines()) == 1


def test_notes_and_an_edited_card(release, model, tmp_path):
    (tmp_path / "about.yaml").write_text("notes: |\n  Made for **tests**.\n")
    plan = publish(release, DATASET, about=tmp_path / "about.yaml", dry_run=True)
    assert "\n\n## Notes\n\nMade for **tests**.\n\n## Citation" in plan.card and plan.left_here == []
    plan = publish(model, MODEL, license="mit", about={"notes": "Made for **tests**."}, dry_run=True)
    assert "\n\n## Notes\n\nMade for **tests**.\n\n## Citation" in plan.card
    (release / "README.md").write_text((release / "README.md").read_text() + "\nMine.\n")
    assert publish(release, DATASET, dry_run=True).left_here == [
        "README.md (the card is rendered from records; `notes` of `about` adds to it)"
    ]
