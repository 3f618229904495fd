"""A firewall's refusals: the bot's route pauses first, and the address only if another is refused as well."""

from sealgate.limits.firewall import FIRST_S, LONGEST_S, Firewall


def test_one_bots_refusals_pause_its_own_routes_at_a_growing_distance() -> None:
    firewall, now, lengths = Firewall(), 100.0, []
    for _ in range(11):
        assert not firewall.refused("scraper", "/search", now, now)
        assert not firewall.refused("scraper", "/other", now, now), "one bot does not stop the others"
        lengths.append(firewall.paused_until("scraper", "/search") - now)
        now = firewall.paused_until("scraper", "/search")
    assert lengths == [FIRST_S, 2, 4, 8, 16, 32, 64, 128, 256, LONGEST_S, LONGEST_S]
    assert firewall.paused_until("maker", "/search") == firewall.paused_until("scraper", "/orders") == 0.0


def test_what_was_under_way_lengthens_no_pause_and_an_old_one_is_forgotten() -> None:
    firewall = Firewall()
    firewall.refused("a", "/x", 99.9, 100.0)
    firewall.refused("a", "/x", 99.9, 100.5)
    assert firewall.paused_until("a", "/x") == 101.0
    firewall.refused("a", "/x", 9000.0, 9000.0)
    assert firewall.paused_until("a", "/x") == 9001.0


def test_the_address_is_shut_out_if_another_is_refused_and_nothing_was_accepted_between() -> None:
    firewall = Firewall()
    assert not firewall.refused("a", "/x", 100.0, 100.1)
    assert firewall.refused("(gateway)", "/time", 100.2, 100.3)
    assert firewall.refused("b", "/x", 100.2, 100.4)


def test_a_bot_with_ever_new_paths_is_slowed_until_one_passes() -> None:
    firewall, now = Firewall(), 100.0
    sent: list[float] = []
    while now < 700.0:
        path = f"/{len(sent)}"
        if now >= firewall.paused_until("a", path):
            sent.append(now)
            assert not firewall.refused("a", path, now, now)
        now += 0.25
    assert len(sent) < 15
    assert firewall.pauses_all("a", now)
    assert not firewall.pauses_all("b", now)
    assert sent[3] == 100.75, "three paths are not yet a habit"
    assert firewall.paused_until("b", "/0") == 0.0
    firewall.accepted("a", "/good", now)
    assert firewall.paused_until("a", "/new") == 0.0
    assert not firewall.pauses_all("a", now)


def test_bots_with_ever_new_paths_fill_no_memory() -> None:
    firewall = Firewall()
    for number in range(1001):
        firewall.refused(f"bot {number}", "/x", 1.0, 1.0)
    assert firewall.paused_until("bot 0", "/x") == 0.0
    assert firewall.paused_until("bot 1000", "/x") == 2.0


def test_what_is_accepted_shows_that_the_address_is_not_shut_out() -> None:
    firewall = Firewall()
    firewall.refused("a", "/x", 100.0, 100.1)
    firewall.accepted("b", "/y", 99.9)  # sent before: it says nothing
    assert firewall.refused("c", "/y", 100.1, 100.2)
    firewall.accepted("b", "/y", 100.3)
    assert not firewall.refused("b", "/y", 101.0, 101.1), "that is the first again"
    assert firewall.is_alert
    for bot, route in (("a", "/x"), ("b", "/y"), ("c", "/y")):
        firewall.accepted(bot, route, 200.0)
    assert not firewall.is_alert
