//! The interface through which Hadoop's reduce tasks use the merge of [`merganser_hadoop_node::shuffle`].
//!
//! The other side is the Java class `io.merganser.hadoop.nativemerge.NativeMerge`: it opens a merge of
//! fetched files, reads the merged IFile segment in pieces of some hundred kilobytes into an array on
//! the Java heap, and closes it. A piece is made in native memory and then copied once, so that the
//! garbage collector never waits for a disk. Every error, also a panic, becomes an `IOException` with
//! one sentence in Java.

mod failure;

use failure::{Failure, ThrowIoException};
use jni::objects::{JByteArray, JClass, JLongArray, JObjectArray, JString};
use jni::sys::{jint, jlong};
use jni::{Env, EnvUnowned, jni_mangle};
use merganser_hadoop_node::shuffle::{SegmentMerge, SegmentSpec, WritableOrder};

/// The most bytes that one call copies.
const PIECE_BYTES_MAX: usize = 1 << 20;

/// The longs that describe a segment: its offset in its file, its raw length, its length.
const PLACE_LEN: usize = 3;

/// The state that a `NativeMerge` in Java owns.
struct Merge {
    /// Empty after a failed read, because the state of the merge isn't known then.
    segments: Option<SegmentMerge>,
    piece: Vec<u8>,
}

impl Merge {
    fn read(&mut self, length: usize) -> Result<&[u8], Failure> {
        let mut segments =
            self.segments.take().ok_or(Failure::Call("the merge has failed before"))?;
        let length = length.min(PIECE_BYTES_MAX);
        if self.piece.len() < length {
            self.piece.resize(length, 0);
        }
        let read = segments.read(&mut self.piece[..length])?;
        self.segments = Some(segments);
        Ok(&self.piece[..read])
    }
}

/// `String nativeVersion()`: the version of this library.
#[jni_mangle("io.merganser.hadoop.nativemerge.NativeLibrary")]
pub extern "system" fn native_version<'local>(
    mut unowned: EnvUnowned<'local>,
    _class: JClass<'local>,
) -> JString<'local> {
    unowned
        .with_env(|env| Ok::<_, Failure>(env.new_string(env!("CARGO_PKG_VERSION"))?))
        .resolve::<ThrowIoException>()
}

/// `long nativeOpen(String order, String[] files, long[] places, long memoryBytes)`: starts a merge;
/// its result must be passed to `nativeClose` once.
#[jni_mangle("io.merganser.hadoop.nativemerge.NativeMerge")]
pub extern "system" fn native_open<'local>(
    mut unowned: EnvUnowned<'local>,
    _class: JClass<'local>,
    order: JString<'local>,
    files: JObjectArray<'local, JString<'local>>,
    places: JLongArray<'local>,
    memory_bytes: jlong,
) -> jlong {
    unowned
        .with_env(|env| {
            let order: WritableOrder = order.try_to_string(env)?.parse()?;
            let segments = segments(env, &files, &places)?;
            let memory_bytes = usize::try_from(memory_bytes)
                .map_err(|_| Failure::Call("the memory of a merge can't be negative"))?;
            let merge = SegmentMerge::open_for_any_key(&order, &segments, memory_bytes)?;
            let merge = Box::new(Merge { segments: Some(merge), piece: Vec::new() });
            Ok::<_, Failure>(Box::into_raw(merge) as jlong)
        })
        .resolve::<ThrowIoException>()
}

fn segments<'local>(
    env: &mut Env<'local>,
    files: &JObjectArray<'local, JString<'local>>,
    places: &JLongArray<'local>,
) -> Result<Vec<SegmentSpec>, Failure> {
    let count = files.len(env)?;
    let mut numbers = vec![0; places.len(env)?];
    if numbers.len() != count * PLACE_LEN {
        return Err(Failure::Call("a segment is described by one path and three numbers"));
    }
    places.get_region(env, 0, &mut numbers)?;
    (0..count)
        .map(|index| {
            let number = |at: usize| {
                u64::try_from(numbers[index * PLACE_LEN + at])
                    .map_err(|_| Failure::Call("a segment's offset or length can't be negative"))
            };
            let file = files.get_element(env, index)?;
            let path = file.try_to_string(env)?.into();
            // There may be thousands, more than the references that a call may hold.
            env.delete_local_ref(file);
            Ok(SegmentSpec { path, offset: number(0)?, raw: number(1)?, part: number(2)? })
        })
        .collect()
}

/// `int nativeRead(long merge, byte[] into, int offset, int length)`: the next bytes of the merged
/// segment, at least one; -1 at its end.
#[jni_mangle("io.merganser.hadoop.nativemerge.NativeMerge")]
pub extern "system" fn native_read<'local>(
    mut unowned: EnvUnowned<'local>,
    _class: JClass<'local>,
    merge: jlong,
    into: JByteArray<'local>,
    offset: jint,
    length: jint,
) -> jint {
    unowned
        .with_env(|env| {
            // SAFETY: `NativeMerge` passes the result of `native_open`, holds its own lock so that no
            // second call runs, and never calls again after `native_close`.
            let merge = unsafe { &mut *(merge as *mut Merge) };
            let length = usize::try_from(length)
                .map_err(|_| Failure::Call("the number of bytes to read can't be negative"))?;
            let bytes = merge.read(length)?;
            if bytes.is_empty() {
                return Ok(-1);
            }
            into.set_region(env, offset, as_java_bytes(bytes))?;
            Ok::<_, Failure>(jint::try_from(bytes.len()).expect("at most PIECE_BYTES_MAX"))
        })
        .resolve::<ThrowIoException>()
}

/// `void nativeClose(long merge)`: closes the merge's files and frees its memory.
#[jni_mangle("io.merganser.hadoop.nativemerge.NativeMerge")]
pub extern "system" fn native_close<'local>(
    mut unowned: EnvUnowned<'local>,
    _class: JClass<'local>,
    merge: jlong,
) {
    unowned
        .with_env(|_env| {
            // SAFETY: `native_open` made it from a box, and `NativeMerge` forgets it with this call.
            drop(unsafe { Box::from_raw(merge as *mut Merge) });
            Ok::<_, Failure>(())
        })
        .resolve::<ThrowIoException>();
}

/// Bytes as Java's signed bytes.
fn as_java_bytes(bytes: &[u8]) -> &[i8] {
    // SAFETY: the two types have one size and alignment, and every value of one is a value of the other.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) }
}
