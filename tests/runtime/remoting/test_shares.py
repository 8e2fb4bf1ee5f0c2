"""Whoever fills a table loses of it to others, and nobody who holds little loses anything."""

from __future__ import annotations

import random

import pytest

from replispec.runtime.rocketmq.remoting import Shares


def fill(shares: Shares[int], owner: str, entries: range, *, is_loose: bool = False) -> int:
    """How many of these entries this owner gets into the table."""
    count = 0
    for entry in entries:
        if shares.is_full:
            going = shares.giving_way(owner)
            if going is None:
                continue
            shares.drop(going)
        shares.take(owner, entry, is_loose=is_loose)
        count += 1
    return count


def test_a_newcomer_gets_as_much_as_who_filled_the_table_and_those_who_were_in_stay() -> None:
    shares = Shares[int](100)
    assert fill(shares, "early", range(10)) == 10
    assert fill(shares, "greedy", range(1_000, 2_000)) == 90
    assert fill(shares, "late", range(5_000, 5_100)) == 45
    assert all(entry in shares for entry in range(10)), "who has little loses nothing"
    assert fill(shares, "greedy", range(6_000, 7_000)) == 0
    assert all(entry in shares for entry in range(1_000, 1_045)), "the newest goes first"
    assert shares.held == 100


def test_what_is_loose_goes_first_and_the_oldest_of_it_also_for_its_own_owner() -> None:
    shares = Shares[int](10)
    fill(shares, "a", range(4))
    fill(shares, "a", range(4, 10), is_loose=True)
    shares.keep(4)
    assert shares.giving_way("b") == 5
    assert shares.giving_way("a") == 5
    assert fill(shares, "a", range(10, 15)) == 5
    assert shares.giving_way("a") is None
    assert shares.giving_way("b") == 14


def test_what_takes_up_much_counts_as_much_and_goes_as_a_whole() -> None:
    shares = Shares[int](10)
    shares.take("a", 1)
    for _ in range(7):
        shares.grow(1)
    shares.take("b", 2)
    shares.take("b", 3)
    assert shares.is_full
    assert shares.giving_way("b") == 1
    shares.drop(1)
    shares.drop(1)
    assert (shares.held, shares.giving_way("c")) == (2, 3)


@pytest.mark.parametrize("seed", range(5))
def test_nobody_is_refused_while_another_holds_two_more_than_it(seed: int) -> None:
    rng = random.Random(seed)
    shares = Shares[int](30)
    held: dict[int, str] = {}
    for entry in range(600):
        owner = rng.choice("aaaaaabbbcd")
        if rng.random() < 0.2 and held:
            gone = rng.choice(sorted(held))
            del held[gone]
            shares.drop(gone)
        counts = {each: list(held.values()).count(each) for each in "abcd"}
        if shares.is_full:
            going = shares.giving_way(owner)
            assert (going is None) == (counts[owner] + 1 >= max(counts.values()))
            if going is None:
                continue
            assert counts[held[going]] == max(counts.values())
            del held[going]
            shares.drop(going)
        shares.take(owner, entry)
        held[entry] = owner
        assert shares.held == len(held)


def test_the_oldest_loose_one_gives_way_to_whoever_comes_and_nothing_that_is_kept() -> None:
    shares = Shares[int](100)
    shares.take("two", 1)
    shares.take("two", 2)
    for entry in range(10, 310):
        assert fill(shares, f"silent{entry}", range(entry, entry + 1), is_loose=True) == 1
    assert all(entry in shares for entry in (1, 2, *range(212, 310))), "the newest of them are in"
    assert fill(shares, "two", range(3, 60)) == 48, "who has shown itself takes as much as strangers hold"
    assert fill(shares, "late", range(400, 500)) == 33
    assert all(entry in shares for entry in (1, 2, 3)), "nothing that is kept goes while strangers hold most"
    assert shares.held == 100


def test_strangers_do_not_give_way_to_who_has_its_share() -> None:
    shares = Shares[int](20)
    fill(shares, "early", range(5), is_loose=True)
    assert fill(shares, "greedy", range(100, 200)) == 15
    assert all(entry in shares for entry in range(5))
    for entry in range(1_000, 1_005):
        fill(shares, f"late{entry}", range(entry, entry + 1), is_loose=True)
    assert all(entry in shares for entry in range(5)), "who holds most gives way before few strangers do"
