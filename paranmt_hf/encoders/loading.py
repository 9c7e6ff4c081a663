"""Load and save encoders: with this package and no flag, or without it and `trust_remote_code=True`."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding

from paranmt_hf.encoders import modules
from paranmt_hf.encoders.composition import Composition, composition_of
from paranmt_hf.encoders.damage import damage, fault
from paranmt_hf.encoders.families import FILES
from paranmt_hf.encoders.fast import FastPath
from paranmt_hf.encoders.modules import average, combination, word
from paranmt_hf.encoders.vocabulary import UNKNOWN
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import EMBEDDED, Model, locate

# The file names under which our modules' code lies beside the weights, and the classes that a model may name.
PREFIX, MODULES = "paranmt_hf_", modules.__name__
CODE = {
    info.name: importlib.import_module(f"{MODULES}.{info.name}") for info in pkgutil.iter_modules(modules.__path__)
}
CLASSES: dict[str, type] = {
    f"{name}.{kind.__name__}": kind
    for name, module in CODE.items()
    for kind in vars(module).values()
    if isinstance(kind, type) and kind.__module__ == module.__name__ and kind is not average.AverageEmbedding
}
# Sentences that are cut and averaged at once: large enough that most chunks of a batch were seen before.
BATCH = 8192
# Settings of a whole model, beside those of its modules.
SETTINGS = ("prompts", "default_prompt_name", "similarity_fn_name", "truncate_dim")


class SentenceEncoder(SentenceTransformer):
    """A SentenceTransformer whose `encode` takes the fast path where it can: WORD, TRIGRAM and their combinations.

    Attributes:
        fast_dtype: Precision in which the fast path reads rows.
        source: Where `load` found it; None for one that was made otherwise.
    """

    fast_dtype = torch.float32
    source: Model | None = None

    def encode(self, inputs: Any = None, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Encode sentences; arguments and result as `SentenceTransformer.encode`, within 1e-6.

        On the CPU an averaging encoder cuts and averages thousands of sentences at once, whatever `batch_size` says,
        on as many threads as torch uses. Its vectors are float32, and of no sentences [0, dimension].
        """
        if inputs is None and "sentences" in kwargs:
            # The argument's name in older releases.
            inputs = kwargs.pop("sentences")
        texts = _materialised(inputs)
        if not args and self.device.type == "cpu" and _is_plain(texts, kwargs) and self.fast_path is not None:
            return self._encode_fast(self.fast_path, texts, **kwargs)
        return super().encode(inputs, *args, **kwargs)

    @property
    def composition(self) -> Composition | None:
        """The encoder taken apart; None where it is not one of this package's encoders."""
        return composition_of(list(self))

    @property
    def fast_path(self) -> FastPath | None:
        """The fast way to encode on the CPU; only averaging encoders have one."""
        if "_fast" not in self.__dict__:
            composition = self.composition
            fast = FastPath(composition, self.fast_dtype) if composition is not None and composition.is_bag else None
            self.__dict__["_fast"] = fast
        return self.__dict__["_fast"]

    def forget_fast_path(self) -> None:
        """Read the weights anew at the next `encode`; needed where other tensors took their place."""
        self.__dict__.pop("_fast", None)

    def save(self, path: str, *args: Any, **kwargs: Any) -> None:
        """Save as `SentenceTransformer.save` does: stock modules where there are some, else with our code beside."""
        with _saved_modules(self):
            super().save(path, *args, **kwargs)
        _add_code(Path(path))

    def __getstate__(self) -> dict[str, Any]:
        # What is remembered is made anew in a copy or in another process.
        return {name: value for name, value in self.__dict__.items() if name != "_fast"}

    def _apply(self, *args: Any, **kwargs: Any) -> SentenceEncoder:
        self.forget_fast_path()
        return super()._apply(*args, **kwargs)

    def train(self, mode: bool = True) -> SentenceEncoder:
        """Switch between training and use; weights may change meanwhile."""
        self.forget_fast_path()
        return super().train(mode)

    @property
    def known_tokens(self) -> Callable[[list[str]], np.ndarray]:
        """Function that counts the units of each sentence that are known; only averaging encoders have it."""
        if self.fast_path is None:
            raise AttributeError("only averaging encoders count their known tokens")
        return self._known_tokens

    def _known_tokens(self, sentences: list[str]) -> np.ndarray:
        assert self.fast_path is not None
        with self.fast_path.lend() as worker:
            return worker.known_tokens(sentences)

    def _encode_fast(
        self,
        fast_path: FastPath,
        inputs: str | list[str],
        *,
        prompt: str | None = None,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        **unused: Any,
    ) -> Any:  # noqa: ANN401
        single = isinstance(inputs, str)
        sentences = [inputs] if isinstance(inputs, str) else inputs
        prompt = self._resolve_prompt(prompt, unused.get("prompt_name"))
        cut = truncate_dim if truncate_dim is not None else self.truncate_dim
        width = len(range(self.get_embedding_dimension() or 0)[:cut])
        vectors = torch.empty(len(sentences), width)

        def fill(start: int) -> None:
            batch = sentences[start : start + BATCH]
            if prompt:
                batch = [prompt + sentence for sentence in batch]
            fast_path.encode(batch, vectors[start : start + BATCH], normalize=normalize_embeddings)

        starts = range(0, len(sentences), BATCH)
        threads = torch.get_num_threads()
        if min(threads, len(starts)) > 1:
            try:
                with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
                    list(pool.map(fill, starts))
            finally:
                # The initializer's call is also what threads to come begin with.
                torch.set_num_threads(threads)
        else:
            for start in starts:
                fill(start)
        if convert_to_tensor:
            return vectors[0] if single else vectors
        if convert_to_numpy:
            return vectors[0].numpy() if single else vectors.numpy()
        return vectors[0] if single else list(vectors)


