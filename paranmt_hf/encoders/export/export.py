"""Export an encoder for another library: `paranmt encoder export`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from paranmt_hf.encoders.loading import load
from paranmt_hf.errors import refuse
from paranmt_hf.hub.cards import render
from paranmt_hf.hub.repository import ASSETS, Model, locate
from paranmt_hf.util.files import share_weights, shown_path
from paranmt_hf.util.optional import require
from paranmt_hf.util.records import Record, made_with
from paranmt_hf.util.run import Result, result_folder, run
from paranmt_hf.util.typed import read
from paranmt_hf.util.wording import counted
from paranmt_hf.util.yaml_files import card_header

if TYPE_CHECKING:
    from paranmt_hf.encoders.composition import Composition
    from paranmt_hf.encoders.export.formats import Encode, Format
    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder

FormatName = Literal["static", "model2vec", "onnx", "transformers.js"]


@dataclass(frozen=True)
class ExportSettings:
    """Everything that determines an export: its format, the name of the encoder, and its commit or checksum."""

    format: str
    model: str
    revision: str


@dataclass(frozen=True, kw_only=True)
class ExportRecord(Record):
    """The content of an export's `export.json`."""

    FILE: ClassVar[str] = "export.json"
    KIND: ClassVar[str] = "an export (`paranmt encoder export`)"

    settings: ExportSettings  # What determines the export
    encoder: str  # The encoder by the names of the paper, such as `WORD,TRIGRAM`
    dimension: int  # Dimensions of a sentence vector
    # Largest difference between a vector of the export and ours; for model2vec, of their cosine from 1. None if the
    # package that reads the format is not installed, so that nothing was checked
    difference: float | None


class Exported(Result[ExportRecord]):
    """An encoder in the format of another library."""

    def load(self) -> Encode | None:
        """Load the export with the library that reads it.

        Returns:
            A function from sentences to vectors [sentence, dimension]; None if the library is not installed.
        """
        from paranmt_hf.encoders.export.formats import FORMATS

        return FORMATS[self.record.settings.format].read(self.folder)

    def summary(self) -> str:
        """Return lines about the export and how far its vectors are from those of the encoder."""
        record, format = self.record, self.record.settings.format
        size = sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file()) / 1e6
        folder = shown_path(self.folder)
        lines = [f"{folder}: {record.encoder} as {format}, {counted(record.dimension, 'dimension')}, {size:.1f} MB"]
        if record.difference is None:
            extra = "model2vec" if format == "model2vec" else "onnx"
            lines.append(f"not compared with the encoder; `pip install 'paranmt-hf[{extra}]'` first to compare them")
        else:
            measure = "1 - cosine" if format == "model2vec" else "difference"
            lines.append(
                f"largest {measure} from the encoder's vectors, on the sample of the package: {record.difference:.0e}"
            )
        return "\n  ".join([*lines, f"how to load it: {folder}/README.md"])


def export_encoder(model: str | Path, out: str | Path, *, format: FormatName = "static") -> Exported:
    """Write an encoder for another library, and check that it gives the same vectors there.

    Args:
        model: Folder or Hub id of the encoder (ID@REVISION for a revision); `small` and `base` are those of the
            package.
        out: Folder to write: new, empty, or with this export.
        format: static: one WORD or TRIGRAM encoder, for plain sentence-transformers; model2vec: the same, without a
            trained vector for unknown units; onnx: every encoder that `paranmt train` makes; transformers.js: the
            same, for JavaScript.
    """
    from paranmt_hf.encoders.export.formats import FORMATS

    chosen = FORMATS[read(FormatName, format, "format")]
    if chosen.package is not None:
        require(chosen.package, chosen.package)
    source = locate(str(model))
    out = result_folder(out, ExportRecord, sources=[source.folder])
    settings = ExportSettings(format, source.name, source.revision)

    def make(work: Path, folder: Path) -> ExportRecord:
        encoder = load(source, device="cpu")
        composition = _check(encoder, chosen, source.name)
        chosen.write(encoder, folder)
        titles = [part.family.title for part in composition.parts]
        (folder / "README.md").write_text(card(out.name, chosen, titles, source), encoding="utf8", newline="\n")
        share_weights(folder)
        return ExportRecord(
            settings=settings,
            encoder=composition.title,
            dimension=composition.dimension,
            difference=_measure(encoder, folder, chosen),
            **made_with("numpy", "tokenizers", "sentence-transformers", chosen.package or "torch"),
        )

    return run(out, settings, ExportRecord, make, result=Exported, command="export")


