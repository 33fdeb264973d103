"""Replays games with pydraughts: every position must offer the same moves, each with all its squares.

Standard input: {"games": [{"fen": ..., "plies": [{"legal": [[11, 15], ...], "played": [11, 15]}, ...]}, ...]}
The last ply of a finished game offers no move and plays none.
"""

import json
import sys

from draughts import Board


def check(game):
    board = Board(variant="english", fen=game["fen"])
    for ply in game["plies"]:
        theirs = {tuple(move.steps_move): move for move in board.legal_moves()}
        ours = {tuple(squares) for squares in ply["legal"]}
        if set(theirs) != ours:
            sys.exit(f"{board.fen}: pydraughts has {sorted(theirs)}, not {sorted(ours)}")
        if ply["played"]:
            board.push(theirs[tuple(ply["played"])])


games = json.load(sys.stdin)["games"]
for game in games:
    check(game)
print(sum(len(game["plies"]) for game in games))
