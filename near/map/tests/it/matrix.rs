//! Products of matrices: against a naive model, for any memory and threads, with faults.

use std::sync::Arc;

use merganser_map::matrix::{
    Matrix, MatrixElement, MatrixError, MatrixFormat, MatrixOptions, MatrixReport, MatrixShape,
    multiply,
};
use merganser_sort::{Budget, Error, Progress, Silent};
use merganser_storage::memory::MemoryDirectory;
use merganser_storage::{Directory, Storage, StorageExt};
use merganser_testkit::faulty::{Fault, FaultPlan, Faulty};
use proptest::prelude::*;

fn file(name: &str, bytes: &[u8]) -> Arc<dyn Storage> {
    let storage = MemoryDirectory::new().create(name).expect("creates");
    storage.write_at(0, bytes).expect("writes");
    storage
}

fn shape(rows: u64, columns: u64) -> MatrixShape {
    MatrixShape { rows, columns }
}

fn raw_i32(shape: MatrixShape, values: &[i32]) -> Matrix {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Matrix::raw(file("m", &bytes), MatrixElement::I32, shape).expect("a matrix")
}

fn options(memory_bytes: u64, threads: usize, format: MatrixFormat) -> MatrixOptions {
    MatrixOptions { budget: Budget::new(memory_bytes), threads, format }
}

fn bytes_of(storage: &dyn Storage) -> Vec<u8> {
    storage.read_vec(0, storage.size() as usize).expect("reads")
}

fn product(a: &Matrix, b: &Matrix, options: &MatrixOptions) -> (Vec<u8>, MatrixReport) {
    let out = file("c", b"what was there before");
    let report = multiply(a, b, &*out, options, &Silent).expect("multiplies");
    (bytes_of(&*out), report)
}

/// Pseudo-random values, of both signs and different sizes.
fn values(count: u64, seed: u64) -> impl Iterator<Item = i32> {
    let mut state = seed | 1;
    (0..count).map(move |_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as i32
    })
}

fn naive(a: &[i32], b: &[i32], rows: usize, k: usize, columns: usize) -> Vec<i32> {
    let mut c = vec![0_i32; rows * columns];
    for i in 0..rows {
        for j in 0..columns {
            for p in 0..k {
                let term = a[i * k + p].wrapping_mul(b[p * columns + j]);
                c[i * columns + j] = c[i * columns + j].wrapping_add(term);
            }
        }
    }
    c
}

#[test]
fn two_rows_times_two_columns() {
    // 1 2 3     7  8      58  64
    // 4 5 6  ×  9 10  =  139 154
    //          11 12
    let a = raw_i32(shape(2, 3), &[1, 2, 3, 4, 5, 6]);
    let b = raw_i32(shape(3, 2), &[7, 8, 9, 10, 11, 12]);
    let (bytes, report) = product(&a, &b, &options(16 << 20, 1, MatrixFormat::Raw));
    let found: Vec<i32> =
        bytes.as_chunks().0.iter().map(|bytes| i32::from_le_bytes(*bytes)).collect();
    assert_eq!(found, [58, 64, 139, 154]);
    assert_eq!((report.blocks, report.read_bytes, report.written_bytes), (1, 48, 16));
}

