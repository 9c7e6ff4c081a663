"""The training loop of Sent2Vec: passes over the text, threads, and checkpoints."""

from __future__ import annotations

import logging
import math
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.sent2vec.config import Sent2VecConfig
from paranmt_hf.sent2vec.corpus import BLOCK, Block, TextOnDisk
from paranmt_hf.sent2vec.kernels import Sampling, Tables, Worker, train_sentences, train_windows
from paranmt_hf.sent2vec.record import Sent2VecHistory
from paranmt_hf.training.checkpoint import CheckpointFile
from paranmt_hf.util.machine import refuse_beyond_memory
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import as_json, from_json
from paranmt_hf.util.wording import counted

logger = logging.getLogger(__name__)


def negative_table(counts: np.ndarray, generator: np.random.Generator, size: int | None = None) -> np.ndarray:
    """Create the table of negatives: words [entry], int32, in the order in which they are used.

    Each word has a share by the root of its count, rounded up, so that none is missing (arXiv:1703.02507, section 2.1
    and footnote 2).

    Args:
        counts: Count of each word [word].
        generator: Shuffles the table.
        size: Approximate number of entries; chosen by the counts if left out.
    """
    if size is None:
        # The authors' program has 10 million entries (`NEGATIVE_TABLE_SIZE` in its `model.h`). Small corpora need
        # fewer.
        size = min(10_000_000, 100 * int(counts.sum()))
    roots = np.sqrt(counts)
    entries = np.ceil(roots * (size / roots.sum())).astype(np.int64)
    table = np.repeat(np.arange(len(counts), dtype=np.int32), entries)
    generator.shuffle(table)
    return table


