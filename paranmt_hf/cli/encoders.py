"""Commands for encoders: train, evaluate, average, negatives, vectors, export."""

from __future__ import annotations

import argparse
import json
import typing
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paranmt_hf.cli.options import add_options, from_options
from paranmt_hf.errors import InputError

if TYPE_CHECKING:
    from paranmt_hf.evaluation.results import StsResult

Run = Callable[[argparse.Namespace], None]
DATA_HELP = "release folders, Parquet files with the columns reference and translation, or datasets on the Hub"


def configure_train(parser: argparse.ArgumentParser) -> Run:
    """Options of `paranmt train`."""
    from paranmt_hf.corpus.pairs import SelectionConfig
    from paranmt_hf.encoders.config import EncoderConfig
    from paranmt_hf.training.config import TrainConfig

    parser.add_argument("--data", nargs="+", required=True, help=DATA_HELP)
    parser.add_argument("--out", type=Path, required=True, help="folder of the encoder")
    parser.add_argument(
        "--development",
        type=Path,
        help="folder with STSBenchmark: keep the weights that are best on its STS 2017 pairs",
    )
    parser.add_argument("--exclude", type=Path, help="folder with STS sets: leave out pairs with their sentences")
    parser.add_argument("--teacher-cache", type=Path, help="folder that keeps the teacher's vectors for other runs")
    for kind, title in {EncoderConfig: "encoder", TrainConfig: "training", SelectionConfig: "pairs"}.items():
        add_options(typing.cast(argparse.ArgumentParser, parser.add_argument_group(title)), kind)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.workflows.train import train

        trained = train(
            arguments.data,
            arguments.out,
            encoder=from_options(EncoderConfig, arguments),
            config=from_options(TrainConfig, arguments),
            selection=from_options(SelectionConfig, arguments),
            development=arguments.development,
            exclude=arguments.exclude,
            teacher_cache=arguments.teacher_cache,
        )
        record, state = trained.record, "" if trained.fresh else " (was trained already)"
        print(f"{arguments.out}: {record['dimension']} dimensions, {record['parameters']:,} parameters{state}")
        history = record["history"]
        print(f"  {history['pairs']:,} pairs in {history['seconds']:,.0f} s, last loss {history['losses'][-1][1]:.3f}")
        if record["development"] is not None:
            print(f"  Pearson {100 * record['development']:.1f} on STS 2017 track 5, the development set")
        print(f"load it: paranmt_hf.load({str(arguments.out)!r})")

    return run


def configure_evaluate(parser: argparse.ArgumentParser) -> Run:
    """Options of `paranmt evaluate`."""
    parser.add_argument("kind", choices=["sts"], help="sts: semantic textual similarity")
    parser.add_argument(
        "models", nargs="*", help="folders or Hub ids; `embedded` is the encoder that the package carries"
    )
    parser.add_argument("--data", required=True, help="folder with STS sets (SentEval's layout), a TSV file, a Hub id")
    parser.add_argument("--json", type=Path, help="write the results into this file")
    parser.add_argument("--markdown", action="store_true", help="print Markdown tables")
    parser.add_argument("--baselines", nargs="+", choices=["bleu", "meteor"], default=[], help="beside the models")
    parser.add_argument("--bootstrap", type=int, default=1000, help="resamples for intervals; 0 for none (1000)")

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.evaluation.baselines import baseline
        from paranmt_hf.evaluation.results import compare
        from paranmt_hf.evaluation.sts import evaluate_sts
        from paranmt_hf.evaluation.sts_data import read_sts

        if not arguments.models and not arguments.baselines:
            raise InputError("name a model to evaluate, or --baselines bleu meteor")
        if arguments.json and arguments.json.is_dir():
            raise InputError(f"--json {arguments.json} is a folder; name a file")
        if arguments.json and not arguments.json.resolve().parent.is_dir():
            raise InputError(f"--json {arguments.json}: there is no folder {arguments.json.parent}; make it first")
        sets = read_sts(arguments.data)
        settings = {"bootstrap": arguments.bootstrap}
        results: list[StsResult] = []
        beside: list[dict[str, Any]] = []
        if arguments.models:
            from paranmt_hf.encoders.loading import load
            from paranmt_hf.workflows.support.model_record import measured

            for name in arguments.models:
                encoder = load(None if name == "embedded" else name)
                results.append(evaluate_sts(encoder, sets, name=name, **settings))
                beside.append(measured(encoder, sets) if arguments.json else {})
        results += [evaluate_sts(baseline(name), sets, name=name, **settings) for name in arguments.baselines]
        for result in results:
            print(f"## {result.model}\n" if arguments.markdown else result.model)
            print(result.markdown() if arguments.markdown else result.text(), end="\n\n")
        if len(results) > 1:
            print(compare(results, style="markdown" if arguments.markdown else "text"))
        if arguments.json:
            beside += [{} for _ in arguments.baselines]
            entries = [{**result.to_json(), **more} for result, more in zip(results, beside, strict=True)]
            text = json.dumps(entries, indent=2)
            arguments.json.write_text(f"{text}\n", encoding="utf8")
            print(f"results: {arguments.json}")

    return run


