//! Multiplies what is in memory.
//!
//! Floats are the work of the crate `matrixmultiply`. It has no kernel for `i32`, so that one is here: both
//! factors are packed into stripes that are read from front to back, and 4 × 16 sums stay in registers.
//!
//! ```text
//!            16 columns                      k →
//!   b  k ┌───────────────┐      a  4 rows  ┌─────────────────┐
//!        │ stripe, packed │  ×              │ stripe, packed  │   → 4 × 16 sums, then into c
//!        └───────────────┘                 └─────────────────┘
//! ```

use super::MatrixElement;

/// Length of a slice along k: see "The order of a sum" in [`super`].
pub(super) const SLICE: usize = 256;

/// Elements in memory, with the distance between rows and between columns.
#[derive(Clone, Copy)]
pub(super) struct MatrixView<'a, T> {
    pub values: &'a [T],
    pub row_step: usize,
    pub column_step: usize,
}

/// Rows and columns of a product, and the length of its sums.
#[derive(Clone, Copy)]
pub(super) struct ProductSize {
    pub rows: usize,
    pub columns: usize,
    pub k: usize,
}

/// An element that can be multiplied.
pub(super) trait MatrixValue: Copy + Default + Send + Sync + 'static {
    const ELEMENT: MatrixElement;

    /// Memory of one call of [`MatrixValue::multiply_add`], at most.
    const SCRATCH_BYTES: u64;

    /// From and to little-endian bytes, as many as there are values.
    fn read(bytes: &[u8], values: &mut [Self]);
    fn write(values: &[Self], bytes: &mut [u8]);

    /// Adds `a` × `b` to `c`, whose rows lie end to end; `first` replaces what is there. `size.k` is at
    /// most [`SLICE`] and not 0.
    fn multiply_add(
        size: ProductSize,
        a: MatrixView<'_, Self>,
        b: MatrixView<'_, Self>,
        c: &mut [Self],
        first: bool,
    );
}

/// Whether all elements of a `rows` × `columns` view are in its slice.
fn is_inside<T: Copy>(view: MatrixView<'_, T>, rows: usize, columns: usize) -> bool {
    rows == 0
        || columns == 0
        || (rows - 1) * view.row_step + (columns - 1) * view.column_step < view.values.len()
}

fn assert_inside<T: Copy>(size: ProductSize, a: MatrixView<'_, T>, b: MatrixView<'_, T>, c: &[T]) {
    assert!(is_inside(a, size.rows, size.k) && is_inside(b, size.k, size.columns));
    assert!(size.k <= SLICE && c.len() == size.rows * size.columns);
}

macro_rules! bytes_of_values {
    () => {
        fn read(bytes: &[u8], values: &mut [Self]) {
            let (chunks, _) = bytes.as_chunks();
            for (value, bytes) in values.iter_mut().zip(chunks) {
                *value = Self::from_le_bytes(*bytes);
            }
        }

        fn write(values: &[Self], bytes: &mut [u8]) {
            let (chunks, _) = bytes.as_chunks_mut();
            for (value, bytes) in values.iter().zip(chunks) {
                *bytes = value.to_le_bytes();
            }
        }
    };
}

macro_rules! float {
    ($float:ty, $element:expr, $gemm:path) => {
        impl MatrixValue for $float {
            const ELEMENT: MatrixElement = $element;

            // It packs 256 × 1024 elements of one factor and 256 × 64 of the other.
            const SCRATCH_BYTES: u64 = 256 * (1024 + 64 + 64) * size_of::<$float>() as u64;

            bytes_of_values!();

            fn multiply_add(
                size: ProductSize,
                a: MatrixView<'_, Self>,
                b: MatrixView<'_, Self>,
                c: &mut [Self],
                first: bool,
            ) {
                assert_inside(size, a, b, c);
                let ProductSize { rows, columns, k } = size;
                let step = |elements: usize| elements as isize;
                // SAFETY: the views hold all elements at these steps, as was just checked, and `c` has
                // `rows` rows of `columns` elements end to end that nothing else refers to.
                unsafe {
                    $gemm(
                        rows,
                        k,
                        columns,
                        1.0,
                        a.values.as_ptr(),
                        step(a.row_step),
                        step(a.column_step),
                        b.values.as_ptr(),
                        step(b.row_step),
                        step(b.column_step),
                        if first { 0.0 } else { 1.0 },
                        c.as_mut_ptr(),
                        step(columns),
                        1,
                    );
                }
            }
        }
    };
}

float!(f32, MatrixElement::F32, matrixmultiply::sgemm);
float!(f64, MatrixElement::F64, matrixmultiply::dgemm);

/// Rows and columns whose sums are in registers: 8 vectors of 256 bits.
const TILE_ROWS: usize = 4;
const TILE_COLUMNS: usize = 16;

