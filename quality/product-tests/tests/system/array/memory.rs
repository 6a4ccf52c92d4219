//! The memory of a server.

use std::fs;

use super::{Client, PAGE, WRITE, end, page, serve};
use crate::harness::{Chance, Folder, merganser, prints};

/// Memory that a process may take beyond `--memory`, docs/array/array.md.
const OVERHEAD_BYTES: u64 = 64 << 20;
/// What [`serve`] gives.
const MEMORY_BYTES: u64 = 2 << 20;

fn peak_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("a line");
    let number = line.split_whitespace().nth(1).expect("a number");
    number.parse::<u64>().expect("a number") << 10
}

/// Random writes to a volume of 64 GiB: each page is in another map block, and the tables have 90 times the memory.
#[test]
fn a_server_stays_within_its_memory() {
    let folder = Folder::new();
    let at = |name: &str| folder.at(name).to_str().expect("text").to_owned();
    let mut command = merganser(["array", "create", "--sparse", "--size", "64G", "--quiet"]);
    command.arg(at("vol.json")).args(["--buffer-size", "8M"]);
    command.arg("--data").arg(format!("{},{}", at("ssd0"), at("ssd1")));
    prints(command.arg("--buffer").arg(format!("{},{}", at("hdd0"), at("hdd1"))));
    let server = serve(&folder, &["--write-back"]);
    let mut client = Client::new(&folder).expect("it talks");
    let mut chance = Chance::new();
    let pages = (64 << 30) / PAGE as u64;
    let mut written = Vec::new();
    for seed in 1..=3000 {
        let number = chance.below(pages);
        client.ask(WRITE, number * PAGE as u64, PAGE as u32, &page(seed)).expect("written");
        written.push((number, seed));
    }
    for (number, seed) in written.iter().rev().take(500) {
        let read = client.ask(0, number * PAGE as u64, PAGE as u32, &[]).expect("read");
        assert!(read == page(*seed) || written.iter().filter(|(n, _)| n == number).count() > 1);
    }
    let peak = peak_bytes(server.id());
    end(server);
    assert!(peak <= MEMORY_BYTES + OVERHEAD_BYTES, "{peak} bytes");
}
