"""What the commands that make a release print of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paranmt_hf.corpus.release_run import Built


def print_built(built: Built) -> None:
    """Print where a release is, what it holds and how to load it."""
    from paranmt_hf.corpus.statistics import text_histogram

    statistics = built.record.statistics
    print(f"{built.folder}: {statistics.rows:,} pairs" + ("" if built.fresh else " (was built already)"))
    for name, config in built.record.configs.items():
        print(f"  {name:<9}{config.rows:>12,} pairs {config.file_bytes:>15,} bytes")
    for reason, count in built.record.dropped.items():
        print(f"  dropped  {count:>12,} {reason}")
    for name, count in statistics.mismatches.items():
        print(f"  {name:<18}{count:>12,} pairs, {count / statistics.rows:.1%}")
    if held_out := built.record.held_out:
        print(
            f"  human_score: {held_out.accuracy:.1%} of held-out sentences told right, references first in "
            f"{held_out.ordered:.1%} of {held_out.pairs:,} held-out pairs"
        )
    print("paraphrase score")
    print(text_histogram(statistics.histogram, width=40))
    print(f"load it: load_dataset({built.folder.name!r}) in {built.folder.resolve().parent}")
