"""What a training.json must hold."""

from dataclasses import replace

from paranmt_hf import EncoderConfig, TrainConfig
from paranmt_hf.training.card import trained_values
from paranmt_hf.training.record import AveragedModel, History, TrainingRecord, TrainingSettings
from tests.refused import refused

TRAINING = TrainingRecord(
    settings=TrainingSettings(
        encoder=EncoderConfig(model="word-trigram", dimension=300, vectors="sha256:abc", words=50_000),
        training=TrainConfig(epochs=1, learning_rate=0.0003, decay=True, seed=2, teacher="x"),
        data={
            "sources": [
                ["captions.parquet 19 bytes", "every.parquet 7 bytes"],
                {"dataset": "org/c", "revision": "12"},
            ],
            "subset": "filtered",
            "ranges": {"para_score": [0.4, None], "reference_length": [None, 30.0]},
            "max_pairs": 1000,
            "unwanted_sentences": 20,
        },
        development="STS17-track5",
    ),
    inputs={"vectors": "glove.txt"},
    pairs=1234,
    history=History([(1, 0.5), (2, 0.25)], [(2, 0.75)], 0.75, 2, 0, 120, 0.5, 0.25),
    development=0.8,
    dimension=600,
    parameters=30_000_000,
    versions={},
    machine="x86_64",
    paranmt_hf="0.1.0",
)


def test_the_file_comes_back(tmp_path):
    for record in (TRAINING, replace(TRAINING, mean_of=[AveragedModel("a", "sha256:1")])):
        record.write(tmp_path)
        assert TrainingRecord.read(tmp_path) == record


def test_a_card_gets_no_course_of_the_loss():
    assert TRAINING.for_card() == {
        **TRAINING.to_json(),
        "history": {"pairs": 120, "seconds": 0.5, "best_step": 2},
    }


def test_settings_of_another_version_are_refused():
    values = TRAINING.to_json()
    values["settings"]["encoder"]["minimum"] = 2
    with refused():
        TrainingRecord.from_json(values, "f")


def test_no_file(tmp_path):
    with refused(path=tmp_path):
        TrainingRecord.read(tmp_path)


def values_of(folder, training=TRAINING, **settings):
    """The values of the card, of a record with other settings."""
    (folder / "modules.json").write_text("[]")
    return trained_values(replace(training, settings=replace(training.settings, **settings)), folder)


def command_of(folder, *arguments, **settings):
    (command,) = values_of(folder, *arguments, **settings)["commands"]
    return command


def test_command_by_hand(tmp_path):
    assert command_of(tmp_path) == (
        "paranmt train --data captions.parquet every.parquet org/c@12 --model word-trigram --vectors glove.txt "
        "--architecture words=50000 --learning-rate 0.0003 --epochs 1 --teacher x --seed 2 --optimization decay=true "
        "--selection min_score=0.4,max_length=30,subset=filtered,max_pairs=1000 --development STS --exclude STS "
        "--out FOLDER"
    )


def test_languages_of_releases_here_and_on_the_hub(tmp_path):
    german, english = {"release": "corpus", "language": "de", "files": {}}, {"dataset": "org/c", "revision": "12"}
    files, other = ["captions.parquet 19 bytes"], {**english, "kind": "hub"}
    for sources, languages in (
        ([german, english], ["de", "en"]),
        ([english, files, german], ["de", "en"]),
        # Of files and of datasets that are no releases nothing is known.
        ([german, files, other], ["de"]),
        ([english, files, other], None),
        ([{**english, "language": "fr"}, german], ["de", "fr"]),
    ):
        assert values_of(tmp_path, data={**TRAINING.settings.data, "sources": sources})["languages"] == languages


def test_names_in_the_command(tmp_path):
    """Of any words they stay one; a file whose name is not known is named by its option."""
    found = command_of(tmp_path, development="my pairs; rm x")
    assert " --development 'my pairs; rm x' --exclude STS" in found
    assert "--vectors VECTORS " in command_of(tmp_path, replace(TRAINING, inputs={}))


def test_values_by_hand(tmp_path):
    values = values_of(tmp_path)
    assert values["title"] == "WORD,TRIGRAM" and values["papers"] == [
        "ParaNMT-50M (Wieting and Gimpel 2018, section 4)"
    ]
    assert values["sources"] == ["captions.parquet", "every.parquet", "org/c@12"]
    assert values["datasets"] == ["org/c"] and values["languages"] is None


def test_values_of_a_family_of_another_paper(tmp_path):
    """A projection's record has everything that its card needs."""
    values = values_of(tmp_path, encoder=EncoderConfig(model="projection,trigram"))
    assert values["papers"][0] == "PARAGRAM-PHRASE (Wieting et al. 2016, section 3)"
    ordered = values_of(tmp_path, encoder=EncoderConfig(model="word+lstm"))
    assert values["limits"] == values_of(tmp_path)["limits"] != ordered["limits"]
    assert (values["trigrams"], ordered["trigrams"]) == (True, False)
