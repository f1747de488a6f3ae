from atari.games import ATARI_57
from atari.scores import HUMAN_SCORES
from seed_rl.human_scores import HumanScore


def test_every_game_of_the_benchmark_has_scores() -> None:
    assert tuple(HUMAN_SCORES) == ATARI_57


def test_a_human_beats_random_play() -> None:
    for game, scores in HUMAN_SCORES.items():
        assert scores.human > scores.random, game


def test_names_of_several_words_have_their_own_scores() -> None:
    assert HUMAN_SCORES["MsPacman"] == HumanScore(random=307.3, human=6951.6)
    assert HUMAN_SCORES["Pong"] == HumanScore(random=-20.7, human=14.6)