_FAST_OPTIONS = {
    "prompt",
    "prompt_name",
    "batch_size",
    "show_progress_bar",
    "convert_to_numpy",
    "convert_to_tensor",
    "normalize_embeddings",
    "truncate_dim",
    "task",
}


def _materialised(inputs: Any) -> Any:  # noqa: ANN401
    """Turn an array or a column of a data set into a list; leave anything else as it is."""
    if isinstance(inputs, np.ndarray):
        return inputs.tolist()
    return list(inputs) if isinstance(inputs, Sequence) and not isinstance(inputs, str | list) else inputs


def _is_plain(inputs: Any, options: dict[str, Any]) -> bool:  # noqa: ANN401
    """Tell whether a call asks for nothing that the fast path does not do."""
    usual = {"output_value": "sentence_embedding", "precision": "float32", "device": None, "pool": None}
    usual["chunk_size"] = None
    others = {name: value for name, value in options.items() if name not in _FAST_OPTIONS}
    if any(name not in usual or value != usual[name] for name, value in others.items()):
        return False
    if options.get("batch_size", 1) <= 0:
        return False
    return isinstance(inputs, str) or (isinstance(inputs, list) and all(type(text) is str for text in inputs))


def load(
    name: str | Path | Model = EMBEDDED,
    *,
    revision: str | None = None,
    device: str | None = None,
    dtype: torch.dtype = torch.float32,
) -> SentenceEncoder:
    """Load any of our encoders, or another model of stock sentence-transformers modules.

    No code from the model runs: a module class outside `sentence_transformers` and this package is refused.

    Args:
        name: Folder, Hub id, or what `locate` found; `embedded` is the small encoder that the package carries.
        revision: Branch, tag or commit on the Hub.
        device: Torch device; the best one at hand if left out, the CPU for averaging encoders.
        dtype: torch.float16 reads the rows of averaging encoders in half precision, which is faster.

    Raises:
        InputError: There is no such model, or it would need code or pickles from outside.
    """
    if dtype not in (torch.float32, torch.float16):
        raise InputError(f"dtype must be torch.float32 or torch.float16, was {dtype}")
    model = name if isinstance(name, Model) else locate(str(name), revision)
    loaded = OrderedDict()
    for entry in _module_list(model.folder, model.name):
        kind = _resolve(entry["type"], model.name)
        try:
            module = kind.load(  # type: ignore[attr-defined]
                str(model.folder), subfolder=entry["path"], local_files_only=True, trust_remote_code=False
            )
            loaded[entry["name"]] = own_module(module)
        except Exception as error:
            raise _unreadable(model, entry, error) from error
    settings = _settings(model.folder, model.name)
    try:
        composition = composition_of(list(loaded.values()))
        if device is None and composition is not None and composition.is_bag:
            device = "cpu"
        encoder = SentenceEncoder(modules=list(loaded.values()), device=device, **settings)
    except (ValueError, TypeError) as error:
        reason = str(error).strip().split("\n")[0]
        raise InputError(
            f"{model.name}: its modules or settings (modules.json, config_sentence_transformers.json) do not fit "
            f"together: {reason}"
        ) from error
    encoder.fast_dtype, encoder.source = dtype, model
    return encoder.eval()


