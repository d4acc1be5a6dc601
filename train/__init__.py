"""A Gumbel AlphaZero trainer for WallGo that runs end to end on the accelerator.

Floors, each importing only from those above it in this list ([B] means boards in parallel):

    network                  ResTNet: planes -> policy over slots, value of the mover
    search                   mctx over the exact game
    players                  Player = (key, state) -> slot
    selfplay targets replay  data made and kept
    learner                  loss, one optax step
    arena                    matches with intervals
    checkpoint               what is saved and how
    metrics                  JSON lines, TensorBoard, console
    config roster rundir iteration loop
                             the run: self-play, replay, learn, evaluate, save
    __main__                 the command line
"""
