"""Reading of tables whose columns are languages, for the tests of bitext formats."""


def write_text(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


def rows(table, *columns):
    """The rows of some columns of a table as tuples of text."""
    found = []
    for piece in table.pieces(columns):
        found += zip(*[column.to_pylist() for column in piece.columns], strict=True)
    return [tuple(None if text is None else text.decode() for text in row) for row in found]
