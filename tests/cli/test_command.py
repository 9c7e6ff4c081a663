"""A command is derived from a function: its options, their values, its call and its result."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import pytest

from paranmt_hf import InputError, cli
from paranmt_hf.cli.command import Command
from paranmt_hf.cli.written_files import WrittenFileRecord
from paranmt_hf.util.markers import (
    Advanced,
    Count,
    Expands,
    Group,
    Prefixed,
    PythonOnly,
    Range,
    RunOnly,
    Seed,
    Without,
    Writes,
)
from paranmt_hf.util.records import made_with
from paranmt_hf.util.settings import Settings
from tests.cli.commands import recorded_options

if TYPE_CHECKING:
    from decimal import Decimal


@dataclass(frozen=True)
class Oven(Settings):
    """How the oven is set.

    Attributes:
        heat: Temperature, at most as `limit` says.
        fan: Whether it has a fan.
        seed: Decides the rest.
        slow: Of no use to cooks.
    """

    heat: Annotated[float, Range(above=0, at_most=300)] = 180.0
    fan: Annotated[bool, Advanced] = False
    seed: Seed = 1
    slow: Annotated[bool, PythonOnly] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fan and self.heat > 200:
            raise InputError("`heat` is too high for a `fan`", option="heat")


@dataclass(frozen=True)
class Baker(Settings):
    """Who bakes.

    Attributes:
        name: The name.
        seed: Decides the mood.
    """

    name: str
    seed: int = 0


DECORATION = Group("decoration", "What is on top.")


@dataclass(frozen=True)
class Topping(Settings):
    """What it is covered with.

    Attributes:
        sugar: Grams.
        colour: Of the icing.
        candles: How many.
        flag: Whether it has a flag.
    """

    sugar: Annotated[float, Range(above=0)] = 5
    colour: Literal["red", "blue"] = "red"
    candles: Annotated[Count, DECORATION] = 3
    flag: Annotated[bool, DECORATION, Advanced] = False


@dataclass(frozen=True)
class Box(Settings):
    """What it is packed in.

    Attributes:
        width: In cm.
        lid: Whether it is closed.
        labels: Texts on it, as its `width` allows.
        string: Of no use for cakes.
    """

    width: Count = 30
    lid: bool = True
    labels: Sequence[str] = ()
    string: bool = False


@dataclass
class Cake:
    folder: Path
    values: dict[str, object]
    fresh: bool = True

    def to_json(self) -> dict[str, object]:
        return self.values

    def summary(self) -> str:
        return "a cake; see `heat`"


def presets(name: str) -> Mapping[str, object]:
    if name == "interrupted":
        raise KeyboardInterrupt
    return {"hot": {"heat": 250, "portions": 3}}[name]


def bake(
    flour: "Decimal | str | Path",
    others: Sequence[str],
    out: Path,
    *,
    limit: float,
    kind: Literal["cake", "bread"] = "cake",
    columns: Mapping[str, str] | None = None,
    sizes: tuple[Count, ...] = (1, 2),
    portions: Count | None = None,
    workers: Annotated[int, RunOnly] = 0,
    note: Annotated[Path | None, RunOnly, Writes] = None,
    preset: Annotated[str | None, Expands(presets)] = None,
    oven: Oven | None = None,
    baker: Annotated[Baker | None, Prefixed] = None,
    topping: Topping | None = None,
    box: Annotated[Box | None, Group(), Without("string")] = None,
    crate: Annotated[Box | None, Group(), Prefixed] = None,
    helper: type[Exception] = ValueError,
) -> Cake:
    """Bake.

    At great length.

    Args:
        flour: The flour, see `out`.
        others: Other things.
        out: Where it goes.
        limit: A limit.
        kind: What.
        columns: Where.
        sizes: Sizes.
        portions: How many.
        workers: Who helps.
        note: A file.
        preset: A name for all.
        oven: Heat.
        baker: Person.
        topping: Top.
        box: Box.
        crate: Another box.
        helper: For Python.
    """
    if note is not None and str(flour) != "none":
        note.write_text(str(flour))
    if limit < 0:
        raise InputError("`limit` must not be negative", option="limit")
    out.mkdir(exist_ok=True)
    given = {"flour": flour, "others": others, "limit": limit, "kind": kind, "columns": columns, "sizes": sizes}
    given |= {"portions": portions, "workers": workers, "oven": oven and vars(oven), "baker": baker and vars(baker)}
    given |= {"topping": topping and vars(topping), "box": box and vars(box), "crate": crate and vars(crate)}
    return Cake(out, given)


def count(end: int = 2) -> Iterator[str]:
    """Count.

    Args:
        end: The end.
    """
    yield from map(str, range(end))


def typed_late(number: "Decimal | None" = None) -> None:
    """Take what only type checkers import."""


def twice(seed: int = 1, oven: Oven | None = None) -> None:
    """Have two options of one name."""


BAKE = Command("bake", f"{__name__}:bake", "bake a cake", "paranmt bake rye salt --out cake --limit 1")
NEEDED = ["rye", "salt", "yeast", "--out", "cake", "--limit", "1"]


@pytest.fixture(autouse=True)
def kitchen(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    counting = Command("count", f"{__name__}:count", "count to a number", "paranmt count")
    monkeypatch.setattr(cli, "COMMANDS", {"bake": BAKE, "count": counting})


def values(*words):
    assert cli.main(["bake", *NEEDED, *words, "--json", "cake.json"]) == 0
    return json.loads(Path("cake.json").read_text())


def test_values_reach_the_function():
    found = values()
    assert (found["flour"], found["others"], found["limit"], found["sizes"]) == ("rye", ["salt", "yeast"], 1, [1, 2])
    assert (found["kind"], found["columns"], found["portions"], found["baker"]) == ("cake", None, None, None)
    assert found["oven"] == {"heat": 180, "fan": False, "seed": 1, "slow": False}
    words = "--kind bread --sizes 4 5 --portions 2 --heat 99.5 --fan --seed 7 --baker Ann --baker-seed 3"
    found = values(*words.split(), "--columns", "a=1,b=x y")
    assert (found["kind"], found["columns"], found["sizes"]) == ("bread", {"a": "1", "b": "x y"}, [4, 5])
    assert found["portions"] == 2 and found["oven"] == {"heat": 99.5, "fan": True, "seed": 7, "slow": False}
    assert found["baker"] == {"name": "Ann", "seed": 3}


def test_options():
    options = {option.flag: option for option in BAKE.options}
    assert list(options)[:2] == ["FLOUR", "OTHERS"] and not {"--helper", "--slow"} & options.keys()
    assert {"--baker", "--baker-seed", "--seed"} <= options.keys()
    assert options["--fan"].advanced and not options["--heat"].advanced
    assert BAKE.writes_json


def test_a_mistyped_setting_of_a_group_gets_a_suggestion(capsys):
    assert cli.main(["bake", *NEEDED, "--box", "width_=1"]) == 1
    assert capsys.readouterr().err.endswith("perhaps you meant 'width'\n")


def test_settings_of_a_group(capsys):
    assert BAKE.typed()[-5:] == ["sugar", "colour", "decoration", "box", "crate"]
    found = values(
        "--box", "width=8, lid=false", "--decoration", "candles=9", "--colour", "blue", "--crate", "width=9"
    )
    assert found["crate"] == {"width": 9, "lid": True, "labels": [], "string": False}
    assert found["box"] == {"width": 8, "lid": False, "labels": [], "string": False}
    assert found["topping"] == {"sugar": 5, "colour": "blue", "candles": 9, "flag": False}
    Path("box.yaml").write_text("width: 7\nlabels: [a, 1.0]\n")
    assert values("--box", "box.yaml")["box"] == {"width": 7, "lid": True, "labels": ["a", "1.0"], "string": False}
    Path("options.yaml").write_text("box:\n  width: 4\n  lid: false\ncandles: 2\n")
    found = values("--config", "options.yaml", "--box", "width=5")
    assert found["box"]["width"] == 5 and not found["box"]["lid"] and found["topping"]["candles"] == 2
    with pytest.raises(SystemExit):
        cli.main(["bake", *NEEDED, "--no-lid"])
    assert "--no-lid is given as --box lid=VALUE" in capsys.readouterr().err


def test_help_of_a_group(capsys):
    for words, shown in (
        ("--help", "What is on top. Any of candles, flag."),
        ("--help", "What it is packed in. Any of width, lid, labels."),
        ("--help-all", "candles: How many (default: 3)"),
        # Both groups have the setting.
        ("--help-all", "as its --box width allows"),
        ("--help-all", "as its --crate width allows"),
    ):
        with pytest.raises(SystemExit):
            cli.main(["bake", words])
        assert shown in " ".join(capsys.readouterr().out.replace("│", " ").split())


@pytest.mark.parametrize("function", [typed_late, twice])
def test_functions_that_cannot_be_commands(function):
    with pytest.raises(TypeError, match=function.__name__):
        _ = Command("x", f"{__name__}:{function.__name__}", "x", "x").options


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--limit", "-1"], "paranmt: --limit must not be negative\n"),
        (["--heat", "300.5"], "paranmt: --heat must be above 0 and at most 300, was 300.5\n"),
        (["--heat", "250", "--fan"], "paranmt: --heat is too high for a --fan\n"),
        (["--portions", "0"], "paranmt: --portions must be at least 1, was 0\n"),
        (["--columns", "a"], "paranmt: --columns must be NAME=VALUE,NAME=VALUE, was 'a'\n"),
        (["--baker-seed", "2"], "paranmt: --baker-seed needs --baker; give it too, or leave out --baker-seed\n"),
        (["--box", "width=0"], "paranmt: --box: width must be at least 1, was 0\n"),
        (["--box", "height=1"], "paranmt: --box: 'height' is not one of width, lid, labels\n"),
        (["--box", "string=true"], "paranmt: --box: 'string' is not one of width, lid, labels\n"),
        (["--box", "width="], "paranmt: --box must be NAME=VALUE,NAME=VALUE or a YAML file, was 'width='\n"),
        (["--preset", "cold"], "paranmt: KeyError: 'cold' (unexpected; --debug shows where)\n"),
    ],
)
def test_errors_name_what_is_typed(words, message, capsys):
    assert cli.main(["bake", *NEEDED, *words]) == 1
    assert capsys.readouterr().err == message


def test_options_are_kept_and_repeated(capsys):
    values("--workers", "4", "--heat", "99.5", "--columns", "a=1")
    assert "a cake; see --heat\n" in capsys.readouterr().out
    kept = recorded_options("cake.json.json")
    assert kept == {
        **{"flour": "rye", "others": ["salt", "yeast"], "limit": 1.0, "kind": "cake", "columns": "a=1"},
        **{"sizes": [1, 2], "heat": 99.5, "fan": False, "seed": 1, "baker-seed": 0},
        **{"sugar": 5, "colour": "red", "candles": 3, "flag": False, "width": 30, "lid": True},
        **{"crate-width": 30, "crate-lid": True, "crate-string": False},
    }
    again = ["--out", "again", "--json", "again.json", "--heat", "50"]
    assert cli.main(["bake", "--config", "cake.json.json", *again]) == 0
    assert recorded_options("again.json.json") == {**kept, "heat": 50.0}


@pytest.mark.parametrize("option", ["--json", "--note"])
def test_files_of_others_are_not_replaced(capsys, option):
    """Those of another command are no better; an empty file is nobody's."""
    command = ["bake", *NEEDED, option, "file"]
    Path("file").write_text("mine")
    for options in (None, {"count": {}}):
        if options:
            WrittenFileRecord(settings={}, options=options, **made_with()).write(Path("file"))
        assert cli.main(command) == 1
        error = capsys.readouterr().err
        assert "paranmt: file exists, and `paranmt bake` did not write it" in error and "delete" not in error
        assert Path("file").read_text() == "mine" and not Path("cake").exists()
    Path("file").write_text("")
    assert cli.main(command) == 0 and Path("file").read_text()
    assert cli.main([*command, "--heat", "7"]) == 0
    assert recorded_options("file.json")["heat"] == 7


