//! The store's writers beside one another: 1 to 512 buckets written to one disk, and read back bucket
//! by bucket (TritonSort's Tables 10 and 11).
//!
//! ```text
//! store_writers FOLDER [--bytes 1073741824] [--pool-mib 64] [--append 8192] [--rounds 1]
//! ```
//!
//! `demand` is what the engine does; `round-robin` and `double` share everything with it but the choice
//! of the bucket and of who may hold memory; `buffered` writes each append to a file a bucket, through
//! the page cache, synced at the end.

use std::error::Error;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use sort::{StoreTimes, StoreTrial, WritePolicy};
use storage::file::FileDirectory;
use storage::{Directory, Storage};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder =
        arguments.next().ok_or("usage: store_writers FOLDER [--bytes N] [--pool-mib N]")?;
    let (mut bytes, mut pool_mib, mut append_bytes, mut rounds) = (1u64 << 30, 64, 8192, 1);
    while let Some(flag) = arguments.next() {
        let value: u64 = arguments.next().ok_or(format!("{flag} takes a number"))?.parse()?;
        match &flag[..] {
            "--bytes" => bytes = value,
            "--pool-mib" => pool_mib = value as usize,
            "--append" => append_bytes = value as usize,
            "--rounds" => rounds = value,
            _ => return Err(format!("{flag}: unknown").into()),
        }
    }
    let disk = FileDirectory::open(&folder)?;
    for _ in 0..rounds {
        for buckets in [1, 8, 32, 128, 512] {
            let trial = |policy| -> Result<StoreTimes, Box<dyn Error>> {
                let pool_bytes = pool_mib << 20;
                let trial = StoreTrial { buckets, bytes, pool_bytes, append_bytes, policy };
                let file: Arc<dyn Storage> = disk.create_unnamed()?;
                Ok(trial.run(&[file])?)
            };
            print("demand", buckets, bytes, trial(WritePolicy::Demand)?);
            print("round-robin", buckets, bytes, trial(WritePolicy::RoundRobin)?);
            print("double", buckets, bytes, trial(WritePolicy::Double)?);
            print(
                "buffered",
                buckets,
                bytes,
                buffered(Path::new(&folder), buckets, bytes, append_bytes)?,
            );
        }
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the report is this program's output")]
fn print(writer: &str, buckets: usize, bytes: u64, times: StoreTimes) {
    let rate = |seconds: f64| bytes as f64 / 1e6 / seconds;
    println!(
        "{writer:<12} buckets {buckets:>4}  write {:>7.0} MB/s  read {:>7.0} MB/s  extents {:>7}",
        rate(times.write_seconds),
        rate(times.read_seconds),
        times.extents
    );
}

/// What a program does that leaves it all to the page cache.
fn buffered(
    folder: &Path,
    buckets: usize,
    bytes: u64,
    append_bytes: usize,
) -> Result<StoreTimes, Box<dyn Error>> {
    let place = tempfile::tempdir_in(folder)?;
    let path = |bucket: usize| place.path().join(bucket.to_string());
    let part = vec![7; append_bytes];
    let started = Instant::now();
    let files = (0..buckets).map(|bucket| File::create(path(bucket)));
    let mut files = files.collect::<std::io::Result<Vec<_>>>()?;
    let mut x = 1u64;
    for _ in 0..bytes / append_bytes as u64 {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        files[(x >> 11) as usize % buckets].write_all(&part)?;
    }
    files.iter().try_for_each(File::sync_data)?;
    let write_seconds = started.elapsed().as_secs_f64();
    drop(files);
    // From the disk, not from the cache.
    for bucket in 0..buckets {
        let file = File::open(path(bucket))?;
        // SAFETY: a call on an open descriptor that touches no memory.
        unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    }
    let started = Instant::now();
    let mut out = vec![0; 1 << 20];
    for bucket in 0..buckets {
        let mut file = File::open(path(bucket))?;
        while file.read(&mut out)? > 0 {}
    }
    let read_seconds = started.elapsed().as_secs_f64();
    Ok(StoreTimes { write_seconds, read_seconds, extents: buckets })
}
