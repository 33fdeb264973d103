"""Replays games with open_spiel: every position must offer the same moves, jump by jump.

Standard input as for pydraughts.py, games from the initial position. A multi-jump is several actions of one
player there, and its games are drawn after 40 moves without a capture: what follows is not compared.
"""

import json
import sys

import pyspiel


def name(square):
    """A square as open_spiel names it: our first player sits at its first rank, left and right swapped."""
    row, place = divmod(square - 1, 4)
    column = place * 2 + 1 - row % 2
    return "abcdefgh"[7 - column] + str(row + 1)


def check_move(state, ply):
    """Follows one move through its actions."""
    player = state.current_player()
    played = ply["played"]
    for step in range(len(played) - 1):
        ours = {name(m[step]) + name(m[step + 1]) for m in ply["legal"] if m[: step + 1] == played[: step + 1]}
        if step == 0:
            ours = {name(m[0]) + name(m[1]) for m in ply["legal"]}
        actions = {state.action_to_string(player, action): action for action in state.legal_actions()}
        if set(actions) != ours or state.current_player() != player:
            sys.exit(f"{state}\nopen_spiel has {sorted(actions)}, not {sorted(ours)}")
        state.apply_action(actions[name(played[step]) + name(played[step + 1])])


def check(game):
    state = pyspiel.load_game("checkers").new_initial_state()
    plies = 0
    for number, ply in enumerate(game["plies"]):
        if state.is_terminal() and state.returns() == [0.0, 0.0]:
            break
        plies += 1
        if not ply["legal"]:
            loser = number % 2
            if not state.is_terminal() or state.returns()[loser] != -1.0:
                sys.exit(f"{state}\nopen_spiel does not see that player {loser} has lost")
        elif state.is_terminal():
            sys.exit(f"{state}\nopen_spiel sees the end, we see {ply['legal']}")
        elif ply["played"]:
            check_move(state, ply)
    return plies


print(sum(check(game) for game in json.load(sys.stdin)["games"]))
