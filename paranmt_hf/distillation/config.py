"""The settings of a distillation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from paranmt_hf.errors import refuse
from paranmt_hf.util.markers import Advanced, AlsoWrites, Count, Range, RunOnly, Seed
from paranmt_hf.util.settings import Settings

WORDS, TRIGRAMS = "words", "trigrams"  # Values of `start` that do not name an encoder


@dataclass(frozen=True)
class DistillConfig(Settings):
    """How an encoder is distilled.

    Attributes:
        start: What training starts from: an averaging encoder (base, a folder or a Hub id); words, the teacher's
            states of the words of the text; or trigrams, random vectors of its character trigrams. If not given,
            trigrams for text with translations; else the carried encoder of the language (`base` for English) if it
            knows most words of the text, else words.
        words: Maximum number of words of the start words, the most frequent ones (45,000 if not given).
        dimension: Dimensions of the starts words and trigrams; if not given, those of the teacher, at most 384.
        epochs: Passes over the text; if not given, those of three million sentences, at least 1 and at most 12.
        held_out: Sentences on which the result is compared with the teacher, and which are not trained on; at most a
            tenth of the text.
        seed: Decides which sentences are held out, and the order of the others.
        teacher_prompt: Text in front of each sentence that a teacher reads, such as "query: ", one for each teacher;
            the default prompt of a model if not given.
        teacher_cache: Folder that keeps the teacher's vectors for other runs; the work folder if not given.
    """

    start: str | None = None
    words: Count | None = None
    dimension: Count | None = None
    epochs: Count | None = None
    held_out: Annotated[int, Range(at_least=0), Advanced] = 2000
    seed: Seed = 1
    teacher_prompt: Annotated[tuple[str, ...] | None, Advanced] = None
    teacher_cache: Annotated[str | None, Advanced, RunOnly, AlsoWrites] = None

    def __post_init__(self) -> None:
        if isinstance(self.teacher_prompt, str):
            object.__setattr__(self, "teacher_prompt", (self.teacher_prompt,))
        super().__post_init__()
        refuse(
            self.encoder is not None and (self.words or self.dimension),
            f"{self.start} has its own words and dimensions; leave out `words` and `dimension`, or choose another "
            "`start`",
            option="start",
        )
        wrong = self.words and self.start == TRIGRAMS
        refuse(wrong, "`words` is for the start words, not for trigrams; leave it out", option="words")

    @property
    def encoder(self) -> str | None:
        """The encoder that training starts from; None if `start` does not name one."""
        return None if self.start in (WORDS, TRIGRAMS) else self.start
