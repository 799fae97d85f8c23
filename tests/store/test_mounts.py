"""A drive of Windows, as WSL shows it, is told from the file systems of Linux."""

import pytest
from flows import ROOT, script

from lib.store import mounts

MOUNTS = r"""/dev/sdc / ext4 rw,relatime 0 0
C:\134 /mnt/c 9p rw,noatime,aname=drvfs;path=C:\134;uid=1000,cache=5,trans=fd,rfd=8,wfd=8 0 0
D: /mnt/d drvfs rw,noatime 0 0
drvfsE /mnt/my\040e virtiofs rw 0 0
/dev/sdd /mnt/c/linux ext4 rw 0 0
host0 /srv 9p rw,trans=virtio 0 0
C:\134 /over 9p rw,aname=drvfs 0 0
/dev/sde /over ext4 rw 0 0
"""


@pytest.mark.parametrize(("path", "windows"), [
    ("/mnt/c/tenhou", True), ("/mnt/c", True), ("/mnt/d/x/y", True), ("/mnt/my e/x", True), ("/mnt/cx", False),
    ("/home/me", False), ("/mnt/c/linux/x", False), ("/srv/x", False), ("/", False), ("/over/x", False)])
def test_a_drive_of_windows_is_known_by_how_it_is_mounted(tmp_path, monkeypatch, path, windows):
    (tmp_path / "mounts").write_text(MOUNTS)
    monkeypatch.setattr(mounts, "_MOUNTS", str(tmp_path / "mounts"))
    assert mounts.is_windows_drive(path) is windows


def test_where_nothing_tells_of_mounts_nothing_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(mounts, "_MOUNTS", str(tmp_path / "none"))
    assert not mounts.is_windows_drive("/mnt/c")


@pytest.mark.parametrize(("name", "args"), [("with-lock", ["--create", "true"]), ("probe-fs", ["--rounds", 1])])
def test_a_work_directory_on_such_a_drive_is_told(tmp_path, name, args):
    work = tmp_path / "w"
    work.mkdir()
    (tmp_path / "mounts").write_text(f"C: {tmp_path} 9p aname=drvfs 0 0\n")
    (tmp_path / "sitecustomize.py").write_text("import os, sys\nsys.path.insert(0, os.environ['TREE'])\n"
                                               "from lib.store import mounts\n"
                                               f"mounts._MOUNTS = {str(tmp_path / 'mounts')!r}\n")
    told = script(name, "--work", work, *args, settings={"PYTHONPATH": str(tmp_path), "TREE": str(ROOT)}).stderr
    assert told.startswith(f"{name}: {work} is on a Windows drive: slow,")
    assert "Windows drive" not in script(name, "--work", work, *args).stderr
