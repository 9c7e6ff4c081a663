"""Train a paraphraser on pairs, and write a folder that `AutoModelForSeq2SeqLM` loads.

A paraphraser is an encoder-decoder (ParaNMT-50M, Wieting & Gimpel 2018, section 6), or a syntactically controlled
network of two encoder-decoders (Iyyer, Wieting, Gimpel & Zettlemoyer 2018, arXiv:1804.06059, section 3). The same
trainer trains either kind, one encoder-decoder after the other.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from paranmt_hf.corpus.parsing.template_counts import ParseRecord, parsed_files
from paranmt_hf.corpus.reading.evaluation_sets import read_sentences
from paranmt_hf.corpus.reading.pairs import Pairs, PairSelection
from paranmt_hf.corpus.translation.translator import resolve_device
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import locate, plain_name
from paranmt_hf.paraphrase.config import ParaphraserConfig, ParaphraserTraining
from paranmt_hf.paraphrase.record import ParaphraserRecord, ParaphraserSettings
from paranmt_hf.paraphrase.templates import is_controlled
from paranmt_hf.paraphrase.training_data import TrainingPairs
from paranmt_hf.training.inputs import holds_training
from paranmt_hf.util.files import listed, source_name
from paranmt_hf.util.markers import Group
from paranmt_hf.util.processes import process_count
from paranmt_hf.util.run import Result, result_folder, run
from paranmt_hf.util.wording import counted

if TYPE_CHECKING:
    from paranmt_hf.paraphrase.paraphraser import Paraphraser

logger = logging.getLogger(__name__)


class TrainedParaphraser(Result[ParaphraserRecord]):
    """A trained paraphraser in a folder."""

    def load(self, **settings: Any) -> Paraphraser:  # noqa: ANN401
        """Load the paraphraser; `settings` are arguments of `Paraphraser.from_pretrained`."""
        from paranmt_hf.paraphrase.paraphraser import Paraphraser

        return Paraphraser.from_pretrained(self.folder, **settings)

    def summary(self) -> str:
        """Return lines with the numbers of parameters and pairs, the held-out figures, and warnings."""
        record, state = self.record, "" if self.fresh else " (trained before)"
        lines = [
            f"{self.folder}: {counted(record.parameters, 'parameter')}, {counted(record.pieces, 'piece')}{state}",
            f"  {counted(record.pairs, 'pair')}, {record.held_out:,} held out, {record.too_long:,} too long",
        ]
        parses = record.parses
        if parses is not None:
            lines.append(
                f"  {counted(parses.without_tree, 'pair')} without a tree, {parses.long_trees:,} with a long one, "
                f"{parses.same_template:,} with one template; {parses.templates:,} templates"
            )
            for each in parses.course.measured:
                lines.append(
                    f"  trees, step {each.step:>9,}: held-out perplexity {each.perplexity:.2f}, "
                    f"{each.template_match or 0:.1%} have the template asked for"
                )
        for each in record.course.measured:
            line = f"  step {each.step:>9,}: held-out perplexity {each.perplexity:.2f}"
            if each.bleu is not None:
                line += f", BLEU {each.bleu:.1f}"
            if each.loss_other_tree is not None:
                line += f", loss {each.loss:.3f}, {each.loss_other_tree:.3f} with another tree"
            lines.append(line)
        if parses is not None and parses.control is not None:
            lines.append(f"  {parses.control.describe()}")
        best = record.course.best
        if best is not None:
            lines.append(f"  the weights are those of step {best.step:,}")
            # Recorded models with a perplexity from 16 to 46 write sentences, and one with 82 does not.
            if best.perplexity > 60:
                lines.append(
                    f"  warning: with a perplexity of {best.perplexity:.0f} most outputs are no sentences; train on "
                    "more pairs, or in more epochs"
                )
        return "\n".join(lines)


def train_paraphraser(
    data: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    config: ParaphraserConfig | None = None,
    training: ParaphraserTraining | None = None,
    selection: Annotated[PairSelection | None, Group()] = None,
    exclude: str | Path | Sequence[str | Path] = (),
) -> TrainedParaphraser:
    """Train an encoder-decoder, or a syntactically controlled network, on paraphrase pairs.

    Usable paraphrases take hundreds of thousands of pairs. With fewer pairs, `paranmt build` with a pivot or a
    language model paraphrases text without training (docs/paraphrase.md).

    After an interruption the same call continues from the last checkpoint; on the CPU, the result has the same bytes
    as without the interruption.

    Args:
        data: Corpora, Parquet files with the columns `reference` and `translation`, or datasets on the Hub. A
            controlled network needs results of `paranmt parse`. If there is a column label, only the pairs where it
            is 1 are paraphrases; the others are left out.
        out: Folder of the model; work in progress is in `OUT.work`.
        columns: Columns of `data` with other names: reference=sentence1,translation=sentence2,label=is_duplicate.
        config: Kind and size of the model.
        training: How the model is trained.
        selection: Which pairs are trained on.
        exclude: Folders or files of evaluation sets; pairs with one of their sentences, case and punctuation aside,
            are left out.
    """
    sources = listed(data)
    out = result_folder(out, ParaphraserRecord, sources=sources)
    config, training = config or ParaphraserConfig(), training or ParaphraserTraining()
    _check(config, training)
    base = None if config.base is None else locate(config.base)
    if base is not None and is_controlled(base):
        raise InputError(
            f"base {config.base} is syntactically controlled, so it cannot be trained on sentences alone; name "
            "another encoder-decoder, or train a new network",
            option="base",
        )
    if training.learning_rate is None:
        training = replace(training, learning_rate=1e-3 if base is None else 1e-4)
    excluded = read_sentences(*listed(exclude))
    for file, reason in excluded.unread.items():
        logger.warning(f"not read for `exclude`: {file} ({reason})")
    inputs = {"data": ", ".join(map(source_name, sources))}
    if config.base is not None:
        inputs["base"] = plain_name(config.base)
    if config.model == "controlled" and (parsers := parsers_of(sources)):
        inputs["parser"] = parsers
    pairs = Pairs(
        sources,
        selection or PairSelection(),
        excluded.texts,
        columns=columns,
        seed=training.seed,
        all_columns=config.model == "controlled",
    )
    text = TrainingPairs(pairs, inputs["data"], config, training)
    settings = ParaphraserSettings(
        replace(config, base=None), None if base is None else base.revision, training, pairs.identity
    )

    def make(work: Path, folder: Path) -> ParaphraserRecord:
        from paranmt_hf.paraphrase.fit import make_paraphraser

        return make_paraphraser(settings, inputs, text, base, work, folder, out.name)

    def holds(work: Path) -> bool:
        return holds_training(work) or any(work.glob("trained-*.safetensors"))

    return run(
        out, settings, ParaphraserRecord, make, result=TrainedParaphraser, command="paraphrase train", holds=holds
    )


def _check(config: ParaphraserConfig, training: ParaphraserTraining) -> None:
    """Raise `InputError` for settings that cannot be trained with, before the data are read."""
    from paranmt_hf.training.reporting import reporting_callbacks

    if config.model == "controlled" and training.noise:
        raise InputError(
            f"noise must be 0 for a controlled network, because noisy input has no tree, was {training.noise:g}",
            option="noise",
        )
    resolve_device(training.device)
    if training.report_to:
        reporting_callbacks(training.report_to, Path())
    if (count := process_count()) > 1:
        raise InputError(f"paraphrasers are trained by one process, and {count} were started; start one")


def parsers_of(sources: Sequence[str | Path]) -> str | None:
    """Check the results of `paranmt parse` among some sources, and return the names of their parsers.

    Returns None if a source does not name its parser.
    """
    names: list[str] = []
    unnamed = False
    for source in sources:
        folder = Path(source).expanduser()
        if (folder / ParseRecord.FILE).is_file():
            parsed_files(folder)
            names.append(ParseRecord.read(folder).parser)
        else:
            unnamed = True
    return None if unnamed else ", ".join(dict.fromkeys(names))
