"""How fast the game, the search, self-play and the learner run here, and how near to the limit.

program    one compiled program, with what compiling says of it
timing     runs that take turns, and their medians
play       random play of any game on all boards at once
games      WallGo as a game to be played at random
rivals     games of pgx, likewise
public     a search that mctx does over the public actions
search     simulations a second, without and with a network
peak       operations a second, beside a matrix product's
memory     what a search tree takes
selfplay   the trainer's self-play, and its network alone
learn      the trainer's learner, and its network alone
scaling    plies a second by batch, as a plot
suite      what is asked for, batch by batch
report     figures as a table, JSON or Markdown
command    the options
"""
