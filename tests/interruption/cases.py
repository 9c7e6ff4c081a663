"""The commands that are stopped, on data so small that each takes a moment."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

from paranmt_hf.util.optional import available
from tests.interruption.driver import Case
from tests.interruption.inputs import ONE, SAMPLE, SETTLED, TEN_ROWS, TWO_ROWS, bitext, pairs
from tests.interruption.paraphrasing import PARAPHRASING

# What stands in results of mteb: ours beside each other and each alone.
MTEB_CHANGING = {"out/*__*.json": ("seconds", "evaluation_time", "evaluation_phases", "date")}
TRAIN = ["--dimension", "8", "--batch-size", "10", "--mega-batch", "2", "--epochs", "2"]


def _build(root: Path, *more: str, **settings: object) -> list[str]:
    """Greedy search by transformers, because the results of another search are interrupted alike."""
    chosen = {"name": "captions-cs-en", "backend": "transformers", "beam": 1, **settings}
    (root / "translator.yaml").write_text("".join(f"{name}: {value}\n" for name, value in chosen.items()))
    words = ["build", "--reference", f"{root}/sample.en", "--translator", f"{root}/translator.yaml"]
    words += [] if "--pivot" in more else ["--source", f"{root}/sample.cs"]
    return [*words, "--out", f"{root}/out", *SETTLED, *more]


def _repeated(root: Path, lines: int) -> None:
    """Write the first lines of the sample twice."""
    bitext(root, lines)
    for name in ("sample.cs", "sample.en"):
        text = (root / name).read_text(encoding="utf8")
        (root / name).write_text(2 * text, encoding="utf8")


def _import(root: Path) -> list[str]:
    return ["import", f"{root}/pairs.parquet", "--out", f"{root}/out", *SETTLED, *TEN_ROWS]


def _import_preset(root: Path, preset: str, *more: str) -> list[str]:
    files = [str(path) for path in sorted(root.glob("set*.tsv.gz"))]
    words = ["import", *files, "--preset", preset, "--out", f"{root}/out"]
    return [*words, *more, *TEN_ROWS]


def _labelled(root: Path) -> None:
    from tests.training.toys import synonyms

    sides = zip(*synonyms(60), strict=True)
    rows = [f"{row}\t{left}\t{right}\t{row % 3 % 2}\n" for row, (left, right) in enumerate(sides)]
    _packed(root, [["id\tsentence1\tsentence2\tlabel\n", *half] for half in (rows[:40], rows[40:])])


def _in_sets(root: Path) -> None:
    from tests.training.toys import synonyms

    sentences = [sentence for pair in zip(*synonyms(20), strict=True) for sentence in pair]
    _packed(root, [[f"{row // 4}\t{row}\t{sentence}\t\t\n" for row, sentence in enumerate(sentences)]])


def _packed(root: Path, files: list[list[str]]) -> None:
    for number, lines in enumerate(files):
        (root / f"set{number}.tsv.gz").write_bytes(gzip.compress("".join(lines).encode(), mtime=0))


def _vectors(path: Path) -> None:
    path.write_text("".join(f"left{index} {index} 1\nright{index} {index} 2\n" for index in range(30)))


def _release(root: Path) -> None:
    from paranmt_hf.cli import main

    pairs(root)
    _vectors(root / "vectors.txt")
    if main([*_import(root), "--scorer", f"{root}/vectors.txt"]):
        raise RuntimeError("there is no release")


def _dedup(root: Path) -> list[str]:
    words = ["dedup", f"{root}/text.txt", "--out", f"{root}/out.txt", "--by", "exact", "near", "meaning"]
    return [*words, "--cosine", "0.6", "--keep-dropped", f"{root}/dropped.parquet"]


def _select(root: Path) -> list[str]:
    words = ["select", f"{root}/whole", "--out", f"{root}/out", "--tenths", "2-10", "--drop-copies", "reference"]
    return [*words, "--sample", "9", "--keep-dropped", f"{root}/dropped.parquet", "--json", f"{root}/counts.json"]


def _whole(root: Path) -> None:
    _release(root)
    (root / "out").rename(root / "whole")


def _train(model: str) -> Case:
    return Case(
        f"train {model}",
        lambda root: [
            *("train", "--data", f"{root}/pairs.parquet", "--out", f"{root}/out", "--model", model, "--device", "cpu"),
            *TRAIN,
        ],
        pairs,
        {"out/training.json": ("seconds",)},
    )


def _encoder(folder: Path, sides: tuple[list[str], list[str]] | None = None, **settings: object) -> None:
    from paranmt_hf.encoders.saving import save
    from tests.training.toys import encoder_of, synonyms

    save(encoder_of(sides or synonyms(40), dimension=8, **settings), folder)


def _sent2vec(root: Path) -> list[str]:
    rare = ["--min-count", "2", "--steps", "min_target_count=2,threshold=1"]
    size = ["--dimension", "8", "--ngrams", "2", "--ngram-settings", "buckets=500", "--epochs", "2"]
    return ["train-sent2vec", f"{root}/text.txt", "--out", f"{root}/out", *rare, *size]


def _two(root: Path) -> None:
    from paranmt_hf.cli import main

    pairs(root)
    for seed in ("1", "2"):
        words = ["train", "--data", f"{root}/pairs.parquet", "--out", f"{root}/model{seed}", "--seed", seed, *TRAIN]
        assert main(words) == 0


def _export(format: str, model: str) -> Case:
    return Case(
        f"export {format}",
        lambda root: ["encoder", "export", f"{root}/model", "--format", format, "--out", f"{root}/out"],
        lambda root: _encoder(root / "model", model=model),
        {"out/export.json": ("speed", "own_speed")},
    )


def _evaluate(root: Path) -> list[str]:
    return ["evaluate", "sts", f"{root}/model", "--data", f"{root}/similarity.tsv", "--json", f"{root}/out"]


def _judged(root: Path) -> None:
    shutil.copy(SAMPLE / "similarity.tsv", root)
    lines = (SAMPLE / "similarity.tsv").read_text(encoding="utf8").splitlines()
    _, left, right = zip(*(line.split("\t") for line in lines), strict=True)
    _encoder(root / "model", (list(left), list(right)))


def _stats(root: Path) -> list[str]:
    files = {"json": "out", "write": "stats.png", "write-samples": "sample"}
    return ["stats", f"{root}/pairs.parquet", *(f"--{name}={root}/{path}" for name, path in files.items())]


def _scored(root: Path) -> None:
    import pyarrow.parquet as pq

    pairs(root)
    table = pq.read_table(root / "pairs.parquet")
    for name, value in {"para_score": 0.9, "reference_length": 4, "translation_length": 4}.items():
        table = table.append_column(name, [[value] * table.num_rows])
    pq.write_table(table, root / "pairs.parquet")


def _negatives(root: Path) -> list[str]:
    from paranmt_hf.search import ranked_negatives

    # Several blocks.
    ranked_negatives.BLOCK = 15
    _vectors(root / "vectors.txt")
    words = ["negatives", f"{root}/pairs.parquet", "--encoder", f"{root}/vectors.txt", "--out", f"{root}/out"]
    return [*words, "--number", "1", "--relative-margin", "0"]


def _parse(root: Path) -> list[str]:
    # The process that is stopped builds the words, so it has small shards too.
    from paranmt_hf.corpus.parsing import parse

    parse.SHARD_PAIRS = 20
    words = ["parse", f"{root}/pairs.parquet", "--parser", f"{root}/trees.tsv", "--out", f"{root}/out"]
    return [*words, *ONE]


def _trees(root: Path) -> None:
    from tests.training.toys import synonyms

    pairs(root)
    sentences = sorted({sentence for side in synonyms(40) for sentence in side})
    lines = [f"{each}\t(S (NP {each.split()[0]}) (VP {each}))\n" for each in sentences[::2]]
    (root / "trees.tsv").write_text("".join(lines), encoding="utf8")


def _search(root: Path, *words: str) -> list[str]:
    return ["search", "index", f"{root}/text.txt", "--out", f"{root}/out", *words]


def _mine(root: Path, out: str, *words: str) -> list[str]:
    return ["search", "mine", f"{root}/text.txt", "--out", f"{root}/{out}", "--min-score", "0.3", *words]


def _sentences(root: Path) -> None:
    text = (SAMPLE / "sample.en").read_text(encoding="utf8").splitlines(keepends=True)
    (root / "text.txt").write_text("".join([*text[:60], *text[:5]]), encoding="utf8")


def _tune(root: Path) -> list[str]:
    words = ["tune", f"{root}/ppdb.gz", "--development", "sample", "--out", f"{root}/out"]
    words += ["--grid", "learning-rate=0.001,0.01", "seed=1,2", "--tune-pairs", "30"]
    return [*words, "--training", "epochs=1,dimension=8,batch-size=10,mega-batch=1"]


def _phrases(root: Path) -> None:
    from tests.training.toys import synonyms

    lines = [
        f"[X] ||| {left} ||| {right} ||| PPDB2.0Score=1 ||| 0-0\n" for left, right in zip(*synonyms(40), strict=True)
    ]
    # The development set of the package, whose words are others, tells nothing of models that know none of them.
    lines += [f"[X] ||| {words} a man ||| a {words} dog ||| PPDB2.0Score=1 ||| 0-0\n" for words in ("the", "is", "on")]
    (root / "ppdb.gz").write_bytes(gzip.compress("".join(lines).encode(), mtime=0))


def _trained(root: Path) -> None:
    from paranmt_hf.cli import main

    pairs(root)
    if main(["train", "--data", f"{root}/pairs.parquet", "--out", f"{root}/model", "--model", "word,trigram", *TRAIN]):
        raise RuntimeError("there is no model")


def _mteb(root: Path) -> list[str]:
    words = ["evaluate", "mteb", f"{root}/model", "--tasks", "STS12", "STS13", "--data", f"{root}/data"]
    return [*words, "--out", f"{root}/out"]


def _tasks(root: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    _judged(root)
    lines = (root / "similarity.tsv").read_text(encoding="utf8").splitlines()
    scores, left, right = zip(*(line.split("\t") for line in lines), strict=True)
    columns = {"sentence1": left, "sentence2": right, "score": list(map(float, scores))}
    for name in ("STS12", "STS13"):
        (root / "data" / name).mkdir(parents=True)
        pq.write_table(pa.table(columns), root / "data" / name / "test.parquet")


def _supervise(root: Path) -> list[str]:
    words = ["supervise", f"{root}/senteval", "--task", "SICK-R", "--init-from", f"{root}/model"]
    return [*words, "--out", f"{root}/out", "--epochs", "2", "--head", "hidden=4", "--optimization", "batch-size=4"]


def _tune_task(root: Path) -> list[str]:
    words = ["tune", f"{root}/senteval", "--task", "SICK-R", "--out", f"{root}/out"]
    training = f"init-from={root}/model,epochs=2,hidden=4,batch-size=4"
    return [*words, "--grid", "optimizer=adam,adagrad", "--training", training]


def _task(root: Path) -> None:
    from tests.evaluation.toys import WORDS, write_all

    write_all(root / "senteval", items=10)
    _encoder(root / "model", (list(WORDS), ["of number"]), model="projection")


def _model(root: Path) -> None:
    from tests.sent2vec.sent2vec_files import WORDS, BinFile

    (root / "model.bin").write_bytes(BinFile(WORDS).write())


def _steps(root: Path) -> None:
    from tests.training.toys import synonyms

    pairs(root)
    sides = zip(*synonyms(40), strict=True)
    (root / "judged.tsv").write_text(
        "".join(f"{row % 5}\t{left}\t{right}\n" for row, (left, right) in enumerate(sides))
    )
    (root / "pipeline.yaml").write_text(
        """steps:
  corpus: {command: import, data: pairs.parquet, license: cc-by-nc-sa-4.0, shard-rows: 10, workers: 1, threads: 1}
  out: {command: train, data: "{corpus}", dimension: 8, batch-size: 10, mega-batch: 2, epochs: 2, device: cpu}
  report: {command: evaluate sts, models: "{out}", data: judged.tsv}