def _check(encoder: SentenceEncoder, format: Format, name: str) -> Composition:
    """Find the parts of an encoder that is to be exported.

    Raises:
        InputError: The format cannot hold this encoder or its settings.
    """
    from paranmt_hf.encoders.composition import take_apart
    from paranmt_hf.encoders.export.graph import ADDED_BY

    composition = take_apart(encoder)
    for part in composition.parts:
        refuse(
            part.family.name not in ADDED_BY,
            f"{name} is {composition.title}, which no format of other libraries holds; load it with paranmt_hf.load, "
            "or with sentence-transformers and trust_remote_code=True",
            option="model",
        )
    refuse(
        format.single and composition.name not in ("word", "trigram"),
        f"format {format.name} holds WORD or TRIGRAM alone, and {name} is {composition.title}; format onnx holds it",
        option="format",
    )
    refuse(
        not format.holds_settings and (encoder.truncate_dim is not None or encoder.default_prompt_name),
        f"{name} has a default prompt or a truncate_dim, which format {format.name} cannot hold; remove them from its "
        "config_sentence_transformers.json",
        option="format",
    )
    refuse(
        not format.holds_unknown and any(bool(part.table.weight[0].any()) for part in composition.parts),
        f"{name} has a trained vector for unknown units, which {format.name} leaves out; use format static",
        option="format",
    )
    return composition


def card(name: str, format: Format, titles: Sequence[str], source: Model) -> str:
    """Render the README.md of an export, with the licence that the card of its source names.

    Args:
        name: Name of the export.
        format: Format of the export.
        titles: Parts of the encoder by their names in the papers.
        source: The encoder that was exported.
    """
    from paranmt_hf.encoders.export.graph import suffixes

    stated = card_header(source.folder / "README.md")
    license = {}
    for key in ("license", "license_name", "license_link"):
        if isinstance(stated.get(key), str):
            license[key] = stated[key]
    header = {
        "library_name": format.library,
        "tags": ["sentence-similarity", "feature-extraction", "paranmt", *(title.lower() for title in titles)],
        **license,
    }
    values = {
        "name": name,
        "kinds": titles,
        "source": source.name,
        "format": format.name,
        "license": license,
        "suffixes": suffixes(len(titles)),
    }
    return render("export", header, values)


def _measure(encoder: SentenceEncoder, folder: Path, format: Format) -> float | None:
    """Encode the sample of the package, and unusual texts, with the export and with the encoder.

    Returns:
        The largest distance of two vectors, as the format measures it; None if the package that reads it is missing.

    Raises:
        RuntimeError: The distance is above the tolerance of the format.
    """
    theirs = format.read(folder)
    if theirs is None:
        return None
    sample = (ASSETS / "sample" / "sample.en").read_text(encoding="utf8").splitlines()
    unusual = [
        "",
        "A man isn't playing 3.5 guitars; he's listening.",
        "  ",
        "“Ça va?” — l'été, zyxqj \u4e2d_\u0130 n't ’s ., .5",
    ]
    difference = max(format.distance(theirs(texts), encoder.encode(texts)) for texts in (sample, unusual))
    if not difference <= format.tolerance:
        raise RuntimeError(
            f"the {format.name} export gives other vectors than the encoder, by {difference:.1e}; not written"
        )
    return difference
