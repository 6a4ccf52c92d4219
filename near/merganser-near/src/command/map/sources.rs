//! The inputs of a map, for the engine: decompressed where their first bytes say that they are compressed.

use merganser_map::MapInput;
use merganser_shell::failure::Failure;
use merganser_shell::input::{Input, OpenInputs};
use merganser_shell::signals::Cancel;
use merganser_sort::Budget;
use merganser_sort::activity::Activity;
use merganser_sort::run::magic::ContentKind;

/// Makes all inputs ready, in order. The memory of decompressors is of `budget`.
///
/// # Errors
/// When one can't be read, or is no `content`.
pub(crate) fn open(
    inputs: &[Input],
    content: ContentKind,
    budget: &Budget,
    cancel: &Cancel,
) -> Result<Vec<MapInput>, Failure> {
    let open = OpenInputs::of_map();
    let activity = Activity::here();
    let ready = |input: &Input| {
        Ok(match input.open_for_sort(&open, cancel)? {
            merganser_sort::run::SortInput::Storage(storage) => {
                MapInput::detect(activity.storage(storage), content, budget)?
            }
            merganser_sort::run::SortInput::Stream { name, reader } => {
                MapInput::detect_stream(name, reader, content, budget)
            }
            merganser_sort::run::SortInput::Packed(unpacked) => MapInput::of_unpacked(unpacked),
        })
    };
    inputs.iter().map(ready).collect()
}
