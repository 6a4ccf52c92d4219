//! The product of two matrices that may be larger than memory (McSD's MM, section 3.5.1).
//!
//! ```text
//!          columns block                     k panel               columns block
//!        ┌────┬────┐                      ┌───┬───┬───┐           ┌────┬────┐
//!   rows │ c  │    │                 rows │ a │   │   │         k │ b  │    │
//!  block ├────┼────┤   =  sum over k of   ├───┴───┴───┤   times   ├────┼────┤
//!        │    │    │                      │           │           │    │    │
//!        └────┴────┘                      └───────────┘           └────┴────┘
//! ```
//!
//! One block of the product is in memory at a time. A thread reads the panels of both factors, one step
//! ahead of the threads that multiply. With a block of *s* × *s* elements, each factor is read
//! (side / *s*) times; *s* grows with the square root of the memory (`plan`).
//!
//! ```text
//!   format   NumPy files and raw ones     plan    block sizes within the budget
//!   panel    reads and writes blocks      kernel  multiplies what is in memory
//! ```
//!
//! # The order of a sum
//! Floating-point sums depend on their order, so the order is fixed. An element is a sum of *slices*, from
//! the first to the last, and slice *i* is the sum over the 256 values of k from 256 *i* on, from the
//! first to the last. Blocks and panels begin at multiples of 256 of k, and threads share out rows. So
//! the bytes of the product depend on neither memory nor threads. They may differ in the last bits
//! between processors with and without fused multiply-add. Sums of `i32` wrap around, as NumPy's do.

mod format;
mod kernel;
mod multiply;
mod panel;
mod plan;

use std::sync::Arc;

use merganser_sort::Budget;
use merganser_storage::Storage;
use serde::{Deserialize, Serialize};

pub use multiply::multiply;

/// The type of a matrix's elements, little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MatrixElement {
    /// Floating-point numbers of 4 bytes.
    F32,
    /// Floating-point numbers of 8 bytes.
    F64,
    /// Signed numbers of 4 bytes; sums and products wrap around.
    I32,
}

impl MatrixElement {
    /// Bytes of an element.
    #[must_use]
    pub fn bytes(self) -> u64 {
        match self {
            MatrixElement::F32 | MatrixElement::I32 => 4,
            MatrixElement::F64 => 8,
        }
    }

    /// Its name: `f32`, `f64` or `i32`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            MatrixElement::F32 => "f32",
            MatrixElement::F64 => "f64",
            MatrixElement::I32 => "i32",
        }
    }
}

/// How many rows and columns a matrix has. Either may be 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatrixShape {
    /// Rows.
    pub rows: u64,
    /// Columns.
    pub columns: u64,
}

impl MatrixShape {
    /// Bytes of all elements; `None` above 64 bits.
    #[must_use]
    pub fn bytes(self, element: MatrixElement) -> Option<u64> {
        self.rows.checked_mul(self.columns)?.checked_mul(element.bytes())
    }
}

/// How a file holds a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MatrixFormat {
    /// NumPy's `.npy`: a header with type and shape, then the elements.
    Npy,
    /// The elements alone, row by row. Type and shape are known from elsewhere.
    Raw,
}

/// A matrix in a file.
#[derive(Clone)]
pub struct Matrix {
    storage: Arc<dyn Storage>,
    element: MatrixElement,
    shape: MatrixShape,
    /// Whether elements lie column by column.
    by_columns: bool,
    /// Where the first element is.
    data_offset: u64,
}

impl Matrix {
    /// The matrix of a `.npy` file.
    ///
    /// # Errors
    /// [`MatrixError::Engine`] for a file that can't be read, is no `.npy` file, or is shorter or longer
    /// than its header says; or that has other elements than [`MatrixElement`], or not two dimensions.
    pub fn open(storage: Arc<dyn Storage>) -> Result<Self, MatrixError> {
        format::open(storage)
    }

    /// The matrix of a raw file.
    ///
    /// # Errors
    /// [`MatrixError::Engine`] when the file has not the size of that shape.
    pub fn raw(
        storage: Arc<dyn Storage>,
        element: MatrixElement,
        shape: MatrixShape,
    ) -> Result<Self, MatrixError> {
        format::raw(storage, element, shape)
    }

    /// The type of its elements.
    #[must_use]
    pub fn element(&self) -> MatrixElement {
        self.element
    }

    /// Its shape.
    #[must_use]
    pub fn shape(&self) -> MatrixShape {
        self.shape
    }
}

/// The settings of a product.
pub struct MatrixOptions {
    /// All memory that grows with the matrices.
    pub budget: Budget,
    /// Threads that multiply, at least 1. There are fewer where memory does not suffice for all.
    pub threads: usize,
    /// How the product is written.
    pub format: MatrixFormat,
}

/// Counts of a finished product.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct MatrixReport {
    /// Bytes read of both factors.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Blocks of the product.
    pub blocks: u64,
    /// Rows of a block.
    pub block_rows: u64,
    /// Columns of a block.
    pub block_columns: u64,
    /// Threads that multiplied.
    pub threads: usize,
    /// The most of the budget that was reserved at once, in bytes.
    pub memory_peak_bytes: u64,
}

/// Why a product fails.
#[derive(Debug, thiserror::Error)]
pub enum MatrixError {
    /// The shapes of the factors don't fit.
    #[error(
        "{a} has {columns} columns and {b} has {rows} rows; a product needs as many columns on the left as rows on the right"
    )]
    Shapes {
        /// The left factor.
        a: String,
        /// Its columns.
        columns: u64,
        /// The right factor.
        b: String,
        /// Its rows.
        rows: u64,
    },
    /// The factors have different elements.
    #[error("{a} has elements of type {of_a} and {b} of type {of_b}; convert one of them")]
    Elements {
        /// The left factor.
        a: String,
        /// Type of its elements.
        of_a: &'static str,
        /// The right factor.
        b: String,
        /// Type of its elements.
        of_b: &'static str,
    },
    /// The product has more bytes than a file can have.
    #[error("a product of {rows} rows and {columns} columns is larger than a file can be")]
    TooLarge {
        /// Rows of the product.
        rows: u64,
        /// Columns of the product.
        columns: u64,
    },
    /// A file, the memory, or the caller's wish to stop.
    #[error(transparent)]
    Engine(#[from] merganser_sort::Error),
}

impl From<std::io::Error> for MatrixError {
    fn from(error: std::io::Error) -> Self {
        MatrixError::Engine(error.into())
    }
}
