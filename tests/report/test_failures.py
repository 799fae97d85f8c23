"""Why games failed, counted in one line."""

from lib.report.failures import Failures


def line(*errors):
    failures = Failures()
    for error in errors:
        failures.add(error)
    return str(failures)


def test_the_most_frequent_come_first_and_the_rest_is_counted():
    assert line("incomplete: no owari", "unsupported: three players", "incomplete: no owari") == (
        "2 incomplete: no owari, 1 unsupported: three players")
    many = [f"odd {chr(97 + n)}" for n in range(7)]
    assert line(*many, many[0]) == "2 odd a, 1 odd b, 1 odd c, 1 odd d, 1 odd e, 2 for other reasons"
    assert line() == ""


def test_what_differs_is_left_out_and_so_is_the_hand():
    assert line("east 2, honba 1: goes on after its end", "hand 7: goes on after its end") == "2 goes on after its end"
    assert line("incomplete: no owari", "incomplete: no hands") == (
        "1 incomplete: no owari, 1 incomplete: no hands")
    unended = [f"incomplete: {hand} has no end" for hand in ("east 1, honba 0", "south 1, honba 2")]
    assert line(*unended) == "2 incomplete: …"
    assert line("hand 3 of 9: draw by seat 2 out of turn") == "1 … out of turn"