/// Columns that are packed at once: half a MiB, which a second-level cache holds.
const PACKED_COLUMNS: usize = 512;

impl MatrixValue for i32 {
    const ELEMENT: MatrixElement = MatrixElement::I32;

    const SCRATCH_BYTES: u64 = ((PACKED_COLUMNS + TILE_ROWS) * SLICE * 4) as u64;

    bytes_of_values!();

    fn multiply_add(
        size: ProductSize,
        a: MatrixView<'_, Self>,
        b: MatrixView<'_, Self>,
        c: &mut [Self],
        first: bool,
    ) {
        assert_inside(size, a, b, c);
        #[cfg(target_arch = "x86_64")]
        if std::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2, as was just found.
            return unsafe { product_avx2(size, a, b, c, first) };
        }
        product(size, a, b, c, first);
    }
}

/// [`product`], compiled for processors with AVX2: SSE2 has no 32-bit multiplication.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn product_avx2(
    size: ProductSize,
    a: MatrixView<'_, i32>,
    b: MatrixView<'_, i32>,
    c: &mut [i32],
    first: bool,
) {
    product(size, a, b, c, first);
}

#[inline(always)]
fn product(
    size: ProductSize,
    a: MatrixView<'_, i32>,
    b: MatrixView<'_, i32>,
    c: &mut [i32],
    first: bool,
) {
    let ProductSize { rows, columns, k } = size;
    let packed_columns = columns.min(PACKED_COLUMNS).next_multiple_of(TILE_COLUMNS);
    let mut packed_b = vec![0; packed_columns * k];
    let mut packed_a = vec![0; TILE_ROWS * k];
    for from in (0..columns).step_by(PACKED_COLUMNS) {
        let width = PACKED_COLUMNS.min(columns - from);
        let stripes = pack_b(b, from..from + width, k, &mut packed_b);
        for row in (0..rows).step_by(TILE_ROWS) {
            let height = TILE_ROWS.min(rows - row);
            pack_a(a, row..row + height, &mut packed_a);
            for stripe in 0..stripes {
                let column = from + stripe * TILE_COLUMNS;
                let packed_b = &packed_b[stripe * k * TILE_COLUMNS..][..k * TILE_COLUMNS];
                let sums = tile(&packed_a, packed_b);
                let width = TILE_COLUMNS.min(from + width - column);
                for (i, sums) in sums.iter().enumerate().take(height) {
                    let c = &mut c[(row + i) * columns + column..][..width];
                    for (c, sum) in c.iter_mut().zip(sums) {
                        *c = if first { *sum } else { c.wrapping_add(*sum) };
                    }
                }
            }
        }
    }
}

/// Packs columns of `b` into stripes of [`TILE_COLUMNS`], the last one filled up with zeros. Returns how
/// many.
#[inline(always)]
fn pack_b(
    b: MatrixView<'_, i32>,
    columns: std::ops::Range<usize>,
    k: usize,
    packed: &mut [i32],
) -> usize {
    let stripes = columns.len().div_ceil(TILE_COLUMNS);
    for (stripe, packed) in packed.chunks_exact_mut(k * TILE_COLUMNS).take(stripes).enumerate() {
        let from = columns.start + stripe * TILE_COLUMNS;
        let width = TILE_COLUMNS.min(columns.end - from);
        for (p, packed) in packed.chunks_exact_mut(TILE_COLUMNS).enumerate() {
            let start = p * b.row_step + from * b.column_step;
            for (j, packed) in packed.iter_mut().enumerate() {
                *packed = if j < width { b.values[start + j * b.column_step] } else { 0 };
            }
        }
    }
    stripes
}

/// Packs rows of `a` into one stripe, filled up with zeros.
#[inline(always)]
fn pack_a(a: MatrixView<'_, i32>, rows: std::ops::Range<usize>, packed: &mut [i32]) {
    for (p, packed) in packed.chunks_exact_mut(TILE_ROWS).enumerate() {
        for (i, packed) in packed.iter_mut().enumerate() {
            let inside = i < rows.len();
            let at = (rows.start + i) * a.row_step + p * a.column_step;
            *packed = if inside { a.values[at] } else { 0 };
        }
    }
}

#[inline(always)]
fn tile(a: &[i32], b: &[i32]) -> [[i32; TILE_COLUMNS]; TILE_ROWS] {
    let mut sums = [[0_i32; TILE_COLUMNS]; TILE_ROWS];
    let (a, _) = a.as_chunks::<TILE_ROWS>();
    let (b, _) = b.as_chunks::<TILE_COLUMNS>();
    for (a, b) in a.iter().zip(b) {
        for (sums, a) in sums.iter_mut().zip(a) {
            for (sum, b) in sums.iter_mut().zip(b) {
                *sum = sum.wrapping_add(a.wrapping_mul(*b));
            }
        }
    }
    sums
}
