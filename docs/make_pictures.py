"""Draws the README's pictures: `python docs/make_pictures.py` (needs kaleido and Chromium)."""

from pathlib import Path

import pandas as pd

import sessionkit as sk

HERE = Path(__file__).parent
# The stream of the plane: ana's sessions grow, merge and close; one of her records comes too late, one just in time.
MINUTES = (
    ("ana", 2),
    ("bo", 4),
    ("ana", 7),
    ("ana", 11),
    ("bo", 13),
    ("ana", 24),
    ("ana", 17),
    ("bo", 27),
    ("ana", 30),
    ("cy", 36),
    ("ana", 45),
    ("cy", 47),
    ("ana", 52),
    ("ana", 27),
    ("bo", 58),
    ("ana", 41),
    ("ana", 57),
    ("cy", 66),
    ("bo", 42),
    ("ana", 63),
    ("cy", 79),
    ("ana", 82),
)


def main() -> None:
    """Writes the pictures beside this file."""
    records = pd.DataFrame(MINUTES, columns=["key", "minute"])
    plan = (
        sk.group_by_key("key", timestamp="minute", unit="ms")
        .windowed_by(sk.SessionWindows(inactivity_gap="10m", grace="5m"))
        .count()
    )
    run = plan.run(records.assign(minute=records["minute"] * 60_000))
    for theme in ("light", "dark"):
        run.plane("ana", theme=theme).write_image(HERE / f"plane_{theme}.png", scale=1.2)


if __name__ == "__main__":
    main()
