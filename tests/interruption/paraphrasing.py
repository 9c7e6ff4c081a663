"""The commands that are stopped: those that train paraphrasers, or paraphrase."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from paranmt_hf.util.optional import available
from tests.interruption.driver import Case
from tests.interruption.inputs import SETTLED, TWO_ROWS, bitext, pairs

# Both say how long training took.
SECONDS = {"out/paraphraser.json": ("seconds",), "out/README.md": ("seconds",)}


def _train_paraphraser(root: Path) -> list[str]:
    words = ["paraphrase", "train", f"{root}/pairs.parquet", "--out", f"{root}/out", "--device", "cpu"]
    words += ["--epochs", "2"]
    shape = ["--architecture", "pieces=300,embedding=4,hidden=4", "--batch-tokens", "150", "--held-out", "0.2"]
    return [*words, *shape, "--optimization", "checkpoint_seconds=0,evaluations=2"]


def _paraphraser(root: Path) -> None:
    import json

    from tests.paraphrase.paraphraser_toys import SENTENCES, label_of, write_paraphraser

    write_paraphraser(root / "model")
    (root / "text.txt").write_text("".join(f"{line}\n" for line in SENTENCES[:6]), encoding="utf8")
    rows = [{"text": text, "label": label_of(text)} for text in SENTENCES[::6]]
    (root / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf8")


def _generated(root: Path, command: str, file: str, *more: str) -> list[str]:
    words = ["paraphrase", command, f"{root}/{file}", "--model", f"{root}/model", "--out", f"{root}/out.jsonl"]
    search = {"device": "cpu", "sample": "true", "max_length": "9"}
    device = ["--device", search.pop("device")] if command == "text" else []
    given = ["--decoding", ",".join(f"{name}={value}" for name, value in search.items())]
    # Several shards out of few sentences.
    return [*words, *device, *given, *more, "--engine", "workers=1,threads=1,shard_rows=3"]


def _augment(root: Path) -> list[str]:
    return _generated(root, "augment", "rows.jsonl", "--per-label", "10")


def _train_controlled(root: Path) -> list[str]:
    words = ["paraphrase", "train", f"{root}/pairs.parquet", "--model", "controlled", "--out", f"{root}/out"]
    words += ["--device", "cpu", "--epochs", "2"]
    shape = ["--architecture", "pieces=300,embedding=4,hidden=4,tree_hidden=4,same_template=true"]
    shape += ["--max-pieces", "30"]
    course = ["--batch-tokens", "150", "--held-out", "0.2", "--optimization", "evaluations=2,checkpoint_seconds=0"]
    return [*words, *shape, *course]


def _parsed(root: Path) -> None:
    import pyarrow.parquet as pq

    pairs(root)
    table = pq.read_table(root / "pairs.parquet")
    ways = ["(S(NP(DT)(NN))(VP(VBZ)(NP(DT)(NN)))(.))", "(SQ(VBZ)(NP(DT)(NN))(NP(DT)(NN))(?))", None]
    for side, step in (("reference", 1), ("translation", 2)):
        trees = [ways[row * step % 7 % 3] for row in range(table.num_rows)]
        table = table.append_column(f"{side}_parse", [trees])
    pq.write_table(table, root / "pairs.parquet")


def _templates(root: Path) -> list[str]:
    words = ["--templates", "2", "--parser", f"{root}/trees.tsv"]
    return _generated(root, "text", "text.txt", *words)


def _controlled(root: Path) -> None:
    from paranmt_hf.cli import main
    from tests.training.toys import synonyms

    _parsed(root)
    if main(_train_controlled(root)):
        raise RuntimeError("there is no network")
    (root / "out").rename(root / "model")
    sentences = synonyms(5)[0]
    (root / "text.txt").write_text("".join(f"{line}\n" for line in sentences), encoding="utf8")
    trees = [f"{line}\t(S (NP {line.split()[0]}) (VP {line}))\n" for line in sentences[:4]]
    (root / "trees.tsv").write_text("".join(trees), encoding="utf8")


def _asked(root: Path) -> list[str]:
    """The server lives in the process that is stopped; its address is another one each time, and in no result."""
    from tests.corpus.language_models.chat_server import ChatServer

    server = ChatServer(lambda sentence, *_: f"{sentence[:-1]}, so to say.")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ["OPENAI_BASE_URL"] = server.url
    words = ["build", "--reference", f"{root}/sample.en", "--language-model", "small", "--out", f"{root}/out"]
    return [*words, *SETTLED, *TWO_ROWS]


PARAPHRASING = [
    *([Case("build, language model", _asked, lambda root: bitext(root, 6))] if available("openai") else []),
    Case("paraphrase train", _train_paraphraser, pairs, SECONDS),
    Case("paraphrase text", lambda root: _generated(root, "text", "text.txt"), _paraphraser),
    Case("paraphrase text, templates", _templates, _controlled),
    Case("paraphrase augment", _augment, _paraphraser),
    Case("paraphrase train, controlled", _train_controlled, _parsed, SECONDS),
]
