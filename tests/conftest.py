"""What all tests share: one Spark session, one browser, no skipped test in CI, and what a crash leaves behind."""

import faulthandler
import gc
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.interpreted import INTERPRETED, fewer, let_loops_run_as_python
from tests.memory import MEMORY
from tests.optional import Browser, SparkSession

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # WebGL charts are drawn in software
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
]

# No deadline: the first call of a compiled loop takes its time. A failing input can be replayed from what is printed.
EXAMPLES = 100 if INTERPRETED else fewer(100)  # coverage is measured with all of them
hypothesis.settings.register_profile("sessionkit", deadline=None, print_blob=True, max_examples=EXAMPLES)
hypothesis.settings.load_profile("sessionkit")

if MEMORY is not None and "TMPDIR" not in os.environ:
    os.environ["TMPDIR"] = os.environ["SPARK_LOCAL_DIRS"] = MEMORY

if INTERPRETED:
    let_loops_run_as_python()


@pytest.fixture(scope="session")
def _wrong_sentences() -> list[str]:
    from tests import sentences  # loads the package, after the loops were told how to run

    sentences.watch_all()
    return sentences.found


@pytest.fixture(autouse=True)
def _sentences(_wrong_sentences: list[str]) -> Iterator[None]:
    """Every sentence that a test makes is looked at."""
    _wrong_sentences.clear()
    yield
    assert not _wrong_sentences, "\n".join(_wrong_sentences)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is loaded for all tests is not looked through for garbage again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


CRASHES, STACKS_SHOWN = Path("out", "crashes"), 40


@pytest.hookimpl(trylast=True)  # after pytest's own, which writes where nobody reads it: into a process that is gone
def pytest_configure(config: pytest.Config) -> None:
    """Where tests are spread over processes, the stacks of one that crashes are written into a file."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None:
        shutil.rmtree(CRASHES, ignore_errors=True)
        CRASHES.mkdir(parents=True, exist_ok=True)
    else:
        faulthandler.enable((CRASHES / worker).open("w"))


def pytest_unconfigure() -> None:
    gc.unfreeze()  # else libraries say at the end that they leak


def pytest_itemcollected(item: pytest.Item) -> None:
    """Where tests are spread over processes, one has the Spark session for streams, and one that for batches.

    A third has the tests that each start a Spark of their own: the group OWN_SPARK.
    """
    if not item.get_closest_marker("spark"):
        return
    # Spark gives the worker of a stateful stream ten seconds to start, by no setting; a busy machine can take longer.
    item.add_marker(pytest.mark.flaky(reruns=2, only_rerun="Python worker failed to connect back"))
    if not item.get_closest_marker("xdist_group"):
        is_of_streams = any(word in item.path.stem for word in ("stream", "checkpoint", "replay"))
        item.add_marker(pytest.mark.xdist_group("spark for streams" if is_of_streams else "spark"))


def skipped_in_ci(config: pytest.Config) -> list[str]:
    """Names of the tests that were skipped although this is CI, where every tool has to be there."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("SESSIONKIT_CI") != "1" or reporter is None:
        return []
    return [report.nodeid for report in reporter.stats.get("skipped", [])]


def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.exitstatus == pytest.ExitCode.OK and skipped_in_ci(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    skipped = skipped_in_ci(config)
    if skipped:
        terminalreporter.section("skipped tests fail in CI (SESSIONKIT_CI=1)", red=True)
        for name in skipped:
            terminalreporter.line(name)
    for file in sorted(CRASHES.glob("*")):
        if stacks := file.read_text(encoding="utf-8", errors="replace"):
            terminalreporter.section(f"the stacks of {file.name}, which crashed", red=True)
            terminalreporter.line("\n".join(stacks.splitlines()[:STACKS_SHOWN]))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local Spark session on two cores."""
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    from sessionkit.errors import SparkUnavailable
    from tests.spark.session import start_spark

    try:
        session = start_spark()
    except SparkUnavailable as error:
        pytest.skip(str(error))
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def chromium() -> str | None:
    """The system's own, if there is one."""
    return next((path for name in CHROMIUM_NAMES if (path := shutil.which(name))), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The system's Chromium, started once: its start is what costs time."""
    pytest.importorskip("playwright", reason="playwright is not installed")
    from playwright.sync_api import sync_playwright

    path = chromium()
    if path is None:
        pytest.skip(
            f"no Chromium on PATH (looked for {', '.join(CHROMIUM_NAMES)}); install one, e.g. apt-get install chromium"
        )
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=CHROMIUM_ARGUMENTS)
        yield running
        running.close()
