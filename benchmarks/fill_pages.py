"""Fill the figures of README.md and docs/ from records of measurements, so that every figure was measured.

A fenced block of a page that `<!-- output -->` follows was run, and what it printed is shown below it; `<!-- run -->`
follows a block that later ones need. The record of a page is `benchmarks/records/PAGE.json`, which only a run writes:

    python benchmarks/fill_pages.py                                   # fill all pages from the records
    python benchmarks/fill_pages.py --measure docs/analysis.md --data ../shared/data

`<!-- output A:B -->` keeps these paragraphs of the output, as a slice of Python does. Tables of the encoders in
`model_cards/` come from their records: `<!-- models -->`, `<!-- mteb -->`;
`<!-- peers -->` is the head of the first table of `docs/peers.md`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RECORDS = ROOT / "benchmarks" / "records"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = r"^```(\w*)\n((?:(?!```).*\n)*)```\n\n?"
STEP = re.compile(FENCE + r"<!-- (run|output)(?: (-?\d*):(-?\d*))? -->$", re.MULTILINE)
SHOWN = re.compile(rf"({FENCE}<!-- output[^>]*-->)\n[\s\S]*?<!-- /output -->", re.MULTILINE)
YEARS = ("STS12", "STS13", "STS14")
# The names of data sets in pages, and their paths below --data.
DATA = {
    "sts": "sts",
    "stsb-multi-mt": "sts/multilingual",
    # The folder of this name of https://github.com/MicrosoftTranslator/NTREX
    "NTREX-128": "NTREX-128",
    "senteval": "senteval",
    "MRPC": "senteval/MRPC",
    # The sets of tests/meaning
    "handwritten": str(ROOT / "tests" / "meaning"),
    "SICK": "senteval/SICK",
    "glove.100d.100k.txt.gz": "vectors/glove.100d.100k.txt.gz",
    "machine-translations.parquet": "pairs/machine-translations.parquet",
    "SimLex-999.txt": "lexical/EN-SIMLEX-999.txt",
    "ppdb-xl-lexical.txt": "lexical/ppdb-xl-lexical.txt",
    "news.en": "bitext/news/news.en",
    "train.en": "bitext/multi30k/train.en",
    "all-MiniLM-L6-v2": "models/all-MiniLM-L6-v2",
}


def steps(text: str) -> Iterator[tuple[str, str, bool, slice]]:
    """Yield each block of a page that is run: language, code, whether its output is shown, and which paragraphs."""
    for language, code, kind, first, last in STEP.findall(text):
        yield language, code, kind == "output", slice(*(int(end) if end else None for end in (first, last)))


def measure(page: Path, folder: Path, data: Path | None) -> dict[str, Any]:
    """Run the blocks of a page in an empty folder, and return what they printed."""
    links = {name: data.resolve() / place for name, place in DATA.items()} if data else {}
    for name, target in (links | {name: ROOT / name for name in ("paranmt_hf", "benchmarks")}).items():
        (folder / name).symlink_to(target)
    outputs: dict[str, str] = {}
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": paths, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    for language, code, shown, kept in steps(page.read_text(encoding="utf8")):
        command = [sys.executable, "-c", code] if language == "python" else ["bash", "-ec", code]
        done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            raise SystemExit(f"{page.name}: status {done.returncode} of\n{code}")
        if shown:
            printed = done.stdout.replace(f"{folder}/", "").replace(str(folder), ".").strip("\n")
            outputs[code] = "\n\n".join(printed.split("\n\n")[kept])
    libraries = ", ".join(f"{name} {version(name)}" for name in ("torch", "sentence-transformers", "numpy"))
    return {"made": f"{datetime.date.today()}, {libraries}", "outputs": outputs}


def results(name: str) -> dict[str, Any]:
    """Read the evaluation results of an encoder in `model_cards/`."""
    return dict(json.loads((ROOT / "model_cards" / f"{name}.json").read_text(encoding="utf8"))["results"])


def figure(name: str, table: str, row: str, measure: str) -> str:
    """Return a figure of the results of an encoder, times 100."""
    values = next(each["values"] for each in results(name)["tables"][table] if each["name"] == row)
    return f"{100 * values[measure]:.1f}"


def models() -> str:
    """Return a table of the encoders of `model_cards/` next to those of the paper."""
    titles = {
        "base": 'WORD, 384, of free text, rows of 4 bits: `paranmt_hf.load("base")`',
        "small": "WORD, 256, of free text, rows of 4 bits: `paranmt_hf.load()`",
        "word-trigram": "WORD,TRIGRAM, 384 + 216: `word-trigram`",
        "trigram": "TRIGRAM, 300: `trigram`",
        "lstm": "LSTM, 200: `lstm`",
    }
    lines = ["Pearson x 100, mean of each year's sets | STS12 | STS13 | STS14 | mean | development (STS 2017 track 5)"]
    lines.append("---|---:|---:|---:|---:|---:")
    for name, title in titles.items():
        figures = [figure(name, "Year", year, "mean") for year in (*YEARS, "Mean")]
        lines.append(" | ".join([title, *figures, figure(name, "Set", "STS17-track5", "pearson")]))
    lines.append("for comparison: the paper's WORD,TRIGRAM, 2 x 300 (table 8) | 67.8 | | 77.4 | |")
    return "\n" + "".join(f"| {line} |\n" for line in lines)


def mteb() -> str:
    """Return a table of the scores in MTEB of the encoder that the package carries."""
    return ", ".join(figure("small", "Year", year, "all_spearman") for year in YEARS)


def peers() -> str:
    """Return the first rows of the first table of `docs/peers.md`."""
    (printed,) = read_record(ROOT / "docs" / "peers.md")["outputs"].values()
    heading, line, *rows = printed.split("\n\n")[0].split("\n")
    named = ("`load", "WordLlama", "model2vec", "all-MiniLM", "word-trigram", "potion-base-32M", "static-similarity")
    return "\n".join(
        ["", heading, line, *(row for row in rows if row.startswith(tuple(f"| {name}" for name in named))), ""]
    )


TABLES: dict[str, Callable[[], str]] = {"models": models, "mteb": mteb, "peers": peers}


def read_record(page: Path) -> dict[str, Any]:
    """Read what the blocks of a page printed; empty for a page without a record."""
    path = RECORDS / f"{page.stem}.json"
    return dict(json.loads(path.read_text(encoding="utf8"))) if path.exists() else {"outputs": {}}


def filled(page: Path) -> str:
    """Return the text of a page with the figures of the records filled in."""
    text, record = page.read_text(encoding="utf8"), read_record(page)

    def show(match: re.Match[str]) -> str:
        block, _, code = match.groups()
        if code not in record["outputs"]:
            raise SystemExit(f"{page.name}: there is no record of this block; run --measure with the page\n{code}")
        return f"{block}\n\n```text\n{record['outputs'][code]}\n```\n<!-- /output -->"

    text = SHOWN.sub(show, text)
    tables = TABLES | ({"made": lambda: str(record["made"])} if record["outputs"] else {})
    for name, table in tables.items():
        opening, closing = f"<!-- {name} -->", f"<!-- /{name} -->"
        if opening not in text:
            continue
        shown = f"{opening}{table()}{closing}".replace("\\", "\\\\")
        text = re.sub(rf"{opening}[\s\S]*?{closing}", shown, text)
    return text


def main() -> None:
    """Parse the command line; run the blocks of the given pages and fill these, or fill all pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", nargs="+", type=Path, default=[], help="pages whose blocks are run")
    parser.add_argument("--data", type=Path, help="folder with the data of others that blocks name")
    arguments = parser.parse_args()
    for page in arguments.measure:
        with tempfile.TemporaryDirectory() as folder:
            record = measure(page, Path(folder), arguments.data)
        (RECORDS / f"{page.stem}.json").write_text(f"{json.dumps(record, indent=1, ensure_ascii=False)}\n")
    for page in arguments.measure or PAGES:
        page.write_text(filled(page), encoding="utf8")


if __name__ == "__main__":
    main()
