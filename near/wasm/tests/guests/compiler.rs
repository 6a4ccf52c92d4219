//! The memory of the compiler for modules that strangers made large on purpose.

use std::sync::atomic::{AtomicUsize, Ordering};

use merganser_map::ssdlet::{Loan, MemoryLender};
use merganser_wasm::describe;

use crate::*;

const MIB: u64 = 1 << 20;

/// A number as modules have it.
fn leb(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let byte = number as u8 & 0x7f;
        number >>= 7;
        bytes.push(if number > 0 { byte | 0x80 } else { byte });
        if number == 0 {
            return bytes;
        }
    }
}

fn sized(content: &[u8]) -> Vec<u8> {
    [&leb(content.len())[..], content].concat()
}

fn list(count: usize, content: &[u8]) -> Vec<u8> {
    sized(&[&leb(count)[..], content].concat())
}

/// A good guest with `functions` more of this body, and more of other sections.
fn module(functions: usize, body: &[u8], globals: usize, exports: usize, locals: usize) -> Vec<u8> {
    let signatures = b"\x60\0\x01\x7f\x60\x01\x7f\x01\x7f\x60\x02\x7f\x7f\x01\x7f\x60\0\0";
    let kinds = [&b"\0\x01\x02"[..], &vec![3; functions]].concat();
    let name = |name: &str, kind: &[u8]| [&sized(name.as_bytes())[..], kind].concat();
    let mut exported = [
        name("memory", b"\x02\0"),
        name("mgs_abi", b"\0\0"),
        name("mgs_buffer", b"\0\x01"),
        name("mgs_chunk", b"\0\x02"),
    ]
    .concat();
    (0..exports).for_each(|n| exported.extend(name(&format!("x{n}"), b"\0\x02")));
    let body = match locals {
        0 => [b"\0", body].concat(),
        locals => [b"\x01", &leb(locals)[..], b"\x7f", body].concat(),
    };
    let good = b"\x04\0\x41\x01\x0b\x06\0\x41\x80\x80\x04\x0b\x04\0\x41\0\x0b";
    let bodies = [&good[..], &sized(&body).repeat(functions)].concat();
    let json = format!(
        r#"{{"abi": 1, "name": "guest", "input": "lines", "memory": 1048576, "output": {KEYED}}}"#
    );
    [
        &b"\0asm\x01\0\0\0"[..],
        b"\x01",
        &list(4, signatures),
        b"\x03",
        &list(functions + 3, &kinds),
        b"\x05\x03\x01\0\x02\x06",
        &list(globals, &b"\x7f\0\x41\0\x0b".repeat(globals)),
        b"\x07",
        &list(exports + 4, &exported),
        b"\x0a",
        &list(functions + 3, &bodies),
        b"\0",
        &sized(&[&sized(b"merganser.ssdlet")[..], json.as_bytes()].concat()),
    ]
    .concat()
}

/// The code of a function: what takes much, `times` times.
fn code(kind: usize, times: usize) -> Vec<u8> {
    let piece: &[u8] = match kind % 5 {
        // Calls of itself or its like: the most memory per byte that was found.
        0 => b"\x10\x03",
        // An addition that goes nowhere.
        1 => b"\x41\x08\x28\x02\0\x1a",
        // A load and a store.
        2 => b"\x41\x08\x41\x04\x28\x02\0\x36\x02\0",
        // A memory that grows.
        3 => b"\x41\0\x40\0\x1a",
        // A block with a loop in it.
        _ => b"\x02\x40\x03\x40\x0b\x0b",
    };
    [&piece.repeat(times)[..], b"\x0b"].concat()
}

/// Lends so often; nothing is compiled without it.
struct Times(AtomicUsize);

impl MemoryLender for Times {
    fn most_bytes(&self) -> u64 {
        24 * MIB
    }

    fn lend(&self, bytes: u64) -> Result<Loan, SsdletError> {
        assert!(bytes <= self.most_bytes());
        let less = |left: usize| left.checked_sub(1);
        match self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
            Ok(_) => Ok(Loan::free()),
            Err(_) => Err(SsdletError::Failed("enough were compiled".to_owned())),
        }
    }
}

