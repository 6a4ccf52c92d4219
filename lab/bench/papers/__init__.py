"""What comparisons with papers share: `published` is a figure of a paper, `outcome` has the tables of the paper's figures, ours and
the ratio, `svg` the charts. Only Python's standard library is used.
"""
