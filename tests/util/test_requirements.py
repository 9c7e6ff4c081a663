"""What the package needs, and whether what is there will do."""

import pytest
from packaging.requirements import Requirement

from paranmt_hf.util import requirements
from paranmt_hf.util.requirements import _with_extra, import_problem, look_at, read_requirements


def test_requirements_are_those_of_pyproject(tmp_path):
    needed = read_requirements()
    assert [str(requirement) for requirement, extra in needed if extra == "ray"] == ["ray>=2.60"]
    assert "numpy" in {requirement.name for requirement, extra in needed if extra is None}
    assert not {"test", "dev"} & {extra for _, extra in needed}
    project = tmp_path / "pyproject.toml"
    project.write_text('[project]\ndependencies = ["b>=1"]\n[project.optional-dependencies]\nz = ["a"]\ndev = ["c"]\n')
    assert [(str(requirement), extra) for requirement, extra in read_requirements(project)] == [
        ("b>=1", None),
        ("a", "z"),
    ]


def test_installed_metadata(tmp_path, monkeypatch):
    assert _with_extra(Requirement('ray>=2.60; extra == "ray"'))[1] == "ray"
    assert _with_extra(Requirement('a; python_version < "3.12" and extra == "x"'))[1] == "x"
    monkeypatch.setattr(
        requirements, "requires", lambda name: ["numpy>=2", 'ray>=2.60; extra == "ray"', 'ruff; extra == "dev"']
    )
    found = [(requirement.name, extra) for requirement, extra in read_requirements(tmp_path / "none")]
    assert found == [("numpy", None), ("ray", "ray")]


@pytest.mark.parametrize(
    ("installed", "state", "problem"),
    [
        ("2.10", "present", None),
        ("2.0.0rc1", "too old", "pip install 'paranmt-hf[x]'"),
        ("1.9", "too old", ">=2.0 is needed: pip install 'paranmt-hf[x]'"),
        (None, "broken", "it has no version that can be read"),
        (OSError("half removed"), "broken", "its metadata cannot be read (OSError: half removed)"),
    ],
)
def test_states(monkeypatch, installed, state, problem):
    def version(name):
        if isinstance(installed, Exception):
            raise installed
        return installed

    monkeypatch.setattr(requirements, "version", version)
    found = look_at(Requirement("thing>=2.0"), "x")
    assert found.state == state
    assert found.problem is None if problem is None else problem in found.problem


def test_missing_packages_come_with_the_command_that_installs_them():
    found = look_at(Requirement("no-such-package-at-all>=3"), None)
    assert found.state == "missing" and found.problem == "pip install 'no-such-package-at-all>=3'"


def test_a_package_that_fails_when_it_is_imported(tmp_path, monkeypatch):
    (tmp_path / "broken_thing.py").write_text("raise RuntimeError('no such symbol')\n")
    (tmp_path / "dying_thing.py").write_text("import os\nos._exit(7)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert import_problem("broken-thing") == "RuntimeError: no such symbol"
    assert import_problem("dying-thing") == "the process ended with 7"
    assert import_problem("packaging") is None