def configure_average(parser: argparse.ArgumentParser) -> Run:
    """Options of `paranmt average`."""
    parser.add_argument("models", nargs="+", help="folders or Hub ids; one that is named twice counts twice")
    parser.add_argument("--out", type=Path, required=True, help="folder of the mean")

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.workflows.average import average_encoders

        average_encoders(arguments.models, arguments.out)
        print(f"{arguments.out}: the mean of {len(arguments.models)} models")
        print(f"load it: paranmt_hf.load({str(arguments.out)!r})")

    return run


def configure_negatives(parser: argparse.ArgumentParser) -> Run:
    """Options of `paranmt negatives`."""
    from paranmt_hf.corpus.pairs import SelectionConfig

    parser.add_argument("sentences", nargs="+", help="sentences whose negatives are shown")
    parser.add_argument("--data", nargs="+", required=True, help=DATA_HELP)
    parser.add_argument("--encoder", help="folder or Hub id of the encoder that mines (the one the package carries)")
    parser.add_argument("--mega-batches", type=int, nargs="+", default=[1, 20, 40], help="values of M (1 20 40)")
    parser.add_argument("--batch-size", type=int, default=100, help="pairs of a mini-batch (100)")
    parser.add_argument("--seed", type=int, default=1, help="decides which pairs the mega-batches hold (1)")
    add_options(parser, SelectionConfig)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.workflows.negatives import mined_negatives

        found = mined_negatives(
            arguments.sentences,
            arguments.data,
            encoder=arguments.encoder,
            mega_batches=arguments.mega_batches,
            batch_size=arguments.batch_size,
            seed=arguments.seed,
            selection=from_options(SelectionConfig, arguments),
        )
        for sentence, negatives in zip(arguments.sentences, found, strict=True):
            print(sentence)
            for negative in negatives:
                print(f"  M = {negative.mega_batch:<4} {negative.similarity:5.2f}  {negative.sentence}")

    return run


def configure_vectors(parser: argparse.ArgumentParser) -> Run:
    """Options of `paranmt vectors`."""
    from paranmt_hf.encoders.distillation import DistillConfig

    parser.add_argument("kind", choices=["distill"], help="distill: let a large encoder encode words one by one")
    parser.add_argument("model", help="folder or Hub id of a SentenceTransformer")
    parser.add_argument("--data", nargs="+", help=f"take the most frequent words of: {DATA_HELP}")
    parser.add_argument(
        "--vocabulary", type=Path, help="and the words in front of the lines of this file, most frequent first"
    )
    parser.add_argument("--out", type=Path, required=True, help="text file of vectors; .gz compresses it")
    add_options(parser, DistillConfig)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.workflows.vectors import distill_vectors

        vectors = distill_vectors(
            arguments.model,
            arguments.out,
            data=arguments.data,
            vocabulary=arguments.vocabulary,
            config=from_options(DistillConfig, arguments),
        )
        print(f"{arguments.out}: {len(vectors.words):,} words, {vectors.matrix.shape[1]} dimensions")

    return run


def configure_export(parser: argparse.ArgumentParser) -> Run:
    """Options of `paranmt export`."""
    parser.add_argument(
        "model", help="folder or Hub id of the encoder; `embedded` is the one that the package carries"
    )
    parser.add_argument(
        "--format",
        required=True,
        help="static: WORD for plain sentence-transformers; tokenizers: TRIGRAM for the same; model2vec: WORD or "
        "TRIGRAM; onnx: each encoder",
    )
    parser.add_argument("--out", type=Path, required=True, help="folder to write")

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.export.exporting import export_encoder

        made = export_encoder(arguments.model, arguments.out, format=arguments.format)
        size = sum(path.stat().st_size for path in made.folder.rglob("*") if path.is_file())
        print(f"{made.folder}: {made.encoder} as {made.format}, {made.dimension} dimensions, {size / 1e6:.1f} MB")
        if made.difference is None or made.speed is None:
            print("  not compared with the encoder, because the package that reads it is not installed")
        else:
            measure = "1 - cosine" if made.format == "model2vec" else "difference"
            print(f"  largest {measure} from the encoder's own vectors, on the embedded sample: {made.difference:.0e}")
            print(f"  {made.speed:,.0f} sentences a second here; paranmt_hf.load encodes {made.own_speed:,.0f}")
        if made.alphabet is not None:
            slower = f", {made.own_speed / made.speed:,.0f} times as slow as paranmt_hf.load" if made.speed else ""
            print(f"  for portability{slower}: trigrams by stock components of the tokenizers library")
            print(
                f"  equal for any text: {made.alphabet} characters are known, trigrams with others have no row anyway"
            )
        print(f"  how to load it: {made.folder / 'README.md'}")

    return run
