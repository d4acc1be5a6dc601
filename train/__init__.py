"""A Gumbel AlphaZero trainer for WallGo that runs end to end on the accelerator.

Floors, each importing only from those above it in this list ([B] means boards in parallel):

    network                  ResTNet: planes -> policy over slots, value of the mover
    tree search              Gumbel or PUCT over the exact game, on a tree of ours or in mctx
    players heuristics solver
                             Player = (variables, states, key) -> slot
    selfplay targets replay  data made and kept
    learner                  loss, one optax step
    arena elo sprt tournament
                             matches with intervals, ratings
    checkpoint               what is saved and how
    metrics                  JSON lines, TensorBoard, console
    config roster rundir iteration loop
                             the run: self-play, replay, learn, evaluate, save
    __main__                 the command line
"""
