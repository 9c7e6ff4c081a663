"""The whole way with the model and the sample that the package carries."""

import json
import logging
import re
import shlex
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import paranmt_hf
from paranmt_hf import InputError, TranslatorConfig
from paranmt_hf.cli import main, quickstart
from paranmt_hf.cli.pipeline import run_pipeline
from paranmt_hf.corpus.translation.engines import load_translator
from paranmt_hf.hub import repository
from paranmt_hf.hub.repository import ASSETS, locate, usual_score

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return tmp_path


def write_assets(folder, lines):
    """Write what the quickstart reads, with the first lines of the sample alone."""
    shutil.copytree(ASSETS / "sample", folder / "sample")
    shutil.copy(ASSETS / "quickstart.yaml", folder)
    for language in ("cs", "en"):
        path = folder / "sample" / f"sample.{language}"
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:lines]))


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """What `paranmt quickstart` makes of the first sentences of the sample."""
    root = tmp_path_factory.mktemp("quickstart")
    write_assets(root / "assets", 40)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quickstart, "ASSETS", root / "assets")
        assert main(["quickstart", "--out", str(root / "demo")]) == 0
    return root / "demo"


def test_sample_is_aligned_and_distinct():
    sides = [
        (ASSETS / "sample" / f"sample.{language}").read_text(encoding="utf8").split("\n")[:-1]
        for language in ("cs", "en")
    ]
    assert len(sides[0]) == len(sides[1]) >= 400
    for side in sides:
        assert len(set(side)) == len(side)
        assert all(line.strip() == line and line for line in side)
    # A misaligned side would give unrelated lengths.
    ratios = sorted(len(left) / len(right) for left, right in zip(*sides, strict=True))
    assert 0.4 < ratios[0] and ratios[-1] < 2


