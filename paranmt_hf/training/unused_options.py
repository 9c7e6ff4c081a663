"""Settings that would change nothing in the training run they are given for: refused, and not ignored."""

from __future__ import annotations

from collections.abc import Iterable

from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.encoders.families import FAMILIES, users_of
from paranmt_hf.errors import InputError
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.util.settings import is_given

# Names of settings, whether they change something, and what they are for.
Rule = tuple[tuple[str, ...], bool, str]


def refuse_unused(
    encoder: EncoderConfig, config: TrainConfig, *, development: bool, teacher_cache: bool, processes: int
) -> None:
    """Refuse what was given, which is what differs from its default, and changes nothing.

    Args:
        encoder: The encoder; what a start decides is filled in.
        config: How it is trained.
        development: Whether there is a development set.
        teacher_cache: Whether a folder for the teacher's vectors is named.
        processes: Number of processes that train.

    Raises:
        InputError: A setting would be ignored; with what it is for.
    """
    refuse_unused_encoder(encoder)
    _refuse(config, _train_rules(config, encoder, processes), encoder)
    for name, asked, matters, purpose in (
        ("teacher_cache", teacher_cache, config.teacher is not None, "the vectors of a --teacher"),
        ("evaluations", is_given(config, "evaluations"), development, "a --development set"),
        ("gather_negatives", config.gather_negatives, processes > 1, "several processes (accelerate launch)"),
    ):
        if asked and not matters:
            raise _unused(name, purpose, encoder)


def refuse_unused_encoder(encoder: EncoderConfig) -> None:
    """Refuse what was given of an encoder's settings and changes nothing; see `refuse_unused`."""
    _refuse(encoder, _encoder_rules(encoder), encoder)


def _refuse(settings: EncoderConfig | TrainConfig, rules: list[Rule], encoder: EncoderConfig) -> None:
    for names, matters, purpose in rules:
        given = [name for name in names if not matters and is_given(settings, name)]
        if given:
            raise _unused(given[0], purpose, encoder)


def _encoder_rules(encoder: EncoderConfig) -> list[Rule]:
    encoder_parts = set(encoder.parts)
    own = dict.fromkeys(setting for family in FAMILIES.values() for setting in family.settings)
    of_families: list[Rule] = [
        (
            (setting,),
            not encoder_parts.isdisjoint(users_of(setting)),
            f"the models {_named(users_of(setting))}",
        )
        for setting in own
    ]
    word, trigram = "word" in encoder.kinds, "trigram" in encoder.kinds
    readers = _named(family.name for family in FAMILIES.values() if family.units == "word")
    random = encoder.vectors is None or trigram
    alone = encoder.parts == ["trigram"] and encoder.trigram_dimension is not None
    return [
        *of_families,
        (("words", "vectors"), word, f"models that read words ({readers})"),
        (("init_std",), random, "random embeddings; beside --vectors those of other words are spread out as these"),
        (("dimension",), not alone, "what stands beside the TRIGRAM of --trigram-dimension"),
    ]


def _train_rules(config: TrainConfig, encoder: EncoderConfig, processes: int) -> list[Rule]:
    ordered = any(family.ordered for family in encoder.families)
    dense = any(family.dense for family in encoder.families)
    trainer = dense or config.device == "cuda"
    shared = processes > 1 and config.device == "cuda" and not dense and not config.needs_trainer
    # Without scrambling averages get what is asked for; and a teacher of theirs may run in bfloat16.
    precise = trainer or (config.teacher is not None and config.precision == "bf16")
    listwise = config.teacher is not None and config.teacher_loss == "listwise"
    with_weights = _named(family.name for family in FAMILIES.values() if family.dense)
    in_order = _named(family.name for family in FAMILIES.values() if family.ordered)
    by_trainer = f"models that run through the trainer ({with_weights}, or --device cuda)"
    by_trainer_alone = (
        f"models that run through the trainer ({with_weights}, or --device cuda with another --precision)"
    )
    averages = "averaging models (WORD, TRIGRAM and their combinations) on the CPU"
    reads_words = "word" in encoder.kinds
    beside_words = f"models that train something beside their word embeddings ({with_weights}, or a TRIGRAM)"
    return [
        (("scrambling",), ordered or config.scrambling == 0, f"models that read words in order ({in_order})"),
        (("freeze_words",), reads_words and (dense or "trigram" in encoder.kinds), beside_words),
        (("lambda_w",), not (config.freeze_words and encoder.kinds == ["word"]), "embeddings that are not frozen"),
        (("regularise_to",), dense and config.lambda_c > 0, "what --lambda-c pulls compositional parameters towards"),
        (("lambda_c",), dense, f"compositional parameters, which only some models have ({with_weights})"),
        (("report_to",), trainer, by_trainer),
        (("gather_negatives",), dense or config.needs_trainer, by_trainer_alone),
        (
            ("mine_over",),
            shared,
            "averaging models trained by several processes (torchrun) with --device cuda, float32",
        ),
        (("precision",), precise, f"{by_trainer}; bf16 also for a --teacher"),
        (
            ("neighbours",),
            not dense and not config.needs_trainer,
            "averaging models (WORD, TRIGRAM and their combinations), trained in float32",
        ),
        (("mining_precision", "error_negatives"), not trainer, averages),
        (
            ("mining_precision", "mine_over"),
            config.negatives != "rand",
            "negatives that are mined: --negatives max or mix",
        ),
        (("teacher_weight", "teacher_loss"), config.teacher is not None, "the similarities of a --teacher"),
        (("temperature",), listwise, "the --teacher-loss listwise of a --teacher"),
        (
            (
                "margin",
                "negatives",
                "one_sided",
                "gather_negatives",
                "mine_over",
                "mining_precision",
                "error_negatives",
            ),
            config.margin_weight > 0,
            "the margin loss, which is left out with a --teacher at --teacher-weight 1.0",
        ),
    ]


def _named(names: Iterable[str]) -> str:
    return ", ".join(names)


def _unused(name: str, purpose: str, encoder: EncoderConfig) -> InputError:
    flag = f"--{name.replace('_', '-')}"
    return InputError(
        f"{flag} would change nothing for this {encoder.model!r} model: it is for {purpose}; leave it out"
    )