/// A line of /proc/self/status, in bytes.
fn status(line: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|found| found.starts_with(line)).expect("it is there");
    line.split_whitespace().nth(1).expect("a number").parse::<u64>().expect("a number") << 10
}

/// Compiles modules that were made large in every way, within the memory that is lent. It reads the memory of its
/// process, so it runs in one that has no other tests.
#[test]
#[ignore = "minutes of a processor in a build without optimisation"]
fn large_modules_take_no_more_than_they_were_lent() {
    const ALONE: &str = "MERGANSER_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let alone = Command::new(std::env::current_exe().expect("this test"))
            .args([
                "compiler::large_modules_take_no_more_than_they_were_lent",
                "--exact",
                "--ignored",
            ])
            .env(ALONE, "1")
            .output()
            .expect("it starts");
        let said = String::from_utf8_lossy(&alone.stdout);
        assert!(said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&alone.stderr));
        return;
    }
    // The engine itself is not a module's.
    open(&module(1, b"\x0b", 0, 0, 0), b"", WasmLimits::default()).expect("good");
    let before = status("VmRSS:");
    // In a build without optimisation, the compiler takes a second for each of these.
    let lender = Times(AtomicUsize::new(12));
    let (mut refused, mut compiled) = (0, 0);
    for n in 0..1000usize {
        // All kinds of code, functions and lengths, from those that just fit to those of 4 MiB.
        let times = [3, 40, 500, 6000, 60_000][n % 5];
        let functions = (1 << (n / 5 % 14)).min((3 << 20) / code(n, times).len());
        let (globals, exports) = ([0, 100, 20_000][n % 3], [0, 1000, 30_000][n / 3 % 3]);
        let locals = [0, 10, 50_000][n / 7 % 3];
        let module = module(functions.max(1), &code(n / 2, times), globals, exports, locals);
        match describe(&module, &WasmLimits::default(), &lender) {
            Ok(_) => compiled += 1,
            Err(error) => {
                let told = error.to_string();
                assert!(!told.contains('\n') && told.len() < 400, "no sentence: {told}");
                refused += 1;
            }
        }
    }
    let taken = status("VmHWM:").saturating_sub(before);
    assert!(compiled > 20 && refused > 500, "{compiled} and {refused}");
    assert!(taken <= 24 * MIB + 16 * MIB, "{} MiB", taken / MIB);
}

/// The number that the attack found: 30,000 functions of two bytes each.
#[test]
fn many_empty_functions_are_refused_before_they_are_compiled() {
    let begun = std::time::Instant::now();
    for (functions, told) in [
        (30_000, "guest: it has 30003 functions, and 10000 is the most"),
        (9_000, "guest: to compile it may take 5"),
    ] {
        let module = module(functions, b"\x0b", 0, 0, 0);
        let lender = Times(AtomicUsize::new(0));
        let error = describe(&module, &WasmLimits::default(), &lender).expect_err("too many");
        assert!(error.to_string().starts_with(told), "{error}");
    }
    assert!(begun.elapsed().as_secs() < 10);
}

/// The guests of the guide fit into the memory that is lent without counting, or nearly.
#[test]
fn guests_of_all_languages_are_small() {
    struct Little;
    impl MemoryLender for Little {
        fn most_bytes(&self) -> u64 {
            24 * MIB
        }

        fn lend(&self, _: u64) -> Result<Loan, SsdletError> {
            Ok(Loan::free())
        }
    }
    for language in ["c", "rust", "assemblyscript"] {
        let Some((_folder, path)) = built(language) else { continue };
        for entry in std::fs::read_dir(path).expect("built") {
            let path = entry.expect("readable").path();
            if path.extension().is_some_and(|end| end == "wasm") {
                let module = std::fs::read(&path).expect("readable");
                describe(&module, &WasmLimits::default(), &Little).expect("a guest");
            }
        }
    }
}