class Loop:
    """Trains the tables of Sent2Vec on a text, with checkpoints.

    Args:
        text: The text.
        config: The settings, resolved.
        path: File of the checkpoint; if it exists, training continues from it.
    """

    def __init__(self, text: TextOnDisk, config: Sent2VecConfig, path: Path) -> None:
        self.text, self.config, self._checkpoint = text, config, CheckpointFile(path)
        self.course = Sent2VecHistory()
        self._epoch = self._sentence = 0
        rows, width = self._rows + len(text.words.names) + 1, config.dimension or 0
        refuse_beyond_memory(
            4 * rows * width,
            f"{rows:,} rows of {width:,} numbers take",
            "lower `dimension` or `buckets`, or raise `min_count`",
        )
        seeds = np.random.SeedSequence(config.seed).spawn(3)
        initial, order, draws = (np.random.default_rng(seed) for seed in seeds)
        counts = np.append(text.words.counts, text.words.lines)
        table, keep = negative_table(counts, order), text.words.keep(config)
        # If hardly any word is predicted, all vectors stay random.
        expected = (config.epochs or 1) * float(text.words.counts @ np.minimum(keep, 1))
        if expected < 1:
            threshold = config.threshold_for(text.words.tokens)
            raise InputError(
                f"with `threshold` {threshold:g} {expected:.2g} words of this text would be "
                f"predicted in {config.epochs} passes; leave out `threshold` and `preset`, then it is chosen for "
                "this text"
            )
        self._sampling = Sampling(keep, table, config.negatives, config.dropped_ngrams or 0, config.l1)
        random = draws.integers(2**64, size=config.threads, dtype=np.uint64)
        # Threads begin in the table of negatives far apart from one another.
        cursors = np.arange(config.threads) * len(table) // config.threads
        self._workers = [
            Worker(random[index : index + 1], cursors[index : index + 1], np.zeros(self._rows, np.int32))
            for index in range(config.threads)
        ]
        self._tables = self._restore() or self._begin(initial)

    @property
    def _rows(self) -> int:
        """Number of rows of the context: those of words and of n-gram buckets."""
        return len(self.text.words.names) + len(self.text.hashes)

    @property
    def inputs(self) -> np.ndarray:
        """Rows of the context [row, dimension], float32: the placeholder, the words, the n-grams."""
        return self._tables["inputs"]

    @property
    def outputs(self) -> np.ndarray:
        """Rows of targets and negatives [word, dimension], float32; the last one is the end of a line."""
        return self._tables["outputs"]

    def _begin(self, generator: np.random.Generator) -> dict[str, np.ndarray]:
        """Create the initial tables: inputs between -1/dimension and 1/dimension, outputs of zeros."""
        width = self.config.dimension or 0
        inputs = np.empty((self._rows, width), np.float32)
        for start in range(0, len(inputs), 100_000):
            part = inputs[start : start + 100_000]
            generator.random(out=part, dtype=np.float32)
            part *= np.float32(2 / width)
            part -= np.float32(1 / width)
        outputs = np.zeros((len(self.text.words.names) + 1, width), np.float32)
        return {"inputs": inputs, "outputs": outputs}

    def run(self) -> Sent2VecHistory:
        """Train to the end, from the last checkpoint if there is one, and return the course of the run."""
        epochs = self.config.epochs or 1
        model, total = self._model(), epochs * self.text.known
        with (
            ThreadPoolExecutor(self.config.threads) as pool,
            Progress("train", total, done=self.course.words, unit="words") as progress,
        ):
            progress.advance_to(self.course.words)
            while self._epoch < epochs:
                for block in self.text.blocks(self._sentence, BLOCK * self.config.threads):
                    started = time.monotonic()
                    loss = self._train(block, model, pool, total)
                    self._sentence += len(block.bounds) - 1
                    self.course.seconds += time.monotonic() - started
                    progress.advance_to(self.course.words, f"loss {loss:.3f}")
                    if self._checkpoint.is_due:
                        self._save()
                self._epoch, self._sentence = self._epoch + 1, 0
        # If the encoder cannot be written now, nothing of this is lost.
        self._save()
        return self.course

    def _model(self) -> Tables:
        """Return the tables and settings that the compiled loops need."""
        hashes, first = self.text.hashes, len(self.text.words.names)
        row_of = np.zeros(self.config.buckets if self.config.ngrams > 1 else 1, np.int32)
        row_of[hashes] = np.arange(first, first + len(hashes))
        context = self.config.context
        return Tables(
            self.inputs,
            self.outputs,
            self.config.ngrams,
            row_of,
            placeholder=context in ("placeholder", "program"),
            placeholder_ngrams=context == "program",
            # The number of words on either side of a target is drawn from 1 to this number.
            window=5 if context == "cbow" else 0,
        )

    def _train(self, block: Block, model: Tables, pool: ThreadPoolExecutor, total: int) -> float:
        """Train on a block of sentences, and return the mean loss of its targets.

        Args:
            block: The sentences.
            model: The tables.
            pool: The threads.
            total: Number of words that the whole run reads, for the learning rate.
        """
        bounds, config = block.bounds, self.config
        done = self._epoch * self.text.known + block.first
        rates = config.learning_rate * (1 - (done + bounds[:-1]) / total)
        # Cut the block so that each thread gets about the same number of words.
        cuts = np.searchsorted(bounds, np.arange(1, config.threads) * bounds[-1] // config.threads)
        cuts = np.concatenate([[0], cuts, [len(bounds) - 1]])
        train = train_windows if model.window else train_sentences
        parts = [
            pool.submit(train, block.words, bounds[low : high + 1], rates[low:high], model, self._sampling, worker)
            for low, high, worker in zip(cuts[:-1], cuts[1:], self._workers, strict=True)
        ]
        results = [part.result() for part in parts]
        loss, targets = sum(loss for loss, _ in results), sum(targets for _, targets in results)
        if not math.isfinite(loss):
            # The checkpoint is of no use, and would keep a run with another rate out of the work folder.
            self._checkpoint.path.unlink(missing_ok=True)
            raise InputError(
                f"the loss is {loss} after {counted(self.course.words, 'word')}: the weights grew beyond all bounds; "
                "lower `learning_rate`"
            )
        self.course.add(int(bounds[-1]), targets, loss)
        return loss / max(targets, 1)

    def _save(self) -> None:
        """Write a checkpoint: the tables, and the state of the run and of each thread."""
        state = {
            "epoch": self._epoch,
            "sentence": self._sentence,
            "random": [int(worker.random[0]) for worker in self._workers],
            "cursor": [int(worker.cursor[0]) for worker in self._workers],
            "course": as_json(self.course),
        }
        self._checkpoint.write(self._tables, state)

    def _restore(self) -> dict[str, np.ndarray] | None:
        """Read the tables of the checkpoint, and continue from its state; None if there is none."""
        found = self._checkpoint.read("np")
        if found is None:
            return None
        tables, state = found
        width = self.config.dimension
        shapes = {"inputs": (self._rows, width), "outputs": (len(self.text.words.names) + 1, width)}
        # The compiled loops do not check bounds, so tables of other sizes would corrupt memory.
        if {name: table.shape for name, table in tables.items()} != shapes:
            raise InputError(
                f"{self._checkpoint.path} is of other text; remove it and run again, from the start",
                path=self._checkpoint.path,
            )
        self._epoch, self._sentence = state["epoch"], state["sentence"]
        for worker, random, cursor in zip(self._workers, state["random"], state["cursor"], strict=True):
            worker.random[0], worker.cursor[0] = random, cursor
        self.course = from_json(Sent2VecHistory, state["course"], self._checkpoint.path)
        logger.info(f"continuing after {counted(self.course.words, 'word')}")
        return tables
