"""Print the lowest versions that pyproject.toml promises, as requirements that pip installs: `name==version`."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement


def lowest(text: str) -> str:
    """The requirement `text` pinned to its lower bound.

    Raises:
        ValueError: If it has no lower bound, or more than one.
    """
    requirement = Requirement(text)
    bounds = [item.version for item in requirement.specifier if item.operator in (">=", "==", "~=")]
    if len(bounds) != 1:
        raise ValueError(f"{text!r} in pyproject.toml needs one lower bound, name>=version")
    return f"{requirement.name}=={bounds[0]}"


def main() -> None:
    """Print the pinned requirements of the build, of the package and of its tests, one a line."""
    path = Path(__file__).parent.parent / "pyproject.toml"
    settings = tomllib.loads(path.read_text(encoding="utf8"))
    project = settings["project"]
    wanted = settings["build-system"]["requires"] + project["dependencies"] + project["optional-dependencies"]["test"]
    print("\n".join(lowest(text) for text in wanted))  # noqa: T201


if __name__ == "__main__":
    main()
