//! Reads a view at random offsets and prints the latencies as JSON, for `bench/`.
//!
//! ```text
//! view_reads VIEW [--reads 200] [--size 65536] [--memory-mib 256] [--seed 1]
//! ```

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use merganser_sort::Budget;
use merganser_sort::view::View;
use merganser_storage::file::FileDirectory;
use merganser_storage::{Directory, Storage};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: view_reads VIEW [--reads N] [--size BYTES]")?;
    let (mut reads, mut size, mut memory_mib, mut seed) = (200, 65536, 256, 1u64);
    while let Some(flag) = arguments.next() {
        let value: u64 = arguments.next().ok_or(format!("{flag} takes a number"))?.parse()?;
        match &flag[..] {
            "--reads" => reads = value.max(1),
            "--size" => size = value,
            "--memory-mib" => memory_mib = value,
            "--seed" => seed = value | 1,
            _ => return Err(format!("{flag}: unknown").into()),
        }
    }
    let folder: Arc<dyn Directory> = FileDirectory::open(&path)?;
    let opening = Instant::now();
    let view = View::open(&folder, &Budget::new(memory_mib << 20), 2)?;
    let open_ms = opening.elapsed().as_secs_f64() * 1e3;
    let room = view.size().saturating_sub(size).max(1);
    let mut out = vec![0; size as usize];
    let mut latencies_us = Vec::new();
    for _ in 0..reads {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        let started = Instant::now();
        view.read_random(seed % room, &mut out)?;
        latencies_us.push(started.elapsed().as_secs_f64() * 1e6);
    }
    latencies_us.sort_by(f64::total_cmp);
    let at = |share: f64| latencies_us[((latencies_us.len() - 1) as f64 * share) as usize];
    let report = serde_json::json!({
        "view_bytes": view.size(),
        "runs": view.storages().len(),
        "reads": reads,
        "read_bytes": size,
        "open_ms": open_ms,
        "p50_us": at(0.5),
        "p90_us": at(0.9),
        "p99_us": at(0.99),
        "max_us": at(1.0),
    });
    #[expect(clippy::print_stdout, reason = "the report is this program's output")]
    {
        println!("{report:#}");
    }
    Ok(())
}
