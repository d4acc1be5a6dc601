"""The site: README, docs/, the rules, how to contribute, and the notebooks, linked to one another.

`python -m tests.support.site` gathers them in build/site, as zensical.toml expects, and builds
site/. The files themselves are written for a reader of the repository, so a link to a file that is
no page, such as a config, becomes a page that shows the file. Words behind the command go to
`zensical build`.
"""

import posixpath
import re
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
STAGE = ROOT / "build" / "site"
LANGUAGES = {".toml": "toml", ".py": "python", ".cff": "yaml", ".ipynb": "json"}
LINK = re.compile(r"""(\]\(|<img src=")([^)\s"]+)(\)|")""")
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"^\| `((?:train|wallgo_jax)\.\w+)` \|", re.MULTILINE)


def pages() -> dict[str, str]:
    """The page of the site by the file of the repository that it is made of."""
    found = {
        "README.md": "index.md",
        ".github/CONTRIBUTING.md": "contributing.md",
        "wallgo_jax/RULES.md": "rules.md",
    }
    for path in sorted((ROOT / "docs").rglob("*.md")):
        found[path.relative_to(ROOT).as_posix()] = path.relative_to(ROOT / "docs").as_posix()
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        found[path.relative_to(ROOT).as_posix()] = f"notebooks/{path.stem}.md"
    return found


def place(file: str, known: dict[str, str]) -> str:
    """Where a file of the repository stands in the site; a file that is shown gets a page."""
    if file in known:
        return known[file]
    if file.startswith("docs/"):
        return file.removeprefix("docs/")
    is_text = PurePosixPath(file).suffix in LANGUAGES
    return f"files/{file}.md" if is_text else f"files/{file}"


def relinked(text: str, file: str, known: dict[str, str], linked: set[str]) -> str:
    """A page's text with links as the site has them; the files that it links are added."""
    here = posixpath.dirname(place(file, known))

    def relink(match: re.Match[str]) -> str:
        target, _, heading = match[2].partition("#")
        if not target or re.match(r"[a-z]+:", target):
            return match[0]
        leads_to = posixpath.normpath(posixpath.join(posixpath.dirname(file), target))
        if (ROOT / leads_to).is_dir():
            leads_to = f"{leads_to}/README.md"
        linked.add(leads_to)
        path = posixpath.relpath(place(leads_to, known), here or ".")
        return f"{match[1]}{path}{'#' * bool(heading)}{heading}{match[3]}"

    parts, code = CODE.split(text), CODE.findall(text)
    shown = [LINK.sub(relink, part) for part in parts]
    return "".join(part + block for part, block in zip(shown, [*code, ""], strict=True))


def text_of(file: str) -> tuple[str, dict[str, bytes]]:
    """A file as Markdown, and the pictures that belong to it, by name."""
    path = ROOT / file
    if path.suffix == ".ipynb":
        import nbformat
        from nbconvert import MarkdownExporter

        notebook = nbformat.read(path, as_version=4)
        text, more = MarkdownExporter().from_notebook_node(notebook)
        stem = path.stem
        outputs = {f"{stem}_{name}": data for name, data in more["outputs"].items()}
        for name in more["outputs"]:
            text = text.replace(f"({name})", f"({stem}_{name})")
        return text, outputs
    text = path.read_text(encoding="utf-8")
    if path.suffix in LANGUAGES:
        return f"# {file}\n\n```{LANGUAGES[path.suffix]}\n{text}```\n", {}
    return text, {}


def write(file: str, known: dict[str, str], linked: set[str]) -> None:
    target = STAGE / place(file, known)
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.suffix != ".md":
        shutil.copy(ROOT / file, target)
        return
    text, outputs = text_of(file)
    for name, data in outputs.items():
        (target.parent / name).write_bytes(data)
    if not outputs:
        text = relinked(text, file, known, linked)
    if file == "docs/reference/python.md":
        text += "".join(f"\n::: {name}\n" for name in NAME.findall(text))
    target.write_text(text, encoding="utf-8")


def gather() -> None:
    """Write every page, and every file that a page links, into build/site."""
    shutil.rmtree(STAGE, ignore_errors=True)
    known, linked, written = pages(), set[str](), set[str]()
    linked |= {*known, "docs/site.css"}
    while rest := linked - written:
        for file in sorted(rest):
            write(file, known, linked)
        written |= rest


def main() -> int:
    gather()
    command = [sys.executable, "-m", "zensical", "build", "--strict", *sys.argv[1:]]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
