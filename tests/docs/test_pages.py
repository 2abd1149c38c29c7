"""The README and docs: every block of code is right, in order and in an empty namespace; every link leads somewhere."""

import ast
import builtins
import contextlib
import inspect
import io
import os
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas
import pytest

import sessionkit as sk
from sessionkit.cli.commands import main
from sessionkit.spark.batch_run import SparkRun
from sessionkit.spark.stream_run import StreamRun
from sessionkit.spark.views.summaries import SparkAudit
from sessionkit.stores.memory.sessions import MemorySessionStore
from sessionkit.stores.memory.windows import MemoryWindowStore
from tests.docs.pages import FROM, IDIOM, NOT_RUN, OUTPUT, ROOT, RUN_BY, Block, Page, dedented, pages
from tests.optional import SparkSession

PAGES = pages()
LANGUAGES = {"python", "pycon", "sh", "text", "java", "sql", "mermaid", ""}
OF_SPARK = re.compile(r"^ *(import|from) pyspark\b", re.MULTILINE)


def is_run(page: Page) -> bool:
    blocks = [block for block in page.blocks if block.mark != RUN_BY]
    return any(block.language == "python" or commands_of(block) for block in blocks)


def commands_of(block: Block) -> list[list[str]]:
    """The words of each command of a block of the shell."""
    lines = block.code.replace("\\\n", " ").splitlines() if block.language == "sh" else []
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def names_of(page: Page) -> str:
    return str(page)


def with_spark(page: Page) -> Any:
    uses_it = any(OF_SPARK.search(block.code) for block in page.blocks_in("python") if block.mark != NOT_RUN)
    marks = [pytest.mark.spark] * uses_it + [pytest.mark.thorough] * (str(page) == "docs/gallery.md")
    return pytest.param(page, id=str(page), marks=marks)


@pytest.fixture
def here(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty folder to work in, for Spark too. The session of all tests, which a page gets by `getOrCreate()`, has
    its settings back afterwards.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "environ", os.environ.copy())
    if request.node.get_closest_marker("spark") is None:
        yield
        return
    spark: SparkSession = request.getfixturevalue("spark")
    hadoop: Any = spark._jvm.org.apache.hadoop.fs  # type: ignore[union-attr]
    files = hadoop.FileSystem.get(spark._jsc.hadoopConfiguration())  # type: ignore[attr-defined]
    home = files.getWorkingDirectory()
    files.setWorkingDirectory(hadoop.Path(str(tmp_path)))
    before = dict(spark.conf.getAll)
    yield
    files.setWorkingDirectory(home)
    for query in spark.streams.active:
        query.stop()
    for name, value in spark.conf.getAll.items():
        if before.get(name) != value and spark.conf.isModifiable(name):
            spark.conf.set(name, before[name]) if name in before else spark.conf.unset(name)


@pytest.mark.parametrize("page", [with_spark(page) for page in PAGES if is_run(page)])
def test_its_code_runs_in_order_in_an_empty_namespace(page: Page, here: None) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = ""
    for block in page.blocks:
        if block.mark == OUTPUT:
            if pandas.__version__ >= "3":  # it has NaN for a missing text of the user's own
                printed = printed.replace("  NaN   ", " None   ")
            assert block.code == printed, f"{page}:{block.line} is not what was printed"
        elif block.mark == NOT_RUN:
            check_unrun(page, block, set(names))
        elif block.mark == RUN_BY:
            continue
        elif block.language == "python" and block.mark != FROM:
            printed = run_python(page, block, names)
        elif block.language == "sh":
            printed = run_shell(page, block)


def run_python(page: Page, block: Block, names: dict[str, Any]) -> str:
    """Runs a block, and gives what it printed. A failure names the line of the page."""
    code = compile("\n" * (block.line - 1) + block.code, str(page.path), "exec")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, names)  # noqa: S102 - our own pages
    return printed.getvalue()


def run_shell(page: Page, block: Block) -> str:
    """Runs commands of sessionkit, as they stand and in this process, and looks up what the others name."""
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    for words in commands_of(block):
        if words[0] == "sessionkit":
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()) as said:
                status = main(words[1:])
            assert status == 0, f"{page}:{block.line}: {shlex.join(words)}: {said.getvalue()}"
        else:
            look_up(page, block, words)
    printed.flush()
    return printed.buffer.getvalue().decode()  # type: ignore[attr-defined]


def look_up(page: Page, block: Block, words: list[str]) -> None:
    """Whether there is what a command names: a target, a file, the version, an extra."""
    place = f"{page}:{block.line}: {shlex.join(words)}"
    if words[0] == "make":
        targets = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        assert set(words[1:2]) <= set(targets), place
    elif words[1:3] == ["-m", "benchmarks"]:
        assert (ROOT / "benchmarks" / "__main__.py").exists(), place
    elif "pip" in words:
        for wheel in re.findall(r"sessionkit_streams-(.+?)-py3-none-any\.whl", " ".join(words)):
            assert wheel == sk.__version__, place
        project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        for extra in re.findall(r"\[([a-z,]+)\]", " ".join(words)):
            assert all(f"\n{name} = [" in project for name in extra.split(",")), place
    else:
        assert words[0] in ("git", "cd", "python", "export"), f"{place}: nothing checks this command"


