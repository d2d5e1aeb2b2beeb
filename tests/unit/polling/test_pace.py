"""The time of the next look at a cluster."""

from controller_core.polling.pace import SHARE, Credit, Pace

PACE = Pace()


def test_what_moves_is_looked_at_sooner_and_what_is_quiet_later() -> None:
    moving = PACE.pause_s(look_s=0.001, quiet_looks=9, is_moving=True)
    fresh = PACE.pause_s(look_s=0.001, quiet_looks=0, is_moving=False)
    quiet = PACE.pause_s(look_s=0.001, quiet_looks=10_000, is_moving=False)
    assert moving < fresh < quiet == PACE.longest_quiet_s


def test_a_look_never_takes_more_than_its_share_of_a_brokers_time_and_half_of_it_while_nothing_moves() -> None:
    for look_s in (0.0, 0.001, 0.05, 0.07):
        for is_moving, share in ((False, SHARE / 2), (True, SHARE)):
            pause_s = PACE.pause_s(look_s=look_s, quiet_looks=0, is_moving=is_moving)
            assert look_s <= share * (look_s + pause_s) * 1.0001


def test_however_long_a_look_takes_the_next_one_comes() -> None:
    assert PACE.pause_s(look_s=3600.0, quiet_looks=0, is_moving=False) == PACE.longest_s


def test_after_failures_pauses_grow_up_to_a_bound() -> None:
    pauses = [PACE.pause_after_failures_s(failures) for failures in (1, 2, 3, 1_000_000)]
    assert pauses == sorted(pauses)
    assert pauses[-1] == PACE.longest_after_failures_s


def test_a_credit_is_used_at_once_and_grows_again_by_its_share() -> None:
    credit = Credit(share=0.01, most_s=0.5)
    assert credit.is_left(100.0)
    credit.use(0.8)
    assert [credit.is_left(now_s) for now_s in (101.0, 129.0, 131.0, 1e6)] == [False, False, True, True]
    credit.use(0.6)
    assert not credit.is_left(1e6 + 1), "it has not grown beyond its bound"


def test_of_a_credit_a_part_is_kept_for_what_matters_more() -> None:
    credit = Credit(share=0.01, most_s=2.0)
    credit.use(1.2)
    assert not credit.is_left(0.0, kept=0.5)
    assert credit.is_left(0.0)
