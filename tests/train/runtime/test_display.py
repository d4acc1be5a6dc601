"""The console of a run that no terminal shows: one line for each iteration."""

from train.runtime.display import Display


def test_lasting_figures_stay_until_others_replace_them(capsys):
    display = Display(total=4)
    with display:
        display.show(1, "a")
        display.show(2, "b", "50% against greedy")
        display.show(3, "c")
        display.show(4, "d", "60% against greedy")
    assert capsys.readouterr().out.splitlines() == [
        "iteration 1: a",
        "iteration 2: b · 50% against greedy",
        "iteration 3: c · 50% against greedy",
        "iteration 4: d · 60% against greedy",
    ]
