//! TritonSort, and the Sort Benchmark that it takes part in.

mod disk_speed;
pub mod efficiency;
pub mod gray_sort;
pub mod internal_sort;
pub mod many_files;
pub mod minute_sort;
mod quicksort;
mod systems;
mod whole_sort;
