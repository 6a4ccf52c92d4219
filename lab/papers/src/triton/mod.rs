//! TritonSort's experiments in one process; `lab/bench/reproduce.py` has its whole sorts.

pub(crate) mod internal_sort;
pub(crate) mod many_files;
mod quicksort;
