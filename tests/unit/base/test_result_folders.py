"""Folders that users name: their own files are never replaced, former results are, and nothing is seen half-written."""

import errno
import json
import os
from pathlib import Path

import pytest

from sessionkit.base import result_folders as results
from sessionkit.base.result_folders import MANIFEST, Results
from sessionkit.errors import InvalidArgument, WriteFailed

NAMES = ("table", "trace", "report.html")


def write(folder: Path, text: str, **options: bool) -> None:
    with Results(folder, NAMES, alone=True) as made:
        for name in (f"table/part-{text}.parquet", "table/_SUCCESS", f"trace/records/{text}", "report.html"):
            made.write(name, lambda path: path.write_text(text, encoding="utf-8"))
        made.place()


def tree(folder: Path) -> dict[str, str]:
    """All files but the manifest, links not followed."""
    found = (path for path in folder.rglob("*") if path.is_symlink() or path.is_file())
    return {
        str(path.relative_to(folder)): "link" if path.is_symlink() else path.read_text(encoding="utf-8")
        for path in found
        if path.name != MANIFEST
    }


def results_of(text: str) -> dict[str, str]:
    names = (f"table/part-{text}.parquet", "table/_SUCCESS", f"trace/records/{text}", "report.html")
    return dict.fromkeys(names, text)


def test_former_results_are_replaced_and_leave_nothing(tmp_path: Path) -> None:
    for text in ("first", "second", "second"):
        write(tmp_path / "deep" / "out", text)
        assert tree(tmp_path / "deep" / "out") == results_of(text)
    assert sorted(os.listdir(tmp_path / "deep" / "out")) == sorted((*NAMES, MANIFEST))


@pytest.mark.parametrize("place", ["table/mine.csv", "trace/records/notes.txt", "trace/mine/deep/x", "table/.hidden"])
def test_a_file_of_the_users_among_them_is_refused(tmp_path: Path, place: str) -> None:
    write(tmp_path, "first")
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / place).write_text("mine", encoding="utf-8")
    before = tree(tmp_path)
    with pytest.raises(InvalidArgument, match="files that sessionkit did not write are in the way") as refused:
        write(tmp_path, "second")
    assert str(tmp_path / place) in str(refused.value)
    assert tree(tmp_path) == before


def test_results_of_another_owner_are_refused_with_its_name(tmp_path: Path) -> None:
    """A folder that another query wrote was said to hold files that sessionkit did not write."""

    def batch(owner: str) -> None:
        place = {"manifest": f"batch=0/{MANIFEST}", "owner": owner, "wrote": f"the query of {owner}"}
        with Results(tmp_path, ["batch=0"], **place) as made:  # type: ignore[arg-type]
            made.write("batch=0/part", lambda path: path.write_text(owner, encoding="utf-8"))
            made.place()

    batch("a")
    batch("a")
    told = r"^another query wrote its results here; got .*/batch=0, by the query of a \(id a\); another folder, or the"
    with pytest.raises(InvalidArgument, match=told):
        batch("b")
    assert tree(tmp_path) == {"batch=0/part": "a"}
    assert sorted(os.listdir(tmp_path)) == ["batch=0"]
    (tmp_path / "batch=0" / "mine.csv").write_text("mine", encoding="utf-8")
    with pytest.raises(InvalidArgument, match="files that sessionkit did not write are in the way"):
        batch("b")


def test_a_result_that_was_changed_is_the_users(tmp_path: Path) -> None:
    write(tmp_path, "first")
    (tmp_path / "report.html").write_text("other", encoding="utf-8")
    with pytest.raises(InvalidArgument, match=r"report\.html"):
        write(tmp_path, "second")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == "other"


