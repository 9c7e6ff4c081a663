"""Work that continues with other settings."""

import pytest

from paranmt_hf.util import work as work_module


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_kill_while_work_of_other_settings_is_removed(tmp_path, monkeypatch, size):
    """Whatever settings come next, they do not continue with what is left of the first."""

    def continued(size):
        work_module.continue_with(tmp_path, {"size": size}, keep={"kept"}, holds=lambda work: False)

    def killed(work, keep=()):
        for path in work.iterdir():
            if path.name not in {"left", *keep}:
                path.unlink()
        raise KeyboardInterrupt

    continued(1)
    for name in ("kept", "left", "removed"):
        (tmp_path / name).touch()
    with monkeypatch.context() as patch:
        patch.setattr(work_module, "clear", killed)
        with pytest.raises(KeyboardInterrupt):
            continued(2)
    continued(size)
    assert (tmp_path / "kept").exists() and not (tmp_path / "left").exists()