def own_module(module: torch.nn.Module) -> torch.nn.Module:
    """Make WORD of the stock module that it is saved as; leave any other module as it is."""
    if isinstance(module, StaticEmbedding):
        own = word.WordEmbedding.from_stock(module)
        if own is not None and own.units[0] == UNKNOWN:
            return own
    return module


def _unreadable(model: Model, entry: dict[str, str], error: Exception) -> InputError:
    """Say which file keeps a module from being read, or what is wrong with all of its files together."""
    folder, kind = model.folder / entry["path"], entry["type"].rpartition(".")[2]
    if (found := fault(folder, kind)) is not None:
        return InputError(f"{model.name}: {found}; put a whole copy of the model in its place")
    reason = str(error).strip().split("\n")[0]
    files = " and ".join(FILES.get(kind, ())) or "the files"
    return InputError(f"{model.name}: cannot read its module {entry['type']} from {files} in {folder}: {reason}")


def _settings(folder: Path, name: str) -> dict[str, Any]:
    path = folder / "config_sentence_transformers.json"
    if not path.is_file():
        return {}
    if (reason := damage(path)) is not None:
        raise InputError(f"{name}: {path} is damaged ({reason}); put a whole copy of the model in its place")
    settings = json.loads(path.read_text(encoding="utf8"))
    truncate = settings.get("truncate_dim")
    if truncate is not None and not (isinstance(truncate, int) and truncate > 0):
        raise InputError(f"{name}: truncate_dim in {path} must be a whole number above 0, was {truncate!r}")
    return {name: settings[name] for name in SETTINGS if name in settings}


def _module_list(folder: Path, name: str) -> list[dict[str, str]]:
    """Read `modules.json`."""
    try:
        entries = json.loads((folder / "modules.json").read_text(encoding="utf8"))
        listed = [{key: str(entry[key]) for key in ("name", "path", "type")} for entry in entries]
    except (OSError, ValueError, TypeError, KeyError):
        listed = []
    if not listed:
        raise InputError(
            f"{name} is no sentence encoder: expected a readable modules.json, as a SentenceTransformer saves it"
        )
    for entry in listed:
        if entry["path"] not in ("", ".") and not re.fullmatch(r"[\w-]+", entry["path"]):
            raise InputError(f"{name}: modules.json names the path {entry['path']!r}, which is no plain folder name")
    return listed


