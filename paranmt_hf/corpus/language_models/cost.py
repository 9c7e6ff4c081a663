"""What a corpus will cost, before the first request."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.language_models.config import LanguageModelConfig
from paranmt_hf.corpus.language_models.prompts import Task, fill

# Bytes of UTF-8 text for each token, about, whatever the model: four of English, two of most other languages, three of
# Chinese. And the tokens that a chat template puts around a request.
BYTES_PER_TOKEN, TEMPLATE_TOKENS = 3.0, 10


def tokens_of(text: str) -> int:
    """Estimate the tokens of a text."""
    return 1 + int(len(text.encode("utf8", "surrogatepass")) / BYTES_PER_TOKEN)


@dataclass(frozen=True)
class Cost:
    """What is to be asked, by an estimate.

    Attributes:
        requests: Number of requests, those for equal sentences included.
        input_tokens: Tokens of all requests.
        output_tokens: Tokens of all answers.
        price: In the currency of the prices; None where none were given.
    """

    requests: int
    input_tokens: int
    output_tokens: int
    price: float | None

    def describe(self) -> str:
        """Say it in one line."""
        line = (
            f"{self.requests:,} requests, about {self.input_tokens:,} tokens of requests and "
            f"{self.output_tokens:,} of answers"
        )
        return line if self.price is None else f"{line}, which cost about {money(self.price)}"


def money(amount: float) -> str:
    """Write an amount: with four digits behind the point where it is less than 0.1."""
    return f"{amount:,.2f}" if amount >= 0.1 else f"{amount:.4f}"


def price(config: LanguageModelConfig, input_tokens: int, output_tokens: int) -> float | None:
    """Price of tokens; None where the settings name no prices."""
    if config.price_input is None or config.price_output is None:
        return None
    return (input_tokens * config.price_input + output_tokens * config.price_output) / 1e6


def estimate(config: LanguageModelConfig, task: Task, tables: Iterable[pa.Table | pa.RecordBatch]) -> Cost:
    """Estimate what a corpus costs.

    Args:
        config: The prompt and the prices.
        task: What is asked; a paraphrase is about as long as its sentence, a translation as the reference.
        tables: Columns `reference`, and `source` for translations.
    """
    rows, asked, answered = 0, 0, 0
    for table in tables:
        rows += table.num_rows
        asked += _bytes(table.column("source" if task == "translate" else "reference"))
        answered += _bytes(table.column("reference"))
    around = TEMPLATE_TOKENS + tokens_of(fill(config.template(task), ""))
    input_tokens, output_tokens = rows * around + int(asked / BYTES_PER_TOKEN), int(answered / BYTES_PER_TOKEN)
    return Cost(rows, input_tokens, output_tokens, price(config, input_tokens, output_tokens))


def _bytes(column: pa.Array | pa.ChunkedArray) -> int:
    return int(pc.sum(pc.cast(pc.binary_length(column), pa.int64())).as_py() or 0)
