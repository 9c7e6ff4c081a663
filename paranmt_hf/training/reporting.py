"""Services that trainers report to."""

from __future__ import annotations

from transformers.integrations import get_reporting_integration_callbacks

from paranmt_hf.errors import InputError


def check_reporting(name: str) -> None:
    """Refuse a service to report to that does not exist or is not installed.

    Raises:
        InputError: It cannot be reported to.
    """
    try:
        for callback in get_reporting_integration_callbacks([name]):
            callback()
    except (ValueError, RuntimeError, ImportError) as error:
        reason = str(error).split("\n")[0]
        raise InputError(f"cannot report to {name!r}: {reason}") from None