def _resolve(reference: str, name: str) -> type:
    """Find a module's class by its name in `modules.json`, without running code from the model."""
    for own, kind in CLASSES.items():
        if reference in (f"{PREFIX}{own}", f"{MODULES}.{own}"):
            return kind
    if re.fullmatch(r"sentence_transformers(\.\w+)+", reference):
        path, _, kind_name = reference.rpartition(".")
        try:
            found = getattr(importlib.import_module(path), kind_name, None)
        except ImportError:
            found = None
        if isinstance(found, type) and issubclass(found, torch.nn.Module):
            return found
        raise InputError(f"{name}: this sentence-transformers has no module {reference}; upgrade it")
    raise InputError(
        f"{name} needs the module {reference}, which is code of the model's own and is not run; load it with "
        "SentenceTransformer(..., trust_remote_code=True) if you trust it"
    )


def save(model: SentenceTransformer, folder: Path | str) -> None:
    """Write an encoder so that it loads everywhere: stock modules as they are, ours with their code beside them.

    Args:
        model: The encoder.
        folder: Where to; created if missing.
    """
    device = model.device
    try:
        model.to("cpu")
        with _saved_modules(model):
            SentenceTransformer.save(model, str(folder), create_model_card=False, safe_serialization=True)
    finally:
        model.to(device)
    _add_code(Path(folder))


@contextmanager
def _saved_modules(model: SentenceTransformer) -> Iterator[None]:
    """Put the stock module in the place of WORD while a model is written; rows of 8 bits have no stock module."""
    own = dict(model._modules)
    for name, module in own.items():
        if isinstance(module, word.WordEmbedding) and module.precision != "int8":
            model._modules[name] = module.stock()
    try:
        yield
    finally:
        model._modules.update(own)


def _add_code(folder: Path) -> None:
    """Make a saved encoder name our modules by the files beside its weights, and write these."""
    for path in folder.rglob("*.safetensors"):
        # Some versions of safetensors write files that only their owner can read.
        path.chmod(path.parent.stat().st_mode & 0o666)
    entries = json.loads((folder / "modules.json").read_text(encoding="utf8"))
    own = [entry for entry in entries if entry["type"].startswith("paranmt_hf.")]
    for entry in own:
        entry["type"] = PREFIX + entry["type"].removeprefix(f"{MODULES}.")
    (folder / "modules.json").write_text(json.dumps(entries, indent=2), encoding="utf8")
    if own:
        _write_code(folder)


def _write_code(folder: Path) -> None:
    """Put our modules' code beside the weights."""
    for name, code in code_files().items():
        (folder / name).write_text(code, encoding="utf8")


def code_files() -> dict[str, str]:
    """Name and content of the files that hold our modules' code beside weights, imports turned into relative ones."""
    from paranmt_hf import text

    files = {}
    for name, module in {**CODE, "text": text}.items():
        source = Path(str(module.__file__)).read_text(encoding="utf8")
        relative = re.sub(
            r"from paranmt_hf\.(?:encoders\.modules\.)?(\w+) import", rf"from .{PREFIX}\1 import", source
        )
        files[f"{PREFIX}{name}.py"] = relative
    return files


def with_precision(encoder: SentenceEncoder, precision: str) -> SentenceEncoder:
    """Make an averaging encoder that is stored in another precision.

    Args:
        encoder: WORD, TRIGRAM or a combination of them.
        precision: `float32`, `float16`, or `int8` with a scale for each row.

    Raises:
        InputError: It is another encoder, or there is no such precision.
    """
    composition = encoder.composition
    if composition is None or not composition.is_bag:
        raise InputError(
            "only averaging encoders (WORD, TRIGRAM and their combinations) are stored in other precisions"
        )
    if precision not in average.PRECISIONS:
        raise InputError(f"precision must be one of {', '.join(average.PRECISIONS)}, was {precision!r}")
    chains: list[list[torch.nn.Module]] = []
    for part in composition.parts:
        table = part.modules[0]
        assert isinstance(table, average.AverageEmbedding)
        chains.append([type(table)(table.units, table.weight, precision), *part.modules[1:]])
    parts = chains[0] if len(chains) == 1 else [combination.Combination(chains, composition.mode)]
    return SentenceEncoder(modules=parts, device="cpu", similarity_fn_name="cosine")
