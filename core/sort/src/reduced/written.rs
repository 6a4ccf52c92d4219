//! A result as it is written: one run of rows, or runs whose rows are combined when they are read.

use std::sync::Arc;

use merganser_storage::Directory;

use super::view::{ResultDescription, order};
use crate::rows::{RowStream, write_rows};
use crate::view::{Manifest, Segment, unix_ns};
use crate::{Budget, Error};

/// Writes rows, each key once, as a view of one run in the empty `folder`; how many there are.
///
/// # Errors
/// Those of `rows` and of `advance`; a full disk; too little memory.
pub fn write_reduced<E: From<Error>>(
    rows: &mut dyn RowStream<Error = E>,
    folder: &Arc<dyn Directory>,
    name: String,
    what: &ResultDescription,
    budget: &Budget,
    advance: impl FnMut(u64) -> Result<(), E>,
) -> Result<u64, E> {
    let of_map = |manifest: Manifest| manifest.of_map(what.stored(false));
    write_rows(rows, (folder, name), of_map, budget, advance)
}

/// Writes the manifest of a view in `folder`, whose segments have records that are combined when they are read.
///
/// # Errors
/// The device's own.
pub fn write_unreduced(
    folder: &Arc<dyn Directory>,
    name: String,
    what: &ResultDescription,
    segments: Vec<Segment>,
) -> Result<Manifest, Error> {
    let manifest = Manifest::new(name, order(), Vec::new(), unix_ns(), segments);
    let manifest = manifest.of_map(what.stored(true));
    manifest.write(folder)?;
    Ok(manifest)
}
