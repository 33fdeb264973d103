"""Plays whole games against an engine over Hub, pydraughts playing at random and judging every move.

Arguments: the number of games, the engine's command. Prints how many games ended, and how many of them the engine won.
"""

import random
import sys

from draughts import Board
from draughts.engine import HubEngine, Limit

LONGEST = 200


def play(engine, number):
    """One game; the engine has the side that `number` says. Returns whether it ended, and whether the engine won."""
    chance = random.Random(number)
    board = Board(variant="english")
    ours = number % 2
    limit = Limit(depth=4) if number % 4 < 2 else Limit(time=2, inc=0.02)
    for ply in range(LONGEST):
        legal = board.legal_moves()
        if not legal:
            return True, ply % 2 != ours
        if ply % 2 == ours:
            move = engine.play(board, limit, False).move
            if move.board_move not in [other.board_move for other in legal]:
                sys.exit(f"{board.fen}: {move.hub_move} is not legal")
        else:
            move = chance.choice(legal)
        board.push(move)
    return False, False


engine = HubEngine(sys.argv[2:])
engine.init()
if engine.variants != {"english"}:
    sys.exit(f"unexpected variants {engine.variants}")
games = [play(engine, number) for number in range(int(sys.argv[1]))]
engine.quit()
if engine.p.wait(60) != 0:
    sys.exit("the engine did not leave well")
print(sum(ended for ended, _ in games), sum(won for _, won in games))
