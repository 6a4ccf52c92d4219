//! The ends of objects, which say what they are: the first bytes, and the place where Parquet and Arrow describe a file.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use super::kind::{FileKind, HEAD_BYTES, kind_of_head};
use super::object::{ObjectError, RangeRead, StoredObject};
use crate::TableError;

/// Bytes at the end of an object that are read before it is known how many are needed.
pub(super) const TAIL_BYTES: u64 = 64 << 10;
/// Objects whose ends are asked for at once.
const BEGUN_MAX: usize = 4;

/// The bytes at the end of an object, from a place on.
pub(super) struct ObjectTail {
    pub(super) start: u64,
    pub(super) bytes: Bytes,
}

/// An object's ends, which were asked for.
struct BegunEnds {
    object: Arc<dyn StoredObject>,
    /// The front; `None` if the tail has it.
    head: Option<Box<dyn RangeRead>>,
    tail: Option<Box<dyn RangeRead>>,
}

/// Where the last `tail_bytes` of an object begin.
fn tail_start(object: &dyn StoredObject, tail_bytes: u64) -> u64 {
    object.bytes().saturating_sub(tail_bytes)
}

/// Reads the last bytes of an object.
pub(super) fn read_tail(
    object: &Arc<dyn StoredObject>,
    tail_bytes: u64,
) -> Result<ObjectTail, TableError> {
    let start = tail_start(&**object, tail_bytes);
    let read = object.begin(start..object.bytes()).wait();
    Ok(ObjectTail { start, bytes: read.map_err(on(object))? })
}

impl BegunEnds {
    fn new(object: &Arc<dyn StoredObject>) -> BegunEnds {
        let (size, start) = (object.bytes(), tail_start(&**object, TAIL_BYTES));
        BegunEnds {
            object: Arc::clone(object),
            head: (start > 0).then(|| object.begin(0..HEAD_BYTES.min(size))),
            tail: (size > 0).then(|| object.begin(start..size)),
        }
    }

    fn wait(self) -> Result<(FileKind, ObjectTail), TableError> {
        let wait = |read: Option<Box<dyn RangeRead>>| read.map(RangeRead::wait).transpose();
        let tail = wait(self.tail).map_err(on(&self.object))?.unwrap_or_default();
        let head = wait(self.head).map_err(on(&self.object))?;
        let kind = kind_of_head(self.object.name(), head.as_ref().unwrap_or(&tail))?;
        Ok((kind, ObjectTail { start: tail_start(&*self.object, TAIL_BYTES), bytes: tail }))
    }
}

/// The ends of objects, which are asked for in this order, some ahead.
pub(super) struct ObjectEnds<'a> {
    left: Box<dyn Iterator<Item = &'a Arc<dyn StoredObject>> + 'a>,
    begun: VecDeque<BegunEnds>,
}

impl<'a> ObjectEnds<'a> {
    pub(super) fn new(objects: impl Iterator<Item = &'a Arc<dyn StoredObject>> + 'a) -> Self {
        ObjectEnds { left: Box::new(objects), begun: VecDeque::new() }
    }

    /// The kind of the next object, and its tail.
    pub(super) fn next(&mut self) -> Result<(FileKind, ObjectTail), TableError> {
        while self.begun.len() < BEGUN_MAX
            && let Some(object) = self.left.next()
        {
            self.begun.push_back(BegunEnds::new(object));
        }
        self.begun.pop_front().expect("asked for once for each object").wait()
    }
}

/// The error of an object.
pub(super) fn on(object: &Arc<dyn StoredObject>) -> impl FnOnce(ObjectError) -> TableError {
    on_name(object.name())
}

/// The error of the object of this name.
pub(super) fn on_name(name: &Path) -> impl FnOnce(ObjectError) -> TableError + use<> {
    let object = name.to_owned();
    |error| TableError::Object { object, error }
}
