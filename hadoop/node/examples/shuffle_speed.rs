//! How fast spills in memory are merged, compared with reading and copying them once:
//! `cargo run --release -p merganser-hadoop-node --example shuffle_speed [DIR]`.

#![allow(clippy::print_stdout, reason = "it prints what it measured")]

use std::path::PathBuf;

use merganser_hadoop_node::shuffle::calibration::calibrate;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let (sizes, fan_ins) = ([32, 100, 1000, 4096, 32_768], [1, 2, 4, 16, 64]);
    let found = calibrate(&dir, &sizes, &fan_ins)?;
    let rate = |ns: f64| 1000.0 / ns;
    println!(
        "MB/s: disk writes {:.0}, reads {:.0}, copy {:.0}; seek {:.0} us, segment {:.1} us",
        rate(found.write_ns),
        rate(found.read_ns),
        rate(found.copy_ns),
        found.seek_ns / 1e3,
        found.segment_ns / 1e3,
    );
    println!("MB/s of merges, by bytes of a record and fan-in {fan_ins:?}");
    for row in found.merges.chunks(fan_ins.len()) {
        print!("{:8}", row[0].record_bytes);
        row.iter().for_each(|merge| print!("{:8.0}", rate(merge.ns)));
        println!();
    }
    Ok(())
}
