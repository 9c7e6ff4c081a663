"""Load encoders without `trust_remote_code`: no code of the model runs.

`load` makes modules of torch; `read_average_tables` reads the tables of averaging encoders without importing torch.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from paranmt_hf.encoders.model_folder import AGAIN, MODULES, PREFIX, ModuleEntry, model_settings, module_list
from paranmt_hf.encoders.modules.paranmt_tables import (
    CONFIG_FILE,
    HASHES,
    NOT_FINITE,
    PARTS_FILE,
    VOCABULARY_FILE,
    WEIGHT,
    WEIGHTS_FILE,
    NgramTable,
    load_json,
    map_stored,
    read_parts,
)
from paranmt_hf.encoders.packed_units import PackedUnits
from paranmt_hf.encoders.vocabulary import AverageTable, Vocabulary
from paranmt_hf.encoders.widened_rows import table_rows
from paranmt_hf.errors import InputError, refuse
from paranmt_hf.hub.repository import Model, locate
from paranmt_hf.text.definitions import vocabulary_of
from paranmt_hf.util.imports import uncollected
from paranmt_hf.util.optional import available

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from torch import Tensor, nn

    from paranmt_hf.encoders.composition import Composition
    from paranmt_hf.encoders.config import UnitKind
    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder

# Kind of units of each averaging module, by the name of its class.
AVERAGES: dict[str, UnitKind] = {"WordEmbedding": "word", "TrigramEmbedding": "trigram", "NgramEmbedding": "ngram"}
TOKENIZER_FILE = "tokenizer.json"


def load(
    name: str | Path | Model | None = None, *, revision: str | None = None, device: str | None = None
) -> SentenceEncoder:
    """Load any of our encoders, or another model of stock sentence-transformers modules.

    No code of the model runs: a module class that is neither of `sentence_transformers` nor of this package is
    rejected, and so are weights that are not finite. `StaticEncoder` reads averaging encoders without torch.

    Args:
        name: Folder, Hub id, or what `locate` found. The package carries `small` (or None), which is English, `base`,
            the larger one, `de`, `fr` and `es`, and `multilingual`.
        revision: Branch, tag or commit on the Hub.
        device: Torch device; if left out the best one that is available, the CPU for averaging encoders.
    """
    refuse(
        not available("sentence_transformers"),
        "`load` needs the package 'sentence_transformers', which is not installed: `pip install paranmt-hf` installs "
        "all; `StaticEncoder.from_pretrained` reads averages without it",
    )
    with uncollected():
        from sentence_transformers.sentence_transformer.modules import StaticEmbedding
        from sentence_transformers.util import get_device_name

        from paranmt_hf.encoders.composition import composition_of
        from paranmt_hf.encoders.saving import from_stock
        from paranmt_hf.encoders.sentence_encoder import SentenceEncoder

    model = locate(name, revision)
    settings = model_settings(model)
    entries = module_list(model)
    classes = [_class_of(entry, model) for entry in entries]
    modules = [_load_module(model, entry, kind) for entry, kind in zip(entries, classes, strict=True)]
    with _readable(model):
        converted = from_stock(modules)
        composition = composition_of(converted)
        if composition is not None:
            # Otherwise the stock modules stay: they do not make one of our encoders.
            modules = converted
        if composition is not None and composition.is_bag and device is None:
            device = "cpu"
        for module in modules:
            if isinstance(module, StaticEmbedding):
                # In float16, normalising the zeros of a text without tokens would give NaN.
                module.float()
        encoder = SentenceEncoder(modules=modules, device="cpu", **settings)
        encoder.eval()
        if composition is not None:
            _check_tables(composition)
            # Encode a text, because intact files of different models may be mixed up. No vocabulary has this letter of
            # Linear B.
            encoder.encode("\U00010000", show_progress_bar=False)
    encoder.remember_source(model)
    # Outside of the block, whose errors are reported as errors of the model: here the device may be missing or full.
    return encoder.to(device or get_device_name())


@contextmanager
def _readable(model: Model, entry: ModuleEntry | None = None) -> Iterator[None]:
    """Report any error inside a `with` block as an InputError about the model, or about one of its modules.

    Args:
        model: The model whose files are read.
        entry: The module whose files are read; None for the model as a whole.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # tokenizers raises plain Exceptions
        what = "its files do not belong together"
        if entry is not None:
            what = f"cannot read its module {entry.reference} from {model.folder / entry.folder}"
        reason = str(error).strip().split("\n")[0]
        raise InputError(f"{model.name}: {what}: {reason}; {AGAIN}", path=model.folder) from error


