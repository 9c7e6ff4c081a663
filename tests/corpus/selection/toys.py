"""The filter that a setting of a selection stands for."""

import pyarrow as pa

from paranmt_hf import ReleaseFilter


def chosen(language="en", **settings):
    """The last filter that these settings make, behind those for missing values."""
    return ReleaseFilter(**settings).filters(pa.schema([]), language)[-1]
