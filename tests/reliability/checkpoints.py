"""A stream's checkpoint, damaged: what is read from it is right, or refused in a line of ours that says where."""

import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import sessionkit as sk
from sessionkit.errors import InvalidArgument, StoreCorrupted
from tests.optional import SparkSession
from tests.reliability.pieces import Outcome
from tests.spark.common import STRATEGIES, WINDOWS, plan_of, read_stream, records, run_through, write_files
from tests.spark.session import start_spark

PIECE, GOAL = 25, 500
PARTS = ("commits", "offsets", "state")  # what a state is read from
Content = list[Any]


def check(seed: int, count: int) -> Outcome:
    """`count` damaged copies of one checkpoint; each is asked as a store or as a DataFrame."""
    dice, noted, wrong = random.Random(seed), Counter[str](), []
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = made(start_spark(), Path(folder), seed)
        right = {way: ask(checkpoint, None) for way, ask in ASKED.items()}

        @cache
        def as_before(way: str) -> list[Content]:
            return [ASKED[way](checkpoint, batch) for batch in (0, 1)]

        for case in range(count):
            copy = Path(folder) / f"damaged-{case}"
            shutil.copytree(checkpoint, copy)
            what, way = damage(copy, dice), dice.choice([*ASKED])
            outcome, told = answer(ASKED[way], copy, right[way], partial(as_before, way))
            noted[outcome] += 1
            if outcome == "wrong":
                wrong.append(f"seed {seed}, case {case}: {what}, asked as {way}: {told}")
            shutil.rmtree(copy)
    return Outcome(count, wrong, dict(noted))


def made(spark: SparkSession, folder: Path, seed: int) -> Path:
    """The checkpoint of three micro-batches."""
    table = records(2, seed=seed).slice(0, 600)
    windows = WINDOWS[[*WINDOWS][seed % len(WINDOWS)]]
    plan = plan_of(windows, STRATEGIES[seed % 2])
    run_through(
        plan.stream(read_stream(spark, write_files(table, folder / "in", [200, 400]))).events(), folder / "whole"
    )
    return folder / "whole"


def damage(checkpoint: Path, dice: random.Random) -> str:
    """Damages one file; what was done, in words."""
    files = sorted(file for part in PARTS for file in (checkpoint / part).rglob("*") if file.is_file())
    file = dice.choice(files)
    raw, how = file.read_bytes(), dice.choice(["bit", "bit", "cut", "empty", "noise", "missing"])
    if how == "bit":
        place = dice.randrange(len(raw))
        file.write_bytes(raw[:place] + bytes([raw[place] ^ (1 << dice.randrange(8))]) + raw[place + 1 :])
    elif how == "missing":
        file.unlink()
    else:
        kept = raw[: dice.randrange(len(raw))] if how == "cut" else b""
        file.write_bytes(dice.randbytes(len(raw)) if how == "noise" else kept)
    unsummed = dice.random() < 0.5  # as on a storage that keeps no sums beside the files
    if unsummed:
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    return f"{how} in {file.relative_to(checkpoint)}{', without its sum' if unsummed else ''}"


def answer(
    ask: Callable[[Path, int | None], Content], checkpoint: Path, right: Content, older: Callable[[], list[Content]]
) -> tuple[str, str]:
    """What became of it, and what was told."""
    try:
        found = ask(checkpoint, None)
    except StoreCorrupted as error:
        names_place = str(checkpoint) in str(error) and "\n" not in str(error)
        return ("refused" if names_place else "wrong"), str(error)
    except InvalidArgument as error:  # of the logs nothing is left that names a micro-batch
        is_empty = not any(file.name.isdigit() for file in (checkpoint / "commits").iterdir())
        return ("refused" if is_empty else "wrong"), str(error)
    except Exception as error:
        return "wrong", f"{type(error).__name__}: {error}"[:2_000]
    if found == right:
        return "right", ""
    is_uncommitted = not (checkpoint / "commits" / "2").exists()
    return ("as before the last micro-batch" if is_uncommitted and found in older() else "wrong"), repr(found)[:500]


def as_store(checkpoint: Path, batch: int | None) -> Content:
    """What a store over it holds."""
    store = sk.open_store("spark", checkpoint=checkpoint, batch=batch)
    return [sorted(map(repr, store.rows())), [store.snapshot(partition) for partition in store.partitions]]


def as_frame(checkpoint: Path, batch: int | None) -> Content:
    """What a DataFrame over it holds."""
    return sorted(map(repr, sk.read_state(checkpoint, batch=batch).collect()))


ASKED: dict[str, Callable[[Path, int | None], Content]] = {"store": as_store, "frame": as_frame}