#[test]
fn the_bytes_of_a_product_are_pinned() {
    let a = raw_i32(shape(1, 2), &[1, -2]);
    let b = raw_i32(shape(2, 3), &[3, 4, 5, 6, 7, i32::MAX]);
    let (bytes, _) = product(&a, &b, &options(16 << 20, 1, MatrixFormat::Npy));
    let dump: Vec<String> = bytes
        .chunks(16)
        .map(|line| line.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" "))
        .collect();
    let golden = include_str!("../golden/matrix.npy.txt");
    assert_eq!(dump.join("\n"), golden.trim_end());
    let again = Matrix::open(file("c.npy", &bytes)).expect("reads what it wrote");
    assert_eq!((again.element(), again.shape()), (MatrixElement::I32, shape(1, 3)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn integers_are_as_in_the_naive_model(
        rows in 0_usize..40,
        k in 0_usize..600,
        columns in 0_usize..40,
        seed: u64,
        threads in 1_usize..4,
    ) {
        let a: Vec<i32> = values((rows * k) as u64, seed).collect();
        let b: Vec<i32> = values((k * columns) as u64, !seed).collect();
        let left = raw_i32(shape(rows as u64, k as u64), &a);
        let right = raw_i32(shape(k as u64, columns as u64), &b);
        let (bytes, _) = product(&left, &right, &options(16 << 20, threads, MatrixFormat::Raw));
        let wanted: Vec<u8> =
            naive(&a, &b, rows, k, columns).iter().flat_map(|value| value.to_le_bytes()).collect();
        prop_assert_eq!(bytes, wanted);
    }
}

/// Matrices of `f64` or `f32` whose products need rounding.
fn floats(element: MatrixElement, shape: MatrixShape, seed: u64) -> Vec<u8> {
    let count = shape.rows * shape.columns;
    values(count, seed)
        .flat_map(|value| match element {
            MatrixElement::F32 => (value as f32 / 3e7).to_le_bytes().to_vec(),
            _ => (f64::from(value) / 3e7).to_le_bytes().to_vec(),
        })
        .collect()
}

#[test]
fn memory_and_threads_change_no_byte() {
    for element in [MatrixElement::F32, MatrixElement::F64] {
        let (left, right) = (shape(333, 1100), shape(1100, 517));
        let a = Matrix::raw(file("a", &floats(element, left, 1)), element, left).expect("a matrix");
        let b =
            Matrix::raw(file("b", &floats(element, right, 2)), element, right).expect("a matrix");
        let of = |memory_bytes, threads| {
            product(&a, &b, &options(memory_bytes, threads, MatrixFormat::Npy))
        };
        let (wanted, report) = of(1 << 30, 1);
        assert_eq!(report.blocks, 1);
        let least_bytes = least_bytes(&a, &b);
        for memory_bytes in [least_bytes, least_bytes + 1_000_000, 12 << 20, 20 << 20] {
            for threads in [1, 2, 3, 7] {
                let (found, report) = of(memory_bytes, threads);
                assert!(found == wanted, "{element:?}, {memory_bytes} bytes, {threads} threads");
                assert!(report.memory_peak_bytes <= memory_bytes);
            }
        }
        let (_, report) = of(least_bytes, 1);
        assert!(report.blocks > 10, "{report:?}");
        assert!(
            report.read_bytes
                > 2 * (left.bytes(element).expect("small") + right.bytes(element).expect("small"))
        );
    }
}

#[test]
fn float_products_are_near_the_exact_ones() {
    let (left, right) = (shape(5, 700), shape(700, 3));
    let (a, b) = (floats(MatrixElement::F64, left, 3), floats(MatrixElement::F64, right, 4));
    let number =
        |bytes: &[u8], at: usize| f64::from_le_bytes(bytes[at * 8..][..8].try_into().expect("8"));
    let left = Matrix::raw(file("a", &a), MatrixElement::F64, left).expect("a matrix");
    let right = Matrix::raw(file("b", &b), MatrixElement::F64, right).expect("a matrix");
    let (bytes, _) = product(&left, &right, &options(64 << 20, 2, MatrixFormat::Raw));
    for i in 0..5 {
        for j in 0..3 {
            let exact: f64 =
                (0..700).map(|p| number(&a, i * 700 + p) * number(&b, p * 3 + j)).sum();
            let found = number(&bytes, i * 3 + j);
            assert!((found - exact).abs() <= 1e-9 * exact.abs().max(1.0), "{found} {exact}");
        }
    }
}

fn least_bytes(a: &Matrix, b: &Matrix) -> u64 {
    let out = file("c", b"");
    let refused = multiply(a, b, &*out, &options(1, 4, MatrixFormat::Raw), &Silent);
    let Err(MatrixError::Engine(Error::Memory { least_bytes, .. })) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(out.size(), 0, "nothing is written before the memory is there");
    least_bytes
}

/// A `.npy` file in Fortran order: what NumPy saves for a transposed matrix.
#[test]
fn a_transposed_matrix_is_read_column_by_column() {
    let values: Vec<i32> = values(300 * 290, 9).collect();
    let text = "{'descr': '<i4', 'fortran_order': True, 'shape': (290, 300), }\n";
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend_from_slice(&(text.len() as u16).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    let transposed = Matrix::open(file("t.npy", &bytes)).expect("a matrix");
    let plain: Vec<i32> = (0..290 * 300).map(|at| values[at % 300 * 290 + at / 300]).collect();
    let plain = raw_i32(shape(290, 300), &plain);
    let other = raw_i32(shape(300, 290), &values);
    for memory_bytes in [least_bytes(&transposed, &other), 64 << 20] {
        let options = options(memory_bytes, 2, MatrixFormat::Raw);
        assert_eq!(product(&transposed, &other, &options).0, product(&plain, &other, &options).0);
        assert_eq!(product(&other, &transposed, &options).0, product(&other, &plain, &options).0);
    }
}

#[test]
fn factors_that_do_not_fit_are_named() {
    let a = raw_i32(shape(1, 2), &[1, 2]);
    let b = raw_i32(shape(1, 2), &[1, 2]);
    let floats =
        Matrix::raw(file("f", &[0; 8]), MatrixElement::F32, shape(2, 1)).expect("a matrix");
    let out = file("c", b"");
    let refusal = |a, b| {
        let options = options(1 << 20, 1, MatrixFormat::Raw);
        multiply(a, b, &*out, &options, &Silent).expect_err("refused").to_string()
    };
    assert!(refusal(&a, &b).starts_with("memory/m has 2 columns and memory/m has 1 rows"));
    assert!(refusal(&a, &floats).contains("of type i32 and memory/f of type f32"));
    let many =
        Matrix::raw(file("many", b""), MatrixElement::I32, shape(u64::MAX, 0)).expect("empty");
    let wide =
        Matrix::raw(file("wide", b""), MatrixElement::I32, shape(0, u64::MAX)).expect("empty");
    assert!(refusal(&many, &wide).contains("larger than a file can be"));
}

#[test]
fn sums_of_nothing_are_zeros() {
    let a = raw_i32(shape(2, 0), &[]);
    let b = raw_i32(shape(0, 3), &[]);
    let (bytes, _) = product(&a, &b, &options(16 << 20, 2, MatrixFormat::Raw));
    assert_eq!(bytes, [0; 24]);
}

#[test]
fn a_failed_read_or_write_ends_the_product() {
    let bytes: Vec<u8> = values(90_000, 5).flat_map(i32::to_le_bytes).collect();
    let square = shape(300, 300);
    let good = Matrix::raw(file("a", &bytes), MatrixElement::I32, square).expect("a matrix");
    let least_bytes = least_bytes(&good, &good);
    let run = |fault| {
        let faulty =
            Faulty::new(MemoryDirectory::new(), FaultPlan { seed: 1, faults: vec![fault] });
        let bad = Matrix::raw(faulty.wrap(file("b", &bytes)), MatrixElement::I32, square)
            .expect("a matrix");
        let out = faulty.create("c").expect("creates");
        let options = options(least_bytes, 2, MatrixFormat::Raw);
        let failed = multiply(&good, &bad, &*out, &options, &Silent);
        assert!(!faulty.fired().is_empty());
        assert!(
            matches!(failed, Err(MatrixError::Engine(Error::Io(_) | Error::Input { .. }))),
            "{failed:?}"
        );
        assert_eq!(options.budget.free_bytes(), least_bytes);
    };
    for nth in [1, 2, 40] {
        run(Fault::FailRead { nth });
        run(Fault::FailWrite { nth });
        run(Fault::ShortRead { nth });
    }
    run(Fault::Full { bytes: 100_000 });
}

#[test]
fn a_cancelled_product_stops() {
    struct Stop;
    impl Progress for Stop {
        fn cancelled(&self) -> bool {
            true
        }
    }
    let a = raw_i32(shape(1, 1), &[1]);
    let out = file("c", b"");
    let stopped = multiply(&a, &a, &*out, &options(16 << 20, 1, MatrixFormat::Raw), &Stop);
    assert!(matches!(stopped, Err(MatrixError::Engine(Error::Cancelled))));
}
