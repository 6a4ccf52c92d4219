//! TritonSort, and the Sort Benchmark that it takes part in.

mod disk_speed;
pub(crate) mod efficiency;
pub(crate) mod gray_sort;
pub(crate) mod internal_sort;
pub(crate) mod many_files;
pub(crate) mod minute_sort;
mod quicksort;
mod systems;
mod whole_sort;
