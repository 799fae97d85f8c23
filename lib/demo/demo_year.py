"""A year of self-played games as Tenhou's site shows it: the ids, the zip and lists that have them, and the logs."""

import gzip
import io
import random
import threading
import zipfile
from datetime import datetime, timedelta
from functools import cached_property, lru_cache

from .selfplay import HANCHAN, TONPUU, play

SANMA = 0xB9
RULES = {HANCHAN: "四鳳南喰赤\uff0d", TONPUU: "四鳳東喰赤速", SANMA: "三鳳南喰赤\uff0d"}
LINK = '<a href="http://tenhou.net/0/?log={}">牌譜</a>'
RECENT = timedelta(days=7)  # how long a running year's games stand in hourly files
PLAIN_UNTIL = 2012  # members of older years' zips are not gzipped


class DemoYear:
    """A year with so many four-player `games`; each is played when it is first asked for. The last `duplicates` of them
    have the logs of others. ids: their ids in order, one in six a tonpuu; others: ids of three-player games.
    """

    def __init__(self, games, year, seed, duplicates=0, packed=False):
        if not 0 <= 2 * duplicates <= games:
            raise ValueError("no more than half of the games can be duplicates")
        self.year, self.seed, self.packed = year, seed, packed
        self.bodies = [i if i < games - duplicates else i - games + duplicates for i in range(games)]
        rng = random.Random(seed)
        codes = set()
        while len(codes) < 2 * games + 10:
            codes.add(f"{rng.getrandbits(32):08x}")
        codes = sorted(codes)
        rng.shuffle(codes)
        step = timedelta(days=365) / max(games, 365)
        self.times = [datetime(year, 1, 1) + i * step + timedelta(minutes=rng.randrange(10)) for i in range(games)]
        self.ids = [self._gid(self.times[i], self.table(i), codes[i]) for i in range(games)]
        sanma = [self._gid(time, SANMA, code) for time, code in zip(self.times, codes[games:], strict=False)]
        self.others = sanma[::3]
        self.stray = [self._gid(self.times[0], 0x09, code) for code in codes[-10:]]
        self._numbers = {gid: i for i, gid in enumerate(self.ids)}
        self._lock = threading.Lock()
        self._log = lru_cache(256)(self._play)

    def table(self, number):
        """Table type of a game."""
        return TONPUU if self.bodies[number] % 6 == 5 else HANCHAN

    def _gid(self, time, table, code):
        return f"{time:%Y%m%d%H}gm-{table:04x}-0000-{code}"

    def log(self, gid):
        """A game's log as the server sends it, in bytes; None for an id that is not one of `ids`."""
        number = self._numbers.get(gid)
        if number is None:
            return None
        with self._lock:
            return self._log(self.bodies[number])

    def _play(self, number):
        body = play(self.seed * 1_000_000 + number, self.table(number) == HANCHAN)
        return gzip.compress(body, mtime=0) if self.packed else body

    def _pages(self):
        """{path of an scc page under dat/, its .gz left out: text}; a day a page, in the last week an hour a page."""
        pages = {}
        for gid in sorted(self.ids + self.others):
            recent = self.times[-1] - datetime.strptime(gid[:8], "%Y%m%d") < RECENT
            path = f"scc{gid[:10]}.html" if recent else f"{self.year}/scc{gid[:8]}.html"
            table = int(gid[13:17], 16)
            names = " ".join("東南西北"[: 3 if table == SANMA else 4])
            minute = int(gid[-2:], 16) % 60
            line = f"{gid[8:10]}:{minute:02} | 35 | {RULES[table]} | {LINK.format(gid)} | {names}<br>"
            pages.setdefault(path, []).append(line)
        # with a blank line and a line that ends after its link, as real pages have now and then
        return {path: "\n".join([*lines[:-1], "", lines[-1][:-7]]) + "\n" for path, lines in pages.items()}

    @cached_property
    def files(self):
        """Files of a running year: {path under dat/: bytes}. Days are in a folder, the last week's hours beside it."""
        found = {}
        for path, text in self._pages().items():
            link = LINK.format(self.stray[len(found) % len(self.stray)])
            beside = {"sca": "12:00 | L0000", "scb": "12:00 | 20", "sce": link, "scf": link}
            for kind, content in {"scc": text, **beside}.items():
                name = path.replace("scc", kind) if "<" in content else path.replace("scc", kind).replace("html", "log")
                found[name + ".gz"] = gzip.compress(content.encode(), mtime=0)
        return found

    @cached_property
    def zip(self):
        """The year's zip, bytes: the same files, all in the folder; pages of old years are plain."""
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for path, data in self.files.items():
                name = f"{self.year}/{path.rpartition('/')[2]}"
                if self.year <= PLAIN_UNTIL:
                    name, data = name.removesuffix(".gz"), gzip.decompress(data)
                archive.writestr(zipfile.ZipInfo(name, (self.year + 1, 1, 1, 0, 0, 0)), data)
        return out.getvalue()

    def list(self, old):
        """The JavaScript list of the recent hourly files, or of the `old` daily ones."""
        entries = [f"{{file:'{path}',size:{len(data)}}}" for path, data in self.files.items() if ("/" in path) == old]
        return ("list([\r\n" + ",\r\n".join(entries) + "\r\n]);\r\n").encode() if entries else b"list([]);\r\n"
