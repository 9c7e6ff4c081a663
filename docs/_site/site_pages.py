"""Hooks of MkDocs: pages from outside docs/, the commands, links, and `llms.txt`."""

from __future__ import annotations

import json
import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation, Section
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
# The package of this checkout is documented, whatever is installed. MkDocs restores the path after the import of this
# file, and what is imported by then is all that the extension of griffe finds.
sys.path.insert(0, str(ROOT))
from site_words import all_commands  # noqa: E402

# Pages of other folders, which the site has under their paths from the top.
OUTSIDE = [
    "CHANGELOG.md",
    "benchmarks/README.md",
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "model_cards").rglob("*.md")),
]
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#:\s]+)(#[^)\s]*)?\)")
ENTRY = re.compile(r"^- \[[^\]]*\]\(([^)]+)\): (.+)$", re.MULTILINE)
FENCED = re.compile(r"(^```[\s\S]*?^```$)", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add pages of other folders, and programs and notebooks as pages."""
    for path in OUTSIDE:
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    for file in list(files):
        path = Path(file.abs_src_path or "")
        if path.suffix in SHOWN:
            page = str(Path(file.src_uri).with_suffix(".md"))
            files.append(File.generated(config, page, content=SHOWN[path.suffix](path)))
    return files


def program_page(path: Path) -> str:
    """A program as a page."""
    return f"# {path.name}\n\n```python\n{path.read_text(encoding='utf8')}```\n"


def notebook_page(path: Path) -> str:
    """The cells of a notebook as a page, with the text that they printed."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf8"))["cells"]:
        text = "".join(cell["source"]).strip("\n")
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        for output in cell.get("outputs", []):
            printed = "".join(output.get("text") or output.get("data", {}).get("text/plain", "")).strip("\n")
            parts += [f"```text\n{printed}\n```"] if printed else []
    return "\n\n".join(parts) + "\n"


# Examples that are pages too, beside the files themselves.
SHOWN = {".py": program_page, ".ipynb": notebook_page}


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Append the commands to their page, and let links lead to pages of the site."""
    if page.file.src_uri == "reference/commands.md":
        markdown = f"{markdown}\n{all_commands()}"
    parts = FENCED.split(markdown)
    return "".join(part if part.startswith("```") else _linked(part, page.file, config, files) for part in parts)


def _linked(text: str, file: File, config: MkDocsConfig, files: Files) -> str:
    """Links of a page from the places of its file in the repository to those on the site."""
    folder = posixpath.dirname(file.src_uri if file.src_uri in OUTSIDE else f"docs/{file.src_uri}")

    titles = dict(_titles(config.nav))

    def link(match: re.Match[str]) -> str:
        image, shown, target, anchor = match.groups(default="")
        place = posixpath.normpath(posixpath.join(folder, target))
        place_on_site = place.removeprefix("docs/")
        if posixpath.splitext(place)[1] in SHOWN:
            place_on_site = f"{posixpath.splitext(place_on_site)[0]}.md"
        found = files.get_file_from_path(place_on_site)
        if found is not None:
            there = posixpath.relpath(found.src_uri, posixpath.dirname(file.src_uri) or ".")
            # Guides name each other by their files; on the site a page has a title.
            shown = titles.get(found.src_uri, shown) if shown.endswith(".md") else shown
            return f"{image}[{shown}]({there}{anchor})"
        if config.repo_url and (ROOT / place).exists():
            return f"{image}[{shown}]({config.repo_url.rstrip('/')}/blob/main/{place}{anchor})"
        # Code without a repository to link to; a mistyped link stays, and the build fails.
        return shown if (ROOT / place).exists() else match[0]

    return LINK.sub(link, text)


def _titles(entries: object) -> Iterator[tuple[str, str]]:
    """Path and title of each page of the navigation in `mkdocs.yml`."""
    for entry in entries if isinstance(entries, list) else []:
        for title, below in entry.items():
            yield from [(below, title)] if isinstance(below, str) else _titles(below)


def on_page_context(context: dict[str, object], page: Page, config: MkDocsConfig, nav: Navigation) -> None:
    """Write `llms.txt` when all pages have been read."""
    if page.file.src_uri == "README.md":
        Path(config.site_dir, "llms.txt").write_text(listed(config, nav, page), encoding="utf8")


def listed(config: MkDocsConfig, nav: Navigation, start: Page) -> str:
    """The navigation as `llms.txt`: title, link and one line for each page."""
    lines = dict(ENTRY.findall(start.markdown or ""))
    parts = [f"# {config.site_name}\n\n> {config.site_description}\n"]
    for section in nav.items:
        pages = _pages(section) if isinstance(section, Section) else []
        entries = [f"- [{page.title}]({_address(page, config)}){_line(page, lines)}\n" for page in pages]
        parts.append(f"## {section.title}\n\n{''.join(entries)}")
    return "\n".join(parts)


def _pages(section: Section) -> list[Page]:
    found: list[Page] = []
    for item in section.children:
        found += _pages(item) if isinstance(item, Section) else [item] if isinstance(item, Page) else []
    return found


def _address(page: Page, config: MkDocsConfig) -> str:
    return (config.site_url or "") + page.url or "./"


def _line(page: Page, lines: dict[str, str]) -> str:
    """What the start page says of a page, or the page's first sentence, after a colon; empty without both."""
    if page.file.src_uri in lines:
        return f": {lines[page.file.src_uri]}"
    text = re.sub(r"<!--[\s\S]*?-->|^#.*$", "", page.markdown or "", flags=re.MULTILINE)
    first = next((part for part in re.split(r"\n\s*\n", text) if re.match(r"\s*[\w`](?!``)", part)), "")
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(first.split()))
    line = re.split(r"(?<=[.:])\s", plain)[0].rstrip(":")
    return f": {line}" if line else ""