def test_a_file_in_the_place_of_a_record(capsys):
    for own in (["--note", "file", "--json", "file.json"], ["--json", "file"]):
        with pytest.raises(InputError) as refused:
            cli.main(["bake", *NEEDED, *own, "--debug"])
        assert (refused.value.option, refused.value.path) == ("json", Path("file.json"))
        Path("file.json").write_text("mine")
    assert Path("file.json").read_text() == "mine" and not Path("file").exists()


def test_a_file_of_an_interrupted_command_is_its_own():
    """Because its record is there first; without the file it goes."""
    command = ["bake", *NEEDED, "--note", "file"]
    assert cli.main(["bake", "none", *command[2:], "--limit=-1"]) == 1
    assert not list(Path().glob("file*"))
    assert cli.main([*command, "--limit=-1"]) == 1
    assert Path("file").read_text() == "rye" and not Path("cake").exists()
    assert cli.main(command) == 0


def test_a_name_for_values():
    assert values("--preset", "hot")["oven"]["heat"] == 250
    assert values("--preset=hot", "--heat", "3") | {"oven": 0} == values("--portions", "3") | {"oven": 0}
    Path("options.yaml").write_text("preset: hot\nheat: 20\n")
    found = values("--config", "options.yaml")
    assert found["oven"]["heat"] == 20 and found["portions"] == 3


def test_help_shows_defaults(capsys):
    with pytest.raises(SystemExit):
        cli.main(["bake", "--help"])
    shown = capsys.readouterr().out
    assert "Who helps. (default: 0)" in shown and "Sizes. (default: 1 2)" in shown and "Where. " in shown
    assert "(required)" in shown and "see --out" in shown and "--fan" not in shown


def test_printed_results(capsys, monkeypatch):
    assert cli.main(["count", "--end", "3"]) == 0
    assert capsys.readouterr().out == "0\n1\n2\n"
    assert cli.main(["bake", *NEEDED, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["flour"] == "rye"
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    assert cli.main(["bake", *NEEDED]) == 0
    assert capsys.readouterr().out == ""


def test_an_empty_name_of_the_result_is_refused(capsys):
    words = ["bake", "rye", "salt", "yeast", "--limit", "1", "--out"]
    assert cli.main([*words, ""]) == 1
    assert "--out is empty" in capsys.readouterr().err


def test_interruption(capsys):
    assert cli.main(["bake", *NEEDED, "--preset", "interrupted"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_debug_shows_the_traceback():
    with pytest.raises(InputError):
        cli.main(["bake", *NEEDED, "--limit", "-1", "--debug"])
