//! The part of the Python package `merganser` that is in Rust.
//!
//! ```text
//!   merganser (Python)   what users call: arguments, docstrings, View, data sets
//!      │ jobs: dictionaries
//!      ▼
//!   tables    a sort of tables         given    tables of other libraries, by Arrow's C stream
//!   records   a sort of lines, ...     stream   batches for other libraries, the same way back
//!   view      a view of either         value    values of Python as keys
//!      │
//!      ▼
//!   work      the engine's thread; the caller waits without the interpreter's lock and looks at signals
//!   failure   errors of the engine as exceptions      process   a process that was forked
//! ```
//!
//! Nothing here changes data: it opens what [`merganser_tables`] and [`merganser_sort`] have, and waits. The functions are
//! private to the package: their arguments are checked in Python, where the sentences name the arguments of users.

mod failure;
mod given;
mod output;
mod process;
mod records;
mod stream;
mod tables;
mod value;
mod view;
mod work;

/// The native module.
#[pyo3::pymodule(gil_used = false)]
mod _merganser {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::records::sort_records;
    #[pymodule_export]
    use crate::stream::ArrowRows;
    #[pymodule_export]
    use crate::tables::{is_table, sort_table};
    #[pymodule_export]
    use crate::view::{OpenedView, ViewRecords};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::process::expect_contained_panics();
        let wait = wrap_pyfunction!(crate::work::wait_for_jobs, module)?;
        module.py().import("atexit")?.call_method1("register", (wait,))?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