def test_links_and_empty_folders_are_the_users(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "precious").write_text("mine", encoding="utf-8")
    for name, make in (("table", lambda path: path.symlink_to(mine)), ("trace", Path.mkdir)):
        out = tmp_path / f"out-{name}"
        write(out, "first")
        for path in sorted((out / name).rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        (out / name).rmdir()
        make(out / name)
        with pytest.raises(InvalidArgument, match=f"out-{name}/{name}"):
            write(out, "second")
    assert (mine / "precious").read_text(encoding="utf-8") == "mine"


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine", encoding="utf-8")
    with pytest.raises(
        InvalidArgument, match=r"holds files that sessionkit did not write; got .*thesis\.tex; .*--overwrite"
    ):
        write(tmp_path, "first")
    with Results(tmp_path, NAMES) as made:  # asked to write beside it
        for name in NAMES:
            made.write(name, lambda path: path.write_text("x", encoding="utf-8"))
        made.place()
    assert tree(tmp_path) == {"thesis.tex": "mine", **dict.fromkeys(NAMES, "x")}
    write(tmp_path, "second")  # it holds a report of ours now
    assert tree(tmp_path) == {"thesis.tex": "mine", **results_of("second")}


@pytest.mark.parametrize("text", ["", "{}", "[" * 100_000, '{"format": 1, "owner": "", "files": [["table"]]}', "\xff"])
def test_a_manifest_that_is_none_lists_nothing(tmp_path: Path, text: str) -> None:
    write(tmp_path, "first")
    (tmp_path / MANIFEST).write_bytes(text.encode("latin-1"))
    with pytest.raises(InvalidArgument, match="in the way"):
        write(tmp_path, "second")
    assert tree(tmp_path) == results_of("first")


def test_what_came_meanwhile_is_refused_and_stays(tmp_path: Path) -> None:
    write(tmp_path, "first")
    with pytest.raises(InvalidArgument, match=r"table/mine\.csv"), Results(tmp_path, NAMES) as made:
        for name in NAMES:
            made.write(name, lambda path: path.write_text("x", encoding="utf-8"))
        (tmp_path / "table" / "mine.csv").write_text("mine", encoding="utf-8")
        made.place()
    assert tree(tmp_path) == {**results_of("first"), "table/mine.csv": "mine"}


@pytest.mark.parametrize("name", ["report.html", "table"])
@pytest.mark.parametrize("has_former", [True, False])
def test_what_comes_as_the_places_are_taken_is_refused_and_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_former: bool, name: str
) -> None:
    """After the last look, and before the result is moved there: a file was replaced."""
    if has_former:
        write(tmp_path, "first")
    real = Results._swap
    lexists = os.path.lexists
    mine = tmp_path / name if name.endswith(".html") else tmp_path / name / "mine.csv"

    def swap(made: Results, swapped: str, *, is_written: bool) -> None:
        def look(path: os.PathLike[str]) -> bool:
            found = lexists(path)
            if path == tmp_path / name and not has_former:
                comes()
            return found

        def comes() -> None:
            monkeypatch.undo()
            mine.parent.mkdir(exist_ok=True)
            mine.write_text("mine", encoding="utf-8")

        def moved(*places: Path) -> None:
            rename(*places)
            comes()

        rename = os.rename
        if swapped == name:
            if has_former:
                monkeypatch.setattr(os, "rename", moved)
            else:
                monkeypatch.setattr(os.path, "lexists", look)
        real(made, swapped, is_written=is_written)

    monkeypatch.setattr(Results, "_swap", swap)
    with pytest.raises(InvalidArgument, match="files that sessionkit did not write are in the way") as refused:
        write(tmp_path, "second")
    assert str(mine) in str(refused.value)
    kept = {place: text for place, text in results_of("first").items() if not place.startswith(name)}
    assert tree(tmp_path) == {**(kept if has_former else {}), str(mine.relative_to(tmp_path)): "mine"}


def test_nothing_is_seen_before_all_is_whole(tmp_path: Path) -> None:
    write(tmp_path, "first")

    def full(path: Path) -> None:
        path.write_text("half", encoding="utf-8")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    telling = r"cannot be written; got .*/trace/records \(No space left"
    with pytest.raises(WriteFailed, match=telling) as failed, Results(tmp_path, NAMES) as made:
        made.write("table", lambda path: path.write_text("second", encoding="utf-8"))
        made.write("trace/records", full)
    assert str(tmp_path / "trace" / "records") in str(failed.value)
    assert tree(tmp_path) == results_of("first")
    assert sorted(os.listdir(tmp_path)) == sorted((*NAMES, MANIFEST))


@pytest.mark.parametrize("at", range(1, 12))
def test_a_kill_at_any_rename_leaves_what_the_next_run_replaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Each place holds whole results of one of the runs, and nothing of it has to be moved away by hand."""
    write(tmp_path, "first")
    left = at

    class Killed(BaseException):
        pass

    def dying(rename: str) -> None:
        real = getattr(os, rename)

        def move(*places: str) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                monkeypatch.undo()
                monkeypatch.setattr(results.shutil, "rmtree", lambda *args, **more: None)
                for name in ("rename", "link", "unlink"):
                    monkeypatch.setattr(results.os, name, lambda *args: None)
                raise Killed
            real(*places)

        monkeypatch.setattr(results.os, rename, move)

    for rename in ("rename", "replace", "link"):
        dying(rename)
    try:
        write(tmp_path, "second")
        assert left > 0
    except Killed:
        pass
    monkeypatch.undo()
    for name in NAMES:
        mine = {key: text for key, text in tree(tmp_path).items() if key.startswith(name)}
        assert not mine or mine in [
            {key: text for key, text in results_of(run).items() if key.startswith(name)} for run in ("first", "second")
        ]
    write(tmp_path, "third")
    assert tree(tmp_path) == results_of("third")
    assert sorted(os.listdir(tmp_path)) == sorted((*NAMES, MANIFEST))


def test_what_another_process_is_writing_is_left_alone(tmp_path: Path) -> None:
    with Results(tmp_path, NAMES) as made:
        made.write("table", lambda path: path.write_text("mine", encoding="utf-8"))
        write(tmp_path, "other")
        assert len(list(tmp_path.glob(".sessionkit-*/new/table"))) == 1


def test_the_manifest_lists_what_was_written(tmp_path: Path) -> None:
    write(tmp_path, "first")
    told = json.loads((tmp_path / MANIFEST).read_text(encoding="utf-8"))
    assert sorted(name for name, _, _ in told["files"]) == sorted(results_of("first"))