"""
    )


# The record of the last step has a checksum of the training's record, whose seconds differ.
STEPS_CHANGING = {
    "out/training.json": ("seconds",),
    "report.json": ("speed",),
    "report.json.json": ("sha256", "out/training.json"),
}
CASES = [
    *PARAPHRASING,
    Case("build", lambda root: _build(root, *TWO_ROWS), lambda root: bitext(root, 6)),
    Case(
        "build, 2 workers",
        lambda root: _build(root, "--engine", "workers=2,threads=1,shard_rows=2"),
        lambda root: bitext(root, 6),
    ),
    Case("build, repeated sentences", lambda root: _build(root, *TWO_ROWS), lambda root: _repeated(root, 3)),
    Case("import", _import, pairs),
    Case("import, preset", lambda root: _import_preset(root, "paws", "--label", "any"), _labelled),
    Case("import, preset of sets", lambda root: _import_preset(root, "tapaco"), _in_sets),
    Case("score", lambda root: ["score", "--scorer", "small", f"{root}/out", *ONE], _release),
    Case("select", _select, _whole),
    Case("dedup", _dedup, _sentences),
    _train("word"),
    _train("lstm"),
    Case("train-sent2vec", _sent2vec, _sentences, {"out/sent2vec.json": ("seconds",)}),
    Case(
        "average",
        lambda root: ["encoder", "average", f"{root}/model1", f"{root}/model2", "--out", f"{root}/out"],
        _two,
    ),
    Case(
        "build, several hypotheses",
        lambda root: _build(root, "--hypotheses", "3", *TWO_ROWS, sample="true", temperature=0.7),
        lambda root: bitext(root, 5),
    ),
    Case(
        "build, pivot", lambda root: _build(root, "--pivot", "captions-cs-en", *TWO_ROWS), lambda root: bitext(root, 4)
    ),
    Case("supervise", _supervise, _task),
    Case(
        "convert", lambda root: ["encoder", "convert", f"{root}/model.bin", "--out", f"{root}/out", *SETTLED], _model
    ),
    _export("static", "word"),
    _export("static", "trigram"),
    _export("model2vec", "word"),
    _export("onnx", "word,trigram"),
    Case(
        "encoder vectors",
        lambda root: ["encoder", "vectors", "small", "--text", f"{root}/text.txt", "--out", f"{root}/out.txt"],
        _sentences,
    ),
    Case(
        "distill",
        lambda root: [
            *("distill", "small", "--text", f"{root}/pairs.parquet", "--out", f"{root}/out", "--epochs", "1"),
            *("--data", f"{root}/pairs.parquet", "--dimension", "4"),
        ],
        pairs,
        # The checksums of the steps cover their times.
        {"out/training.json": ("seconds", "revision", "init_from")},
    ),
    Case("lexicon", lambda root: ["lexicon", "build", f"{root}/pairs.parquet", "--out", f"{root}/out"], _scored),
    Case("search index", _search, _sentences),
    Case("search index, lists", lambda root: _search(root, "--search", "lists=4"), _sentences),
    Case("mine", lambda root: _mine(root, "out", "--margin", "ratio", *SETTLED, *ONE), _sentences),
    Case("mine, lists", lambda root: _mine(root, "out.parquet", "--search", "lists=4"), _sentences),
    Case("negatives", _negatives, pairs),
    Case(
        "annotate sample",
        lambda root: [
            *("annotate", "sample", f"{root}/whole", "--out", f"{root}/out", "--ranges", "2", "--per-range", "3")
        ],
        _whole,
    ),
    Case(
        "explore report",
        lambda root: ["explore", "report", f"{root}/whole", "--encoder", "none", "--out", f"{root}/out.html"],
        _whole,
    ),
    Case(
        "calibrate",
        lambda root: ["calibrate", f"{root}/model", "--ratings", f"{root}/similarity.tsv", "--out", f"{root}/out"],
        _judged,
    ),
    Case(
        "evaluate transfer",
        lambda root: [
            *("evaluate", "transfer", f"{root}/model", "--data", f"{root}/senteval", "--out", f"{root}/out"),
            *("--tasks", "SICK-R", "SICK-E"),
        ],
        _task,
        grows=True,
    ),
    Case("evaluate", _evaluate, _judged, {"out": ("speed",), "out.json": ("sha256",)}),
    Case("run", lambda root: ["run", f"{root}/pipeline.yaml"], _steps, STEPS_CHANGING),
    *([Case("evaluate mteb", _mteb, _tasks, MTEB_CHANGING, grows=True)] if available("mteb") else []),
    Case("stats", _stats, pairs),
    Case("parse", _parse, _trees),
    Case("tune", _tune, _phrases, {"out/tune.json": ("seconds",)}),
    Case("tune-task", _tune_task, _task, {"out/tune.json": ("seconds",)}),
]