def _class_of(entry: ModuleEntry, model: Model) -> type[nn.Module]:
    """Find the class of a module, among ours and those of sentence-transformers.

    Raises:
        InputError: It is a class of the model itself, or one that this version of sentence-transformers lacks.
    """
    from torch import nn

    from paranmt_hf.encoders.saving import CLASSES

    our_class = CLASSES.get(entry.reference.removeprefix(f"{MODULES}."))
    if our_class is not None:
        return our_class
    if not re.fullmatch(r"sentence_transformers(\.\w+)+", entry.reference):
        raise InputError(
            f"{model.name} needs the module {entry.reference}, which is code of the model and does not run; load it "
            "with SentenceTransformer(..., trust_remote_code=True) if you trust it",
            path=model.folder,
        )
    try:
        found = getattr(importlib.import_module(entry.reference.rpartition(".")[0]), entry.kind, None)
    except ImportError:
        found = None
    if not isinstance(found, type) or not issubclass(found, nn.Module):
        raise InputError(
            f"{model.name}: this version of sentence-transformers has no module {entry.reference}; upgrade it",
            path=model.folder,
        )
    return found


def _load_module(model: Model, entry: ModuleEntry, kind: type[nn.Module]) -> nn.Module:
    """Load one module of a model, and check that its weights are finite; nothing is downloaded."""
    from safetensors.torch import load_file
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer

    folder = model.folder / entry.folder
    with _readable(model, entry):
        module: nn.Module
        if kind is StaticEmbedding:
            # sentence-transformers and model2vec name the tensors differently.
            tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
            tensors = load_file(folder / WEIGHTS_FILE)
            rows = tensors[WEIGHT] if WEIGHT in tensors else _rows_of_model2vec(tensors, tokenizer)
            module = StaticEmbedding(tokenizer, embedding_weights=rows)
        else:
            module = kind.load(  # type: ignore[attr-defined]
                str(model.folder),
                subfolder=entry.folder,
                local_files_only=True,
                trust_remote_code=False,
                # Refuse pickles, which can run code, whatever the configuration of the model asks for.
                model_kwargs={"use_safetensors": True},
            )
        for name, weight in module.named_parameters():
            # A sum in float64 is finite exactly if all weights are, because float32 values cannot overflow it. It is
            # taken in parts, so that no copy of the whole tensor is needed.
            parts = weight.detach().flatten().split(2**22)
            if not all(bool(part.double().sum().isfinite()) for part in parts):
                raise ValueError(NOT_FINITE.format(path=folder / WEIGHTS_FILE, name=name))
    return module


def _rows_of_model2vec(tensors: dict[str, Tensor], tokenizer: Tokenizer) -> Tensor:
    """Compute the vector of each token [token, dimension] from the tensors of a model2vec model.

    `embeddings` are the vectors. With `mapping`, which holds a row for each token, several tokens share a row; with
    `weights`, each token has a factor.
    """
    rows = tensors["embeddings"]
    if not rows.is_floating_point():
        # model2vec stores int8 without a scale. Cosines of averages do not depend on it.
        rows = rows.float()
    if "mapping" in tensors:
        rows = rows[tensors["mapping"].long()]
    if "weights" in tensors:
        rows = rows.float() * tensors["weights"].float()[:, None]
    model = json.loads(tokenizer.to_str())["model"]
    unknown = model.get("unk_id")
    if model.get("unk_token") is not None:
        unknown = tokenizer.token_to_id(model["unk_token"])
    if unknown is not None:
        # model2vec leaves unknown tokens out of the mean. With a row of zeros, they make the mean shorter and do not
        # change its direction.
        rows[unknown] = 0
    return rows.contiguous()


