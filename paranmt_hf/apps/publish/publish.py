"""Publish a release, an encoder or a paraphraser on the Hub: checked first, with a card rendered from its record."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paranmt_hf.hub.publish import About, left_here, refuse_unsafe
from paranmt_hf.hub.upload import Parcel, Published, Target, upload
from paranmt_hf.paraphrase.check_controlled import (
    CODE_PATHS,
    belongs_to_a_network,
    check_whole_network,
    load_checked_network,
    network_files,
)
from paranmt_hf.paraphrase.check_paraphraser import (
    CODE_FILE,
    belongs_to_a_paraphraser,
    check_whole_paraphraser,
    is_paraphraser,
    load_checked,
    paraphraser_files,
)


@dataclass(frozen=True)
class Plan:
    """What would be published, and what it would lack.

    Attributes:
        target: Where.
        parcel: The files.
        card: The card, as it would stand there.
        missing: What a reader would miss, in sentences.
        left_here: Files of the folder that are not published.
        loader: What loads it.
    """

    target: Target
    parcel: Parcel
    card: str
    missing: list[str]
    left_here: list[str]
    loader: str = "paranmt_hf.load"

    def send(self) -> Published:
        """Publish it; called again it sends what is missing, and nothing if all is there.

        Raises:
            InputError: There is no login that may write, or the connection broke.
        """
        return upload(self.parcel, self.target)


def plan_paraphraser(
    folder: str | Path,
    name: str,
    *,
    about: About,
    notes: str = "",
    **where: Any,  # noqa: ANN401
) -> Plan:
    """Check a paraphraser and say what is published."""
    folder, target = Path(folder), Target(name, "model", **where)
    lay_out = _plan_paraphraser if is_paraphraser(folder) else _plan_network
    return lay_out(folder, target, about.required(), notes)


def _plan_paraphraser(folder: Path, target: Target, about: About, notes: str) -> Plan:
    from paranmt_hf.hub.paraphraser_card import paraphraser_card
    from paranmt_hf.paraphrase.card import card_values, missing_of_paraphraser
    from paranmt_hf.paraphrase.modeling_paranmt_lstm import ParaNMTLstmConfig
    from paranmt_hf.paraphrase.record import read_paraphraser

    record = read_paraphraser(folder)
    refuse_unsafe(folder, {CODE_FILE})
    own = load_checked(folder, record)
    card = paraphraser_card(
        {**card_values(target.name.split("/")[1], record, about), "repository": target.name, "notes": notes}
    )
    files = paraphraser_files(folder, record.model_type == ParaNMTLstmConfig.model_type)
    files["README.md"] = card.encode()
    parcel = Parcel(files, belongs_to_a_paraphraser, f"Paraphraser {target.name.split('/')[1]}")
    check_whole_paraphraser(parcel, own, folder)
    own_card = paraphraser_card(card_values(folder.resolve().name, record))
    missing = missing_of_paraphraser(record, about)
    return Plan(target, parcel, card, missing, left_here(folder, files, own_card), "paranmt_hf.load_paraphraser")


def _plan_network(folder: Path, target: Target, about: About, notes: str) -> Plan:
    from paranmt_hf.hub.paraphraser_card import paraphraser_card
    from paranmt_hf.paraphrase.card import missing_of_paraphraser
    from paranmt_hf.paraphrase.controlled_card import controlled_card_values
    from paranmt_hf.paraphrase.syntax.record import read_controlled_record

    record = read_controlled_record(folder)
    refuse_unsafe(folder, CODE_PATHS)
    network = load_checked_network(folder, record)
    name, templates = target.name.split("/")[1], network.templates
    values = controlled_card_values(name, record, templates, about)
    card = paraphraser_card({**values, "repository": target.name, "notes": notes})
    files = network_files(folder)
    files["README.md"] = card.encode()
    parcel = Parcel(files, belongs_to_a_network, f"Syntactically controlled paraphraser {name}")
    check_whole_network(parcel, network, folder)
    own_card = paraphraser_card(controlled_card_values(folder.resolve().name, record, templates))
    missing = missing_of_paraphraser(record, about)
    return Plan(target, parcel, card, missing, left_here(folder, files, own_card), "paranmt_hf.load_paraphraser")
