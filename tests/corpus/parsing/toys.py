"""Trees as two parsers write them, and any trees."""

from hypothesis import strategies as st

from paranmt_hf.corpus.parsing.trees import Tree

PENN = "(ROOT (S (NP (DT A) (NN man)) (VP (VBZ plays) (NP (DT a) (NN guitar))) (. .)))"
LINK = "(S (NP a man.n) (VP plays.v (NP a guitar.s)) .)"

labels = st.text(st.sampled_from("ABC-.,$'é"), min_size=1, max_size=4)
trees = st.recursive(
    st.builds(Tree, labels, st.lists(labels, max_size=3).map(tuple)),
    lambda inner: st.builds(Tree, labels, st.lists(inner | labels, max_size=4).map(tuple)),
)
