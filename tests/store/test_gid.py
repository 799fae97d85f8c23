"""Game ids: what is one, what people paste instead, and that nothing else passes for one."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import BAD_IDS

from lib.store import gid

PLAIN = "2017010100gm-00a9-0000-0123abcd"


@pytest.mark.parametrize("text", [PLAIN, "20070101gm-00a9-0000-0123abcd", "2017010100gm-00a9-12345-0123abcd",
                                  "2017010123gm-ffff-0000-ffffffff"])
def test_an_id_of_any_era_is_one_and_stands_for_itself(text):
    assert gid.is_gid(text) and gid.parse(text) == text


@pytest.mark.parametrize("text", BAD_IDS)
def test_what_is_no_bare_id_is_none(text):
    assert not gid.is_gid(text)


@pytest.mark.parametrize("text", [
    f"http://tenhou.net/0/?log={PLAIN}", f"https://tenhou.net/3/?log={PLAIN}&tw=2", f"{PLAIN}&tw=0&ts=5",
    f"{PLAIN}.mjlog", f"{PLAIN}.txt", f"{PLAIN}&tw=3.mjlog", f"  {PLAIN}\r\n", f"tenhou.net/0/?log={PLAIN}",
    f"//www.tenhou.net/0/?log={PLAIN}&tw=1", f"/?log={PLAIN}", f"?log={PLAIN}", f"log={PLAIN}", f"/0/log/?{PLAIN}",
    f"https://tenhou.net/0/log/?{PLAIN}", f"http://tenhou.net/0/?tw=1&log={PLAIN}", f"tenhou.net/?log={PLAIN}",
    f"HTTP://TENHOU.NET/0/?LOG={PLAIN.upper()}", f"{PLAIN}.xml.gz", f"https://tenhou.net/3/?log={PLAIN}&n0=%41%e3"])
def test_links_and_file_names_give_the_id_in_them(text):
    assert gid.parse(text) == PLAIN


@pytest.mark.parametrize("text", [
    f"https://example.com/0/?log={PLAIN}", f"{PLAIN} {PLAIN}", f"../{PLAIN}", f"{PLAIN}/x", f"xml/{PLAIN}.txt",
    f"x{PLAIN}", f"{PLAIN}\0", f"{PLAIN}.exe", "20120903gm-0089-0000-x666f4d41e26b",
    "2012090306gm-0089-0000-x666f4d41e26"])
def test_what_only_contains_an_id_gives_none(text):
    assert gid.parse(text) is None


def test_all_ids_in_a_text_are_found_whatever_stands_between_them():
    other, hidden = "2012090306gm-0089-0000-dc81a77a", "2012090306gm-0089-0000-x666f4d41e26b"
    text = f"<a href='/0/?log={PLAIN}&tw=1'>x</a>,\"{other.upper()}\",{hidden};x_{PLAIN}_y\n"
    text += f"1{PLAIN} {PLAIN}0 {PLAIN[:-1]}"
    assert list(gid.find(text)) == [PLAIN, other, other, PLAIN]


@pytest.mark.parametrize("name", [
    f"{PLAIN}.mjlog", f"a/b/{PLAIN}&tw=2.mjlog", f"C:\\logs\\{PLAIN} (1).xml", f"index.html?{PLAIN}",
    f"2012090306gm-0089-0000-dc81a77a/{PLAIN}", f"mjlog_{PLAIN}_me.XML.GZ", f"{PLAIN}={PLAIN}"])
def test_the_last_part_of_a_path_has_a_log_s_id_in_any_place(name):
    assert gid.of_name(name) == PLAIN


@pytest.mark.parametrize("name", ["", "a.mjlog", f"{PLAIN}/a.mjlog", f"{PLAIN} 2012090306gm-0089-0000-dc81a77a"])
def test_a_name_without_an_id_or_with_several_has_none(name):
    assert gid.of_name(name) is None


@pytest.mark.parametrize(("link", "plain"), [
    ("2012090306gm-0089-0000-x666f4d41e26b", "2012090306gm-0089-0000-dc81a77a"),  # published with its answer
    # before 2010-04-11 11:00 the key is the table's first pair: 22136 = 0x5678, and 22136 ^ 52719 = 0x9b97
    ("2010041110gm-00a9-0000-x000000000000", "2010041110gm-00a9-0000-56789b97"),
    # after it: int("3" + "041111") % (33 - 1) = 23; 23473 = 0x5bb1 and 23473 ^ 35164 = 0xd2ed
    ("2010041111gm-00a9-0000-x000000000000", "2010041111gm-00a9-0000-5bb1d2ed")])
def test_a_scrambled_link_is_unscrambled(link, plain):
    assert gid.parse(link) == plain
    assert gid.parse(f"http://tenhou.net/0/?log={link}&tw=1") == plain


@given(st.text() | st.from_regex(gid.PATTERN) | st.from_regex(gid._FOUND, fullmatch=True))
def test_what_parse_returns_is_always_safe_as_a_file_name(text):
    found = gid.parse(text)
    assert found is None or (gid.is_gid(found) and os.path.basename(found) == found and found.isascii()
                             and found.isprintable() and gid.parse(found) == found)


def test_a_link_to_the_viewer_gives_back_its_game():
    assert gid.viewer(PLAIN, 2) == f"https://tenhou.net/0/?log={PLAIN}&tw=2"
    assert {gid.parse(gid.viewer(PLAIN, seat)) for seat in (None, 0, 1, 2, 3)} == {PLAIN}
