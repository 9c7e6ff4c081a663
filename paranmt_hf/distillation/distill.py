"""Distill an encoder from a teacher and text, by the steps of `paranmt train` with fixed settings.

The teacher reads each sentence once. Its vectors are kept in the work folder, where the steps find them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq

from paranmt_hf.corpus.reading.pairs import Pairs, PairSelection
from paranmt_hf.corpus.reading.sentences import SentenceSources
from paranmt_hf.corpus.reading.splitting import SentenceSplitter
from paranmt_hf.distillation.config import WORDS, DistillConfig
from paranmt_hf.distillation.distill_steps import MUCH_TEXT, RATES, DistillSteps
from paranmt_hf.distillation.likeness import NEIGHBOURS
from paranmt_hf.distillation.record import Distilled, DistillRecord
from paranmt_hf.errors import InputError, refuse
from paranmt_hf.evaluation.sts_data import is_sample, sets_of
from paranmt_hf.hub.repository import ASSETS, LANGUAGES_OF, locate, plain_name
from paranmt_hf.text.languages import ENGLISH, check_language
from paranmt_hf.training.card import shell_word, trained_values, write_model_card
from paranmt_hf.training.inputs import holds_training, sentences_of
from paranmt_hf.training.record import TrainingRecord
from paranmt_hf.training.teachers import check_teacher, find_teachers
from paranmt_hf.training.text import PairsAndText, split_text
from paranmt_hf.training.train import TEACHER
from paranmt_hf.util.files import Names, listed, source_name, writing
from paranmt_hf.util.records import as_json, made_with
from paranmt_hf.util.run import result_folder, run
from paranmt_hf.util.settings import option_words
from paranmt_hf.util.work import continue_with


def distill(
    teacher: Names = (),
    *,
    out: str | Path,
    text: Names,
    columns: Sequence[str] | None = None,
    translations: Names | None = None,
    split: bool = False,
    language: str | Sequence[str] | None = None,
    data: Names | None = None,
    config: DistillConfig | None = None,
    exclude: str | Path | None = None,
    evaluate: str | Path | None = None,
) -> Distilled:
    """Distill a fast averaging encoder from a large encoder and your own text.

    It learns the teacher's similarities among neighbours (`paranmt train --teacher`), starting from the carried
    encoder or from the teacher's vectors of words (`paranmt encoder vectors`); with pairs, a pass of the margin loss
    follows, and the result is the mean of both. At the end the encoder is compared with its teacher on held-out
    sentences. After an interruption the same command continues, and the result has the same bytes.

    Sizes follow from the text: three million sentences are read in at most 12 epochs; 30,000 sentences get 12 epochs,
    a million 3. An encoder to start from keeps its words and dimensions.

    Args:
        teacher: SentenceTransformer folder or Hub id, or a function, as FILE.py:NAME or MODULE:NAME, that takes a list
            of texts and returns their vectors; the carried encoder of the language, `base` for English, if left
            out. Of several, the mean of their cosines is learned,
            each divided by its standard deviation. The words of an averaging teacher are read alone, because its
            vectors are those of words already.
        out: Folder of the encoder; work in progress is next to it in `<out>.work`.
        text: Sentences: text files with one on a line, files with columns (docs/formats.md), corpora.
        columns: Columns of `text`; by default both sides of pairs, else the one column of text.
        translations: Text files that translate `text` line by line; the teacher reads them in its place, so that its
            language may be another (Reimers & Gurevych 2020, arXiv:2004.09813).
        split: The texts are documents, which are split into sentences by the package sentencex (docs/formats.md).
        language: ISO 639-1 codes of the languages of the text, for the card; `en` if left out, and needed with
            `translations`, or where `text` has a column `translation`.
        data: Pairs for the margin loss, as `paranmt train` takes them.
        config: How it is distilled.
        exclude: Folder with STS sets: leave out text that shares eight words in a row with one, and pairs with their
            sentences.
        evaluate: Evaluate the start and the encoder on the STS sets of a folder, or on `sample` (40 pairs of the
            package).
    """
    spoken = [language] if isinstance(language, str) else list(language or [ENGLISH])
    for code in spoken:
        check_language(code)
    config, own = config or DistillConfig(), _own_encoder(spoken)
    names = listed(teacher) or ([] if own is None else [own])
    refuse(
        not names, f"the package has no encoder for {', '.join(spoken)} of its own; name a teacher", option="teacher"
    )
    foreign = evaluate is not None and is_sample(evaluate) and ENGLISH not in spoken
    refuse(foreign, f"the sentences of `evaluate` sample are English, not {spoken[0]}", option="evaluate")
    given = [*names, config.encoder, *listed(text), *listed(translations), *listed(data)]
    out = result_folder(out, DistillRecord, sources=[Path(name).expanduser() for name in given if name])
    sets = sets_of(evaluate) if evaluate is not None else []
    unwanted = sentences_of(exclude) if exclude is not None else set()
    translated = None if translations is None else listed(translations)
    refuse(split and len(spoken) > 1, "`split` is for text in one language; name one", option="language")
    splitter = SentenceSplitter(spoken[0]) if split else None
    sources = SentenceSources(listed(text), columns, translated, splitter=splitter)
    sentences = PairsAndText(None, sources, unwanted)
    if sentences.translated:
        refuse(not listed(teacher), "name the teacher that reads the translations", option="teacher")
        refuse(language is None, "say which language the text has, such as `language` de", option="language")
        refuse(
            config.words or config.start == WORDS,
            "the start words needs a teacher that reads the text itself; leave out `words`, or read the text without "
            "translations",
            option="words" if config.words else "start",
        )
    pairs = Pairs(listed(data), PairSelection(), unwanted, seed=config.seed) if data is not None else None
    for name in names:
        check_teacher(str(name))
    teachers = find_teachers([str(name) for name in names], config.teacher_prompt)
    identities = [teacher.identity for teacher in teachers]
    named = config
    if config.encoder is not None:
        # The record is published, so it names the encoder without the folders of its path.
        named = replace(config, start=plain_name(config.encoder))
    settings = {
        "teacher": identities,
        "start": locate(config.encoder).revision if config.encoder is not None else None,
        "text": sentences.identity,
        "data": pairs.identity if pairs is not None else None,
        "evaluated": {each.title: each.checksum for each in sets},
        "config": as_json(named),
        "language": spoken,
        "rates": [MUCH_TEXT, *RATES[True], *RATES[False]],
        "own": None if own is None else locate(own).revision,
    }
    inputs = {"teacher": ", ".join(teacher.name for teacher in teachers), "text": ", ".join(sentences.names)}
    files = {"text": sentences.names, "columns": columns, "translations": translations, "data": data}
    flags = [*(["--split"] if split else []), *(["--exclude", "STS"] if exclude is not None else [])]
    words = _command([teacher.name for teacher in teachers], files, spoken if language else [], named, flags)

    def make(work: Path, folder: Path) -> DistillRecord:
        # The sets to evaluate on do not change the encoder, so work for other sets can be continued.
        same = {name: value for name, value in settings.items() if name != "evaluated"}
        continue_with(work, same, keep={TEACHER}, holds=_holds_training)
        if pairs is not None and not any(table.num_rows for table in pairs.batches()):
            raise InputError(f"there are no pairs in `data`: {pairs.left_out}; choose other pairs", option="data")
        others, held_out = split_text(sentences, config.held_out, NEIGHBOURS, config.seed)
        kept = work / "text.parquet"
        with writing(kept):
            pq.write_table(others, kept)
        steps = DistillSteps(work, teachers, [str(name) for name in names], config, kept, others, held_out, own)
        found = steps.run(folder, data, exclude, sets)
        trained = TrainingRecord.read(folder)
        data_settings = trained.settings.data | ({"language": spoken} if language else {})
        trained = replace(
            trained, settings=replace(trained.settings, data=data_settings), inputs=trained.inputs | inputs
        ).write(folder)
        made = made_with("torch", "numpy", "numba", "sentence-transformers")
        record = DistillRecord(settings=settings, command=words, dimension=trained.dimension, **found, **made)
        # The card shows the command of this record, so the record is written first.
        record.write(folder)
        write_model_card(folder, out.name, trained_values(trained, folder))
        return record

    return run(
        out,
        settings,
        DistillRecord,
        make,
        result=Distilled,
        command="distill",
        holds=lambda work: holds_training(work) or _holds_training(work),
        # The vectors of the teacher are useful under other settings too.
        work_identity={"teacher": identities},
    )


def _own_encoder(spoken: Sequence[str]) -> str | None:
    """Return the path of the encoder of this package for languages (ISO 639-1); None if there is none for all."""
    fitting = [name for name, languages in LANGUAGES_OF.items() if {*spoken} <= {*languages}]
    name = "base" if [*spoken] == [ENGLISH] else min(fitting, key=lambda name: len(LANGUAGES_OF[name]), default=None)
    # A path, because a name is ambiguous if the user has a folder of this name.
    return None if name is None else str(ASSETS / name)


def _command(
    teachers: Sequence[str],
    files: Mapping[str, Names | None],
    spoken: Sequence[str],
    config: DistillConfig,
    flags: Sequence[str],
) -> str:
    """Return the command that made an encoder, for its record, with paths shortened to names.

    Args:
        teachers: Names of the teachers.
        files: Values of the options that name files or columns, by option; None for one that was not given.
        spoken: Languages of the text, if they were given.
        config: How the encoder is distilled.
        flags: Other options, as they are typed.
    """
    words = ["paranmt distill", *map(shell_word, teachers)]
    for option, names in files.items():
        if names is not None:
            words += [f"--{option}", *(shell_word(source_name(name)) for name in listed(names))]
    if spoken:
        words += ["--language", *spoken]
    words += map(shell_word, option_words(config))
    return " ".join([*words, *flags, "--out FOLDER"])


def _holds_training(work: Path) -> bool:
    """Whether a work folder holds results that took long, besides the teacher's vectors."""
    kinds = ("**/checkpoint*", "*.work/states-*", "lists")
    return any(path for kind in kinds for path in work.glob(kind))