def check_unrun(page: Page, block: Block, defined: set[str]) -> None:
    """What can be said of code that is not run: it is Python, its names are defined, and ours exist."""
    assert block.note, f"{page}:{block.line}: why is it not run?"
    if block.language != "python":
        return
    tree = ast.parse(block.code)
    nodes = list(ast.walk(tree))
    made = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    made |= {alias.asname or alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
    read = {node.id for node in nodes if isinstance(node, ast.Name)} - made - defined - set(dir(builtins))
    assert not read, f"{page}:{block.line}: {sorted(read)} are not defined"
    for node in nodes:
        name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and re.fullmatch(r"sk\.\w+", name):
            function: Callable[..., Any] = getattr(sk, name.removeprefix("sk."))
            given = {each.arg: None for each in node.keywords if each.arg}
            inspect.signature(function).bind(*node.args, **given)


@pytest.mark.parametrize("page", PAGES, ids=names_of)
def test_what_it_quotes_is_in_the_file_that_it_names(page: Page) -> None:
    for block in page.blocks:
        if block.mark == FROM:
            text = (ROOT / block.note).read_text(encoding="utf-8")
            lines = {line.partition("  # type:")[0].strip() for line in text.splitlines()}
            missing = [line for line in dedented(block.code).splitlines() if line.strip() not in lines]
            assert not missing, f"{page}:{block.line}"


@pytest.mark.parametrize("page", PAGES, ids=names_of)
def test_each_block_says_its_language_and_each_mark_is_one_of_ours(page: Page) -> None:
    for block in page.blocks:
        assert block.language in LANGUAGES, f"{page}:{block.line}"
        assert block.mark in ("", OUTPUT, FROM, NOT_RUN, IDIOM, RUN_BY), f"{page}:{block.line}"
        if block.mark == RUN_BY:  # a test that takes what is written there from the page
            assert page.path.name in (ROOT / block.note).read_text(encoding="utf-8"), f"{page}:{block.line}"


def test_few_blocks_are_not_run() -> None:
    left_out = [f"{page}:{block.line}" for page in PAGES for block in page.blocks if block.mark == NOT_RUN]
    assert len(left_out) <= 4, left_out


@pytest.mark.parametrize("page", [*PAGES, Page(ROOT / "CONTRIBUTING.md")], ids=names_of)
def test_its_links_lead_somewhere(page: Page) -> None:
    for link in page.links():
        target, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", target):
            assert target.startswith("https://"), f"{page}: {link}"
            continue
        found = (page.path.parent / target).resolve() if target else page.path
        assert found.exists() and found.is_relative_to(ROOT), f"{page}: {link}"
        assert not anchor or anchor in Page(found).anchors, f"{page}: {link}"


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, todo = set(), [ROOT / "README.md"]
    while todo:
        path = todo.pop()
        reached.add(path)
        targets = [(path.parent / link.partition("#")[0]).resolve() for link in Page(path).links()]
        todo += [each for each in targets if each.suffix == ".md" and each.is_file() and each not in reached]
    assert {page.path for page in PAGES} - reached == set()


HELD = {
    "run": (sk.Run, SparkRun, StreamRun),
    "plan": (sk.Plan,),
    "audit": (sk.Audit, SparkAudit),
    "store": (MemorySessionStore, MemoryWindowStore),
}


@pytest.mark.parametrize("page", PAGES, ids=names_of)
def test_names_that_its_text_mentions_exist(page: Page) -> None:
    for text in (token.content for token in page.inline if token.type == "code_inline"):
        for variable, name in re.findall(
            r"(?<![\w./\"-])(sk|run|plan|audit|store)\.([a-z]\w*)\b(?!\.(?:parquet|csv|html))", text
        ):
            kinds = HELD.get(variable, (sk,))
            assert any(hasattr(kind, name) or name in getattr(kind, "__annotations__", ()) for kind in kinds), text


def test_options_that_the_page_of_the_command_line_mentions_exist() -> None:
    from typer.main import get_command

    from sessionkit.cli.commands import app

    commands = getattr(get_command(app), "commands", {})
    options = {option for command in commands.values() for each in command.params for option in each.opts}
    page = Page(ROOT / "docs" / "command_line.md")
    written = [token.content for token in page.inline if token.type == "code_inline"]
    written += [block.code for block in page.blocks_in("sh")]
    named = {name for text in written for name in re.findall(r"(?<!\S)--[a-z][a-z-]*", text)}
    assert named - options == {"--help", "--version"}
    headings = {words[1] for block in page.blocks_in("sh") for words in commands_of(block)}
    assert headings | {"demo"} == set(commands)