def test_carried_translator_is_small_and_safe():
    model = locate("captions-cs-en", kind="translator")
    files = [path for path in model.folder.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 10_000_000
    assert {path.suffix for path in files} == {".json", ".spm", ".safetensors", ".md"}
    assert usual_score("captions-cs-en") == pytest.approx(-0.42)


@pytest.mark.slow
def test_carried_translator_translates():
    translator = load_translator(TranslatorConfig(name="captions-cs-en", backend="transformers"))
    result = translator.translate(["Muž hraje na kytaru.", "Dva psi běží po trávě."])
    assert result.texts == ["A man is playing a guitar.", "Two dogs run on the grass."]
    assert all(-0.6 < score < 0 for score in result.scores)


@pytest.fixture
def without_translator(tmp_path, monkeypatch):
    """An installation whose packager left the translator out."""
    assets = tmp_path / "site" / "assets"
    shutil.copytree(ASSETS, assets, ignore=lambda folder, names: {"captions-cs-en", "base"} & set(names))
    monkeypatch.setattr(repository, "ASSETS", assets)


def test_without_the_translator(folder, without_translator, capsys):
    for kind, name in (("translator", "captions-cs-en"), ("encoder", "base")):
        for find in (locate, repository.check_name):
            with pytest.raises(InputError) as found:
                find(name, kind=kind)
            assert found.value.path.name == name
    (folder / "cs").write_text("Pes.\n", encoding="utf8")
    build = "build --source cs --reference cs --translator captions-cs-en --license cc-by-nc-sa-4.0"
    for command in ("quickstart", build):
        assert main([*command.split(), "--out", "made"]) == 1
        out, error = capsys.readouterr()
        assert not out and error.count("\n") == 1 and "captions-cs-en" in error and "--translator" in error
    # The current folder is a folder like any other.
    assert main(["quickstart", "--out", "."]) == 1 and "captions-cs-en" in capsys.readouterr().err
    assert sorted(path.name for path in folder.iterdir()) == ["cs", "site"]
    assert paranmt_hf.StaticEncoder.from_pretrained().encode(["A dog."]).shape == (1, 256)
    assert usual_score("captions-cs-en") is None


@pytest.mark.slow
def test_quickstart_with_another_translator(folder, without_translator, monkeypatch):
    other = shutil.copytree(ASSETS / "captions-cs-en", folder / "other")
    write_assets(folder / "assets", 10)
    monkeypatch.setattr(quickstart, "ASSETS", folder / "assets")
    assert main(["quickstart", "--out", "demo", "--translator", str(other)]) == 0
    record = json.loads((folder / "demo" / "paranmt50m" / "build.json").read_bytes())
    assert record["license"] == "unknown" and record["statistics"]["rows"] == 10


def test_quickstart_in_small(demo, monkeypatch, capsys):
    assert pq.read_table(demo / "paranmt50m" / "data").num_rows == 40
    assert (demo / "paranmt50m" / "README.md").is_file() and (demo / "word" / "modules.json").is_file()
    # Its steps are those of a file that anybody can run.
    steps = demo.parent / "assets" / "quickstart.yaml"
    lines = [line for line in run_pipeline(steps, out=demo, dry_run=True) if not line.startswith("  ")]
    assert [line.split(", ")[1] for line in lines] == ["there"] * 3
    # It ends with commands for what it made.
    monkeypatch.setattr(quickstart, "ASSETS", demo.parent / "assets")
    for line in list(quickstart.quickstart(demo))[-2:]:
        assert main(shlex.split(line)[1:]) == 0
    assert len(re.findall(r"^ *[01]\.\d+ ", capsys.readouterr().out, re.MULTILINE)) > 1


@pytest.mark.slow
def test_quickstart(folder, capsys):
    assert main(["quickstart", "--out", str(folder)]) == 0
    out = capsys.readouterr().out
    assert f"{folder}/paranmt50m: 475 pairs" in out
    assert f"load_dataset('{folder}/paranmt50m') -> 475 rows" in out
    table = pq.read_table(folder / "paranmt50m" / "data")
    assert table.num_rows == 475
    assert table["translation_score"].to_numpy().max() <= 0
    # Captions are what the model knows: its mean score is near the one it reached in its test.
    assert table["translation_score"].to_numpy().mean() > usual_score("captions-cs-en") - 0.3
    assert f"SentenceTransformer('{folder}/word') loads it" in out
    before, after, carried = (float(score) for score in re.findall(r"^  (\d\d\.\d)  ", out, re.MULTILINE))
    assert 78 < before < after - 1 and after < carried
    # The last loss tells that more of the same would teach no more, and not that nothing was learned for long.
    first, last = (float(loss) for loss in re.search(r"loss went from (\S+) to (\S+);", out).groups())
    assert first > 0.2 > last > 0.005
    assert main(["quickstart", "--out", str(folder)]) == 0


@pytest.mark.parametrize(("name", "largest"), [("small", 4_000_000), ("base", 12_000_000)])
def test_carried_encoders_are_small_and_safe(name, largest):
    files = [path for path in locate(name).folder.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= largest
    assert {path.suffix for path in files} <= {".json", ".safetensors", ".md", ".py"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["small", "base"])
def test_carried_encoders_on_the_development_set(name, shared_data):
    from paranmt_hf import evaluate
    from paranmt_hf.evaluation.sts_data import development_set

    (result,) = evaluate(name, data=[development_set(shared_data / "sts")], bootstrap=0)
    recorded = json.loads((ROOT / "model_cards" / f"{name}.json").read_text(encoding="utf8"))
    assert result.tables["Set"][0].main == pytest.approx(recorded["precisions"]["int4"]["development"], abs=1e-4)
    assert result.tables["Set"][0].main > 0.85


@pytest.mark.slow
def test_text_that_the_translator_does_not_know(folder, caplog, shared_data):
    for language in ("cs", "en"):
        lines = (shared_data / "bitext" / "news" / f"news.{language}").read_text(encoding="utf8").split("\n")[:40]
        (folder / f"news.{language}").write_text("\n".join(lines) + "\n", encoding="utf8")
    caplog.set_level(logging.WARNING)
    arguments = ["--source", "news.cs", "--reference", "news.en", "--translator", "captions-cs-en"]
    arguments += ["--engine", "workers=1"]
    assert main(["build", *arguments, "--out", "news", "--license", "cc-by-nc-sa-4.0"]) == 0
    warning = r"mean translation score is -1\.\d\d, far below the -0\.42"
    assert re.search(warning, caplog.text)
    assert re.search(r"\*\*Warning:\*\* the " + warning, (folder / "news" / "README.md").read_text())


def python_blocks(name):
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(encoding="utf8"), re.DOTALL)


@pytest.mark.slow
def test_examples_of_guides_run(folder, demo):
    """The Python blocks of guides, word for word, in one folder after the quickstart."""
    shutil.copytree(demo, "demo")
    for name in ("docs/corpus.md", "docs/training.md", "docs/search.md"):
        namespace: dict[str, object] = {}
        for block in python_blocks(name):
            exec(compile(block, name, "exec"), namespace)
    for written in ("models/small/modules.json", "models/small-int8/modules.json", "small-pairs.parquet"):
        assert Path(written).is_file()


@pytest.mark.slow
def test_bleu_of_the_carried_translator(shared_data):
    import sacrebleu

    folder = shared_data / "bitext" / "multi30k"
    sides = [
        (folder / f"test_2016_flickr.{language}").read_text(encoding="utf8").split("\n")[:1000]
        for language in ("cs", "en")
    ]
    result = load_translator(TranslatorConfig(name="captions-cs-en")).translate(sides[0])
    bleu = sacrebleu.corpus_bleu(result.texts, [sides[1]]).score
    assert bleu > 36.5, f"recorded: 37.1, found {bleu:.1f}"