def _check_tables(composition: Composition) -> None:
    """Check that tables of words fit the tokenizers and the LSTMs that use them, which torch does not check.

    Raises:
        ValueError: A table has another number of rows than its tokenizer, or another width than its LSTM reads.
    """
    from sentence_transformers.sentence_transformer.modules import LSTM

    for part in composition.parts:
        if not part.family.ordered:
            continue
        rows, width = part.table.weight.shape
        lstm = part.modules[1]
        if isinstance(lstm, LSTM) and lstm.embedding_dimension != width:
            raise ValueError(f"the LSTM reads {lstm.embedding_dimension} dimensions, and words have {width}")
        words = len(part.modules[0].tokenizer.tokenizer)  # type: ignore[union-attr, arg-type]
        if words > rows:
            raise ValueError(f"{TOKENIZER_FILE} has {words:,} words for {rows:,} rows of weights")
        # `vocabulary` raises an InputError for a tokenizer of another package, where rows may be left without a word.
        with suppress(InputError):
            if len(part.vocabulary) != rows:
                raise ValueError(f"{TOKENIZER_FILE} has {len(part.vocabulary):,} words for {rows:,} rows of weights")


def read_average_tables(model: Model) -> tuple[list[AverageTable], str] | None:
    """Read the tables of an encoder that only averages rows (WORD, TRIGRAM, combinations, Sent2Vec), without torch.

    Returns:
        The tables, and how their means are combined, `add` or `concatenate`; None for another kind of encoder.
    """
    (entry, *further) = module_list(model)
    if further:
        return None
    folder = model.folder / entry.folder
    with _readable(model, entry):
        if entry.reference.startswith("sentence_transformers.") and entry.kind == "StaticEmbedding":
            stock = _read_stock_table(folder)
            return None if stock is None else ([stock], "concatenate")
        if not entry.reference.startswith((PREFIX, f"{MODULES}.")):
            return None
        parts, mode = [[("", entry.kind)]], "concatenate"
        if entry.kind == "Combination":
            parts, mode = read_parts(folder / PARTS_FILE), load_json(folder / "combination_config.json", dict)["mode"]
        tables = []
        for (first, kind), *layers in parts:
            if layers or kind not in AVERAGES:
                return None
            tables.append(_read_table(folder / first, kind))
        return tables, mode


def _read_table(folder: Path, kind: str) -> AverageTable:
    """Read the table of one of our averaging modules from its folder; `kind` is the class of the module."""
    # The list is not kept, which has an object for each unit.
    units = PackedUnits(load_json(folder / VOCABULARY_FILE, list))
    if kind != "NgramEmbedding":
        stored = map_stored(folder / WEIGHTS_FILE, units)
        return AverageTable(Vocabulary(AVERAGES[kind], units), table_rows(stored))
    config = load_json(folder / CONFIG_FILE, dict)
    stored = map_stored(folder / WEIGHTS_FILE, units, HASHES)
    ngrams = NgramTable(config["order"], config["buckets"], stored[HASHES], len(units))
    vocabulary = Vocabulary(AVERAGES[kind], units, ngrams)
    return AverageTable(vocabulary, table_rows(stored), config.get("cut", "words"))


def _read_stock_table(folder: Path) -> AverageTable | None:
    """Read WORD from the folder of its stock module; None if it is not ours, such as a model of model2vec."""
    from safetensors import safe_open
    from tokenizers import Tokenizer

    found = vocabulary_of(Tokenizer.from_file(str(folder / TOKENIZER_FILE)))
    with safe_open(folder / WEIGHTS_FILE, "np") as file:
        names = file.keys()
    if found is None or WEIGHT not in names:
        return None
    units = PackedUnits(found)
    return AverageTable(Vocabulary("word", units), table_rows(map_stored(folder / WEIGHTS_FILE, units)))
