//! The chunk and the emitter of a call, for the functions that a guest calls meanwhile.
//!
//! ```text
//!   worker ── within(chunk, emitter) ──► guest's code ──► imported function ── with(...) ──► emitter
//!             puts both here             (no lifetimes      takes them out, and
//!             removes them at the end     cross it)         puts them back
//! ```
//!
//! The state of a wasmtime store must be `'static`, and a chunk and an emitter are borrowed. So they are
//! passed by this thread's own variable. The pointers are used by [`with`] alone, on the thread whose
//! [`within`] is still running.

use std::cell::Cell;

use merganser_map::ssdlet::{Chunk, Emitter};

#[derive(Clone, Copy)]
struct CurrentCall {
    out: *mut Emitter<'static>,
    bytes: *const [u8],
    input: u32,
    offset: u64,
}

thread_local! {
    static CURRENT: Cell<Option<CurrentCall>> = const { Cell::new(None) };
}

/// Puts back what was there before, also when a panic unwinds.
struct Restore(Option<CurrentCall>);

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

/// Runs `run`, during which [`with`] gives `chunk` and `out`.
pub(crate) fn within<R>(chunk: Chunk<'_>, out: &mut Emitter<'_>, run: impl FnOnce() -> R) -> R {
    let current = CurrentCall {
        out: std::ptr::from_mut(out).cast(),
        bytes: std::ptr::from_ref(chunk.bytes),
        input: chunk.input,
        offset: chunk.offset,
    };
    let _restore = Restore(CURRENT.replace(Some(current)));
    run()
}

/// Gives the chunk and the emitter of the innermost [`within`] of this thread to `take`; `None` outside
/// of one, and inside of `take` itself.
pub(crate) fn with<R>(take: impl FnOnce(Chunk<'_>, &mut Emitter<'_>) -> R) -> Option<R> {
    let current = CURRENT.take()?;
    let _restore = Restore(Some(current));
    let CurrentCall { out, bytes, input, offset } = current;
    // SAFETY: `within` made the pointer from a slice that it borrows until it has removed it from
    // this thread's variable; so it is still borrowed. `take` must accept any lifetime, so it can't keep it.
    let bytes = unsafe { &*bytes };
    // SAFETY: as above, and `within` borrows the emitter mutably meanwhile, so that no other code uses it.
    // The variable is empty while `take` runs, so that there is no second reference. `take` must accept any
    // lifetime, so the `'static` of the pointer's type is never relied on.
    let out = unsafe { &mut *out };
    Some(take(Chunk { input, offset, bytes }, out))
}

#[cfg(test)]
mod tests {
    use merganser_map::ssdlet::CollectedOutput;

    use super::*;

    fn key(name: &[u8]) -> Option<u64> {
        with(|chunk, out| {
            assert!(with(|_, _| ()).is_none(), "one reference at a time");
            out.add(name, chunk.bytes.len() as i64);
            chunk.offset
        })
    }

    #[test]
    fn a_call_sees_its_own_chunk_and_nothing_after_it() {
        let (mut outer, mut inner) = (CollectedOutput::default(), CollectedOutput::default());
        let chunk = |offset, bytes| Chunk { input: 0, offset, bytes };
        assert_eq!(key(b"before"), None);
        within(chunk(1, b"abc"), &mut Emitter::collecting(&mut outer), || {
            assert_eq!(key(b"a"), Some(1));
            within(chunk(2, b""), &mut Emitter::collecting(&mut inner), || {
                assert_eq!(key(b"b"), Some(2));
            });
            assert_eq!(key(b"c"), Some(1));
        });
        assert_eq!(key(b"after"), None);
        let keys = |found: &CollectedOutput| found.keyed.keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(&outer), [b"a", b"c"]);
        assert_eq!(keys(&inner), [b"b"]);
    }

    #[test]
    fn a_panic_leaves_nothing_behind() {
        let mut found = CollectedOutput::default();
        let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let chunk = Chunk { input: 0, offset: 0, bytes: b"" };
            within(chunk, &mut Emitter::collecting(&mut found), || panic!("in a call"));
        }));
        assert!(unwound.is_err());
        assert_eq!(key(b"after"), None);
    }
}
