"""The one place where ids become paths lets nothing through that is no id, and nothing that is no file."""

import errno
import os

import pytest
from support import BAD_IDS, game

from lib.store import wording, workdir
from lib.store.errors import Problem


@pytest.mark.parametrize("text", BAD_IDS)
def test_what_is_no_id_never_becomes_a_path(text):
    with pytest.raises(Problem, match="not a game id"):
        workdir.xml("work", text)


def test_an_id_s_path_is_in_xml():
    assert workdir.xml("work", game(1)) == f"work/xml/{game(1)}.txt"


def test_files_are_told_from_what_is_none_and_what_is_written_aside_is_not_there_yet(work):
    xml = workdir.path(work, "xml")
    for name in (f"{game(0)}.txt", f"{game(1)}.xml", game(2), f"{game(3)}.txt.txt", "notes.txt", f".{game(4)}.txt",
                 f".tmp-host-1-{game(5)}.txt", f"{game(6)}\n.txt", f"{game(7)}.TXT"):
        with open(os.path.join(xml, name), "wb"):
            pass
    os.symlink(os.path.join(xml, f"{game(0)}.txt"), os.path.join(xml, f"{game(8)}.txt"))
    os.mkdir(os.path.join(xml, f"{game(9)}.txt"))
    os.mkfifo(os.path.join(xml, f"{game(10)}.txt"))
    found = [(known, entry.name) for known, entry in workdir.xml_files(work)]
    assert [known for known, _ in found if known] == [game(0)]
    assert {name for known, name in found if not known} == {
        f"{game(1)}.xml", game(2), f"{game(3)}.txt.txt", "notes.txt", f"{game(6)}\n.txt", f"{game(7)}.TXT",
        f"{game(8)}.txt", f"{game(9)}.txt", f"{game(10)}.txt"}


def test_no_xml_directory_has_no_files(tmp_path):
    assert list(workdir.xml_files(str(tmp_path))) == []


@pytest.mark.parametrize("error", [errno.EACCES, errno.EROFS, errno.ENOSPC])
def test_a_default_work_directory_that_may_not_be_made_is_told_with_another(tmp_path, monkeypatch, error):
    def refuse(path):
        raise OSError(error, os.strerror(error), path)

    monkeypatch.setattr(os, "mkdir", refuse)
    monkeypatch.setattr(wording, "_default", lambda: str(tmp_path / "data" / "x"))
    monkeypatch.delenv("WORK", raising=False)
    monkeypatch.setenv("HOME", "/home/me")
    told = f"{tmp_path}/data: {os.strerror(error)}; name a directory that you may write in, e.g. WORK=/home/me/tenhou"
    with pytest.raises(OSError if error == errno.ENOSPC else Problem) as caught:
        workdir.make(str(tmp_path / "data" / "x"))
    assert error == errno.ENOSPC or str(caught.value) == told
    with pytest.raises(OSError):
        workdir.make(str(tmp_path / "data" / "y"))


def test_making_the_folders_twice_is_no_error(work):
    workdir.make(work)
    assert sorted(os.listdir(work)) == ["cache", "format.json", "raw", "xml"]
