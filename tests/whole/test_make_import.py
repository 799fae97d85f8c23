"""make import: a folder as people have it, by one command, and make run: each game encoded once, and no hand work."""

import bz2
import collections
import gzip
import io
import json
import sqlite3
import tarfile
import zipfile

import pytest
from flows import cache, make, records, script, stand_in

from lib.demo.selfplay import play
from lib.store import identity

N_GAMES, EACH, STEP = 75, 50, 5  # games in all, in each place, and by how many each place begins later


@pytest.fixture(scope="module")
def logs():
    """Self-played games by their ids."""
    return {f"20240101{n % 24:02}gm-00e1-0000-{n:08x}": play(n, hanchan=False) for n in range(N_GAMES)}


def put_database(path, columns, rows):
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE logs ({columns} BLOB)")
        connection.executemany("INSERT INTO logs VALUES (?, '2024-01-01', ?)", rows)
    connection.close()


def fill(folder, logs, links):
    """50 logs each in every form, with the next form having five others."""
    folder.mkdir()
    ids = iter(range(0, N_GAMES, STEP))

    def some():
        first = next(ids)
        return dict(list(logs.items())[first:first + EACH]).items()

    (folder / "plain").mkdir()
    for game, data in some():
        (folder / "plain" / f"{game}.xml").write_bytes(data)
    (folder / "mjlog").mkdir()
    for i, (game, data) in enumerate(some()):
        (folder / "mjlog" / f"{game}&tw={i % 4}.mjlog").write_bytes(gzip.compress(data))
    with zipfile.ZipFile(folder / "logs.zip", "w", zipfile.ZIP_DEFLATED) as z:
        for game, data in some():
            z.writestr(f"2024/{game}.txt", data)
    with tarfile.open(folder / "logs.tar.gz", "w:gz") as t:
        for game, data in some():
            info = tarfile.TarInfo(f"./{game.upper()}.MJLOG")
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))
    put_database(folder / "houou.db", "id TEXT PRIMARY KEY, date TEXT, log",
                 [(game, gzip.compress(data)) for game, data in some()])
    put_database(folder / "phoenix.db", "log_id TEXT PRIMARY KEY, date TEXT, log_content",
                 [(game, bz2.compress(data)) for game, data in some()])
    known = list(logs)[:EACH - len(links)]
    (folder / "my games.txt").write_text("".join(f"https://tenhou.net/0/?log={game}&tw=3\n" for game in known + links))


def test_a_folder_with_logs_in_every_form_ends_encoded_each_game_once(tmp_path, logs):
    work, folder = tmp_path / "w", tmp_path / "my logs (old)"
    with stand_in(tmp_path, "--games", 5) as (url, requests):
        server, words = {"TENHOU_URL": url, "DELAY": "0"}, [f"TENHOU_URL={url}", "DELAY=0"]
        ids = script("fetch-index", "--work", tmp_path / "lists", "--year", 2024, settings=server)
        ids = script("extract-ids", "--work", tmp_path / "lists", "--year", 2024).stdout.split()
        assert len(ids) == 5
        fill(folder, logs, ids)
        first = make("import", f"WORK={work}", f"FROM={folder}", *words)
        assert first.returncode == 0
        listed, *told = first.stderr.splitlines()
        assert listed.endswith("my games.txt: a list that names 50 games"), listed
        assert told == ["import-logs: the lists name 5 games not here yet; the next run downloads what they name, "
                        f"unless you first delete {work}/game_ids_imported.txt: make run WORK={work}",
                        "import-logs: 75 imported, 0 duplicates, 225 here already, 1 list of games"]
        assert "left to download : 5" in make("status", f"WORK={work}").stdout
        run = make("run", f"WORK={work}", *words)
        assert run.returncode == 0 and "80 encoded, 0 failed, 0 corrupt" in run.stderr, run.stderr
        assert sorted(request["gid"] for request in requests() if request["gid"]) == ids
        assert set(cache(work)) == {*logs, *ids}
        events = [json.loads(line) for line in (work / "manifest.jsonl").read_text().splitlines()]
        encoded = collections.Counter(event["gid"] for event in events if event["status"] == "encoded")
        assert set(encoded.values()) == {1}
        assert all(str(folder) in event["source"] for event in events
                   if event["status"] == "downloaded" and event["gid"] in logs)
        again = make("import", f"WORK={work}", f"FROM={folder}", *words)
        assert again.stderr == f"{listed}\nimport-logs: 0 imported, 0 duplicates, 300 here already, 1 list of games\n"
        assert "nothing to do" in make("run", f"WORK={work}", *words).stderr
        assert len(events) == len((work / "manifest.jsonl").read_text().splitlines())
        assert len([request for request in requests() if request["gid"]]) == 5
    assert make("-s", "import", f"WORK={work}", f"FROM={folder}").stderr == ""


def test_logs_copied_into_xml_as_they_are_end_encoded_too(tmp_path, logs):
    some, work = list(logs.items())[:6], tmp_path / "w"
    (work / "xml").mkdir(parents=True)
    names = "{}.txt", "{}.xml", "{}.mjlog", "{}&tw=1.mjlog", "{}.xml.gz", "{}"
    for name, (game, data) in zip(names, some, strict=True):
        (work / "xml" / name.format(game)).write_bytes(data if name in ("{}.txt", "{}.xml") else gzip.compress(data))
    run = make("run", f"WORK={work}")
    assert run.returncode == 0 and "6 encoded, 0 failed" in run.stderr
    assert "xmls (unknown) : 6" in run.stdout + run.stderr
    assert {path.name: path.read_bytes() for path in (work / "xml").iterdir() if path.name != identity.MARKER} == {
        f"{game}.txt": data for game, data in some}
    assert {record["status"] for record in records(work).values()} == {"encoded"}


def test_make_import_without_a_place_says_how(tmp_path):
    done = make("import", f"WORK={tmp_path / 'w'}")
    assert f": name a folder or file, e.g. make import FROM=~/logs WORK={tmp_path / 'w'}\n" in done.stderr
    assert done.returncode == 2 and not (tmp_path / "w").exists()
