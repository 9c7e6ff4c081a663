"""An averaging encoder before torch is there: what `load` gives until more than vectors is asked of it."""

from __future__ import annotations

import copy
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from paranmt_hf.encoders.ngrams import blank_tokens
from paranmt_hf.encoders.tables import Tables
from paranmt_hf.encoders.usual_calls import is_plain, materialised
from paranmt_hf.encoders.vocabulary import lookup
from paranmt_hf.hub.repository import Model
from paranmt_hf.text.tokens import Bags, TokenTable, cut_chunk

if TYPE_CHECKING:
    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder

# Chunks of text to remember; sentences that are encoded at once; rows that are added up at once.
CHUNKS, BATCH, PIECE = 120_000, 8192, 4096
# So many sentences, in calls of more than a few, take longer here than torch takes to start and to encode them. Calls
# of a few are faster here, however many there are.
MANY, FEW = 200_000, 32
# torch's smallest divisor when it normalises.
SMALLEST = 1e-12


class LightEncoder:
    """Encodes with numpy alone, and becomes a `SentenceEncoder` as soon as anything else is asked of it.

    Usual calls of `encode`, `encode_query` and `encode_document` need neither torch nor sentence-transformers, whose
    imports take seconds and hundreds of megabytes; a copy is light too, also one that pickle makes for another
    process. For any other call or attribute, and for many sentences, the object becomes a `SentenceEncoder` of the
    same rows: its class is changed in place, so whoever holds it holds a `SentenceTransformer`. `encoder.eval()` makes
    that happen at once.

    Args:
        tables: The encoder's rows.
        source: Where they were found.
    """

    def __init__(self, tables: Tables, source: Model) -> None:
        vars(self)[_STATE] = _State(tables, source)

    def encode(self, inputs: Any = None, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Encode sentences; arguments and result as `SentenceEncoder.encode`, within 1e-6."""
        texts, state = materialised(inputs), vars(self).get(_STATE)
        if args or state is None or not state.serves(texts, kwargs):
            return become(self).encode(inputs, *args, **kwargs)
        return state.encode(texts, **kwargs)

    def encode_query(self, inputs: Any = None, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Encode queries: `encode` with the prompt of that name; see `SentenceTransformer.encode_query`."""
        return self._encode_with("query", inputs, args, kwargs)

    def encode_document(self, inputs: Any = None, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Encode documents: `encode` with the prompt of that name; see `SentenceTransformer.encode_document`."""
        return self._encode_with("document", inputs, args, kwargs)

    def _encode_with(self, task: str, inputs: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
        if args or inputs is None or "task" in kwargs:
            given = () if inputs is None else (inputs, *args)
            return getattr(become(self), f"encode_{task}")(*given, **kwargs)
        if kwargs.get("prompt") is None and kwargs.get("prompt_name") is None:
            kwargs["prompt_name"] = task
        return self.encode(inputs, task=task, **kwargs)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """Its class for `isinstance`, which nobody can ask for by a class of torch's as long as there is no torch."""
        if "torch" not in sys.modules:
            return LightEncoder
        from paranmt_hf.encoders.sentence_encoder import SentenceEncoder

        return SentenceEncoder

    def __copy__(self) -> SentenceEncoder:
        return self._copied(lambda tables: tables, copy.copy)

    def __deepcopy__(self, memo: dict[int, Any]) -> SentenceEncoder:
        return self._copied(lambda tables: copy.deepcopy(tables, memo), lambda full: copy.deepcopy(full, memo))

    def _copied(
        self, copied: Callable[[Tables], Tables], copied_whole: Callable[[SentenceEncoder], SentenceEncoder]
    ) -> SentenceEncoder:
        """Copy what it is made of, or, where it is no light one any more, the encoder that it is."""
        state = vars(self).get(_STATE)
        if state is None:
            return copied_whole(become(self))
        return cast("SentenceEncoder", LightEncoder(copied(state.tables), state.source))

    def __reduce_ex__(self, protocol: Any) -> Any:  # noqa: ANN401
        state = vars(self).get(_STATE)
        return become(self).__reduce_ex__(protocol) if state is None else (LightEncoder, (state.tables, state.source))

    def __reduce__(self) -> Any:  # noqa: ANN401
        return self.__reduce_ex__(2)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(become(self), name)


_STATE = "_light"
_LOCK = threading.RLock()
# Python looks these up in an object's class, past `__getattr__`. Not `__hash__`: it stays the same object.
_SPECIAL = (
    *("__call__", "__repr__", "__dir__", "__setattr__", "__delattr__", "__len__", "__iter__"),
    *("__getitem__", "__setitem__", "__delitem__", "__add__", "__iadd__", "__mul__", "__rmul__", "__imul__"),
    "__getstate__",
)


def become(light: LightEncoder) -> SentenceEncoder:
    """Make a `SentenceEncoder` of an object, in place; of one that is one already, nothing."""
    from paranmt_hf.encoders.module_loading import encoder_of
    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder

    with _LOCK:
        own = vars(light)
        if _STATE in own:
            made = encoder_of(own[_STATE].tables, own[_STATE].source)
            # First what it holds and then its class, so that other threads always see one or the other.
            own.update(vars(made))
            vars(object)["__class__"].__set__(light, SentenceEncoder)
            del own[_STATE]
            # Holds the model that it is the card of.
            light.model_card_data.register_model(light)
    return light  # type: ignore[return-value]


def _forwarded(name: str) -> Callable[..., Any]:
    def method(self: LightEncoder, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        return getattr(become(self), name)(*args, **kwargs)

    method.__name__ = name
    return method


for _name in _SPECIAL:
    setattr(LightEncoder, _name, _forwarded(_name))


class _State:
    """What a light encoder is made of, for any number of threads."""

    def __init__(self, tables: Tables, source: Model) -> None:
        self.tables, self.source = tables, source
        # Every prompt of a SentenceTransformer has these names.
        given = tables.settings.get("prompts", {})
        self._prompts = {name: prompt or "" for name, prompt in {"query": "", "document": "", **given}.items()}
        self._free: list[Averages] = []
        # Sentences so far, in calls of more than a few.
        self._read = 0

    def serves(self, texts: Any, options: dict[str, Any]) -> bool:  # noqa: ANN401
        """Tell whether a call can be answered here."""
        prompt, name = options.get("prompt"), options.get("prompt_name")
        return (
            is_plain(texts, options)
            and (isinstance(texts, str) or len(texts) <= FEW or self._read + len(texts) <= MANY)
            and bool(options.get("convert_to_numpy", True))
            and not options.get("convert_to_tensor")
            and (name is None or (prompt is None and name in self._prompts))
        )

    def encode(
        self,
        texts: str | list[str],
        *,
        prompt: str | None = None,
        prompt_name: str | None = None,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        **unused: Any,
    ) -> np.ndarray:
        """Encode sentences into vectors [sentence, dimension], float32; a single one into [dimension]."""
        sentences = [texts] if isinstance(texts, str) else texts
        if prompt_name is not None:
            prompt = self._prompts[prompt_name]
        self._read += len(sentences) if len(sentences) > FEW else 0
        cut = truncate_dim if truncate_dim is not None else self.tables.settings.get("truncate_dim")
        vectors = np.empty((len(sentences), len(range(self.tables.dimension)[:cut])), np.float32)
        with self._lend() as averages:
            for start in range(0, len(sentences), BATCH):
                batch = sentences[start : start + BATCH]
                if prompt:
                    batch = [prompt + sentence for sentence in batch]
                vectors[start : start + BATCH] = averages.encode(batch)[:, : vectors.shape[1]]
        if normalize_embeddings:
            vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), SMALLEST)
        return vectors[0] if isinstance(texts, str) else vectors

    @contextmanager
    def _lend(self) -> Iterator[Averages]:
        """Lend averages that no other thread uses meanwhile."""
        try:
            averages = self._free.pop()
        except IndexError:
            averages = Averages(self.tables)
        yield averages
        # Those that were interrupted may remember half of something, and are not lent again.
        self._free.append(averages)


class Averages:
    """Encodes columns of sentences with tables. Not to be shared between threads.

    Args:
        tables: The encoder's rows.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        # All parts of a combination cut text in one way.
        self._cut = cut_chunk if tables.parts[0].cut == "words" else blank_tokens
        self._forget()
        self._lookups = [lookup(part.vocabulary) for part in tables.parts]

    def encode(self, sentences: list[str]) -> np.ndarray:
        """Encode sentences into vectors [sentence, dimension], float32."""
        return self.encode_tokens(self._tokenised(sentences))

    def encode_tokens(self, table: TokenTable) -> np.ndarray:
        """Encode tokenised sentences into vectors [sentence, dimension], float32."""
        parts = zip(self._tables.parts, self._lookups, strict=True)
        vectors = [mean_rows(part.rows, look.bags(table)) for part, look in parts]
        if self._tables.mode != "add":
            return np.concatenate(vectors, axis=1)
        for further in vectors[1:]:
            vectors[0] += further
        return vectors[0]

    def _forget(self) -> None:
        self._ids: dict[str, int] = {}
        self._tokens: list[str] = []
        self._chunks: dict[str, list[int]] = {}

    def _tokenised(self, sentences: list[str]) -> TokenTable:
        """Cut sentences into tokens, as `WordTokenizer` does for columns of Arrow's, which imports pandas."""
        if len(self._chunks) > CHUNKS:
            self._forget()
        flat: list[int] = []
        offsets = [0]
        for sentence in sentences:
            for chunk in sentence.split(" "):
                ids = self._chunks.get(chunk)
                flat += self._learn(chunk) if ids is None else ids
            offsets.append(len(flat))
        return TokenTable(np.array(flat, np.int32), np.array(offsets, np.int64), self._tokens)

    def _learn(self, chunk: str) -> list[int]:
        """Remember which tokens a chunk between blanks gives."""
        tokens = self._cut(chunk)
        for token in tokens:
            if token not in self._ids:
                self._ids[token] = len(self._tokens)
                self._tokens.append(token)
        found = self._chunks[chunk] = [self._ids[token] for token in tokens]
        return found


def mean_rows(rows: np.ndarray, bags: Bags) -> np.ndarray:
    """Average the rows of each bag.

    Args:
        rows: Vectors [row, dimension], float32.
        bags: Rows of each sentence.

    Returns:
        Means [sentence, dimension], float32; zeros for an empty bag.
    """
    means = np.zeros((len(bags), rows.shape[1]), np.float32)
    for number, (start, stop) in enumerate(pairwise(bags.offsets.tolist())):
        for begin in range(start, stop, PIECE):
            means[number] += np.add.reduce(rows.take(bags.rows[begin : min(begin + PIECE, stop)], axis=0), axis=0)
    means /= np.maximum(np.diff(bags.offsets), 1).astype(np.float32)[:, None]
    return means
