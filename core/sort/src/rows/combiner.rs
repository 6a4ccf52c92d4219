//! How values of one key become one, as a sort of rows asks for it.

use std::marker::PhantomData;

use super::{Combine, Combined, RowsError, Type};
use crate::Error;

/// Combines the values of one key: in a run before it is written, and where runs are merged. So its result must not
/// depend on which neighbours come together first. They come in the order of rows ([`super::RowsBy`]).
///
/// [`KeepAll`] keeps all rows, [`CombineWith`] takes a closure, and [`CombinedFor`] has the usual ways ([`Combine`]).
pub trait Combiner: Clone + Send + Sync + 'static {
    /// The errors of a sort whose rows it combines.
    type Error: From<Error> + Send + 'static;

    /// Whether rows of one key stay as they are. Then nothing else here is called.
    fn keeps_all(&self) -> bool {
        false
    }

    /// The first value of a key.
    ///
    /// # Errors
    /// Its own, which end the sort.
    fn begin(&mut self, key: &[u8], value: &[u8]) -> Result<(), Self::Error>;

    /// One more value of this key.
    ///
    /// # Errors
    /// Its own, which end the sort.
    fn fold(&mut self, key: &[u8], value: &[u8]) -> Result<(), Self::Error>;

    /// Hands out the values so far as values that are combined again: one, unless it would be wrong before all have come.
    fn parts(&mut self, each: &mut dyn FnMut(&[u8])) {
        each(self.value());
    }

    /// Called after the last value of the key, before [`Combiner::value`].
    ///
    /// # Errors
    /// Its own, which end the sort.
    fn finish(&mut self, _key: &[u8]) -> Result<(), Self::Error> {
        Ok(())
    }

    /// The combined value.
    fn value(&self) -> &[u8];
}

/// Keeps all rows.
#[derive(Debug, Clone, Copy, Default)]
pub struct KeepAll;

impl Combiner for KeepAll {
    type Error = Error;

    fn keeps_all(&self) -> bool {
        true
    }

    fn begin(&mut self, _: &[u8], _: &[u8]) -> Result<(), Error> {
        unreachable!("all rows are kept")
    }

    fn fold(&mut self, _: &[u8], _: &[u8]) -> Result<(), Error> {
        unreachable!("all rows are kept")
    }

    fn value(&self) -> &[u8] {
        unreachable!("all rows are kept")
    }
}

/// Combines by a closure, which gets the value so far and one more. It must be associative. A value that
/// it makes longer takes memory that no budget knows.
#[derive(Debug, Clone)]
pub struct CombineWith<F> {
    with: F,
    value: Vec<u8>,
}

impl<F> CombineWith<F> {
    /// A combiner that calls `with(value_so_far, one_more)`.
    pub fn new(with: F) -> Self {
        CombineWith { with, value: Vec::new() }
    }
}

impl<F, E> Combiner for CombineWith<F>
where
    F: FnMut(&mut Vec<u8>, &[u8]) -> Result<(), E> + Clone + Send + Sync + 'static,
    E: From<Error> + Send + 'static,
{
    type Error = E;

    fn begin(&mut self, _: &[u8], value: &[u8]) -> Result<(), E> {
        self.value.clear();
        self.value.extend_from_slice(value);
        Ok(())
    }

    fn fold(&mut self, _: &[u8], value: &[u8]) -> Result<(), E> {
        (self.with)(&mut self.value, value)
    }

    fn value(&self) -> &[u8] {
        &self.value
    }
}

/// The usual ways to combine, in a sort with errors `E`.
pub struct CombinedFor<E> {
    combined: Combined,
    error: PhantomData<fn() -> E>,
}

impl<E> CombinedFor<E> {
    /// Combines values of the type `of`.
    #[must_use]
    pub fn new(combine: Combine, of: Type) -> Self {
        CombinedFor { combined: Combined::new(combine, of), error: PhantomData }
    }
}

impl<E> Clone for CombinedFor<E> {
    fn clone(&self) -> Self {
        CombinedFor { combined: self.combined.clone(), error: PhantomData }
    }
}

impl<E: From<Error> + Send + 'static> Combiner for CombinedFor<E> {
    type Error = E;

    fn keeps_all(&self) -> bool {
        self.combined.combine() == Combine::None
    }

    fn begin(&mut self, _: &[u8], value: &[u8]) -> Result<(), E> {
        self.combined.begin(value);
        Ok(())
    }

    fn fold(&mut self, _: &[u8], value: &[u8]) -> Result<(), E> {
        self.combined.fold(value);
        Ok(())
    }

    fn parts(&mut self, each: &mut dyn FnMut(&[u8])) {
        self.combined.parts(each);
    }

    fn finish(&mut self, key: &[u8]) -> Result<(), E> {
        let finished = self.combined.finish();
        finished.map_err(|_| Error::from(RowsError::overflow(key)))?;
        Ok(())
    }

    fn value(&self) -> &[u8] {
        self.combined.value()
    }
}
