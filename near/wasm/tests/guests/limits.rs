//! Fuel, time and memory; and that the end of one guest is no other's.

use std::time::{Duration, Instant};

use crate::*;

const FOREVER: &str = "(loop (br 0))";

#[test]
fn a_call_ends_at_its_time() {
    let limits = WasmLimits {
        fuel_per_byte: u64::MAX,
        // A busy machine may stop any call for some time; this one must be the first to take so long.
        call_time: Some(Duration::from_millis(500)),
        ..WasmLimits::default()
    };
    let begun = Instant::now();
    let told =
        run(&guest(KEYED, FOREVER, ""), b"", limits.clone(), &[b"x\n"]).expect_err("endless");
    assert_eq!(
        told.to_string(),
        "guest: mgs_chunk took longer than 500ms (bytes 0 to 2 of input 0)"
    );
    assert!(begun.elapsed() >= Duration::from_millis(500));
    assert!(begun.elapsed() < Duration::from_secs(30));
    // Each call has all of the time, and a guest that is quick never meets it.
    let limits = WasmLimits { call_time: Some(Duration::from_secs(1)), ..limits };
    let quick = guest(KEYED, "", "");
    let ssdlet = open(&quick, b"", limits).expect("good");
    let mut worker = ssdlet.worker().expect("started");
    for offset in 0..5 {
        std::thread::sleep(Duration::from_millis(300));
        let mut found = CollectedOutput::default();
        let chunk = Chunk { input: 0, offset, bytes: b"x\n" };
        worker.chunk(chunk, &mut Emitter::collecting(&mut found)).expect("quick");
    }
}

#[test]
fn fuel_is_a_meter_that_gives_the_same_everywhere() {
    let body = "(local $i i32) (loop (br_if 0 (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get 1))))";
    let ssdlet = open(&guest(KEYED, body, ""), b"", WasmLimits::default()).expect("good");
    let fuel = |bytes: usize| {
        let mut worker = ssdlet.worker().expect("started");
        worker.meter();
        let (input, mut found) = (vec![b'\n'; bytes], CollectedOutput::default());
        let chunk = Chunk { input: 0, offset: 0, bytes: &input };
        worker.chunk(chunk, &mut Emitter::collecting(&mut found)).expect("good");
        let used = worker.meter();
        assert_eq!(worker.meter(), 0, "since the last call");
        used
    };
    let (short, long) = (fuel(1000), fuel(5000));
    assert_eq!(long, fuel(5000), "again the same");
    let per_byte = (long - short) / 4000;
    assert!((3..12).contains(&per_byte), "{per_byte} units for some six instructions");
}

/// The work of the host for a guest is metered, too: bytes that it hands over are not free.
#[test]
fn what_is_handed_over_takes_fuel() {
    let fuel = |body: &str| {
        let ssdlet = open(&guest(KEYED, body, ""), b"", WasmLimits::default()).expect("good");
        let mut worker = ssdlet.worker().expect("started");
        worker.meter();
        let chunk = Chunk { input: 0, offset: 0, bytes: b"x\n" };
        worker
            .chunk(chunk, &mut Emitter::collecting(&mut CollectedOutput::default()))
            .expect("good");
        worker.meter()
    };
    let none = fuel("(call $spans (i32.const 0) (i32.const 0))");
    assert!(fuel("(call $spans (i32.const 0) (i32.const 1000))") >= none + 8000);
}

/// Spans that name the same bytes again and again are work for the host each time.
#[test]
fn the_bytes_that_spans_name_take_fuel() {
    let all = "(i32.store (i32.const 4) (local.get 1))";
    let entries = |call: &str, times: u32| {
        format!(
            "{all} (loop $again (call {call} (i32.const 0) (i32.const 1))
                (i32.store (i32.const 16) (i32.add (i32.load (i32.const 16)) (i32.const 1)))
                (br_if $again (i32.lt_u (i32.load (i32.const 16)) (i32.const {times}))))"
        )
    };
    let lines = vec![b'\n'; 100_000];
    let limits = WasmLimits { fuel_per_byte: 100, ..WasmLimits::default() };
    for (output, call) in [(ORDERED, "$spans"), (KEYED, "$spans"), (KEYED, "$values")] {
        let run = |times| {
            let module = guest(output, &entries(call, times), "");
            run(&module, b"", limits.clone(), &[&lines]).map(|_| ())
        };
        run(1000).expect("100 MB are within 210 million units");
        let told = run(3000).expect_err("300 MB are not").to_string();
        assert!(told.contains("used up its fuel"), "{call}: {told}");
    }
}

#[test]
fn a_guest_that_failed_is_not_called_again_and_others_continue() {
    let body = "(if (i32.eq (call $input) (i32.const 1)) (then unreachable))";
    let ssdlet = open(&guest(KEYED, body, ""), b"", WasmLimits::default()).expect("good");
    let mut workers = [ssdlet.worker().expect("started"), ssdlet.worker().expect("started")];
    let mut found = CollectedOutput::default();
    let mut give = |worker: usize, input| {
        let chunk = Chunk { input, offset: 0, bytes: b"x\n" };
        workers[worker].chunk(chunk, &mut Emitter::collecting(&mut found))
    };
    give(0, 0).expect("good");
    give(1, 1).expect_err("it traps at input 1");
    let told = give(1, 0).expect_err("not again").to_string();
    assert_eq!(told, "guest: it has failed before");
    give(0, 0).expect("the other one continues");
}

#[test]
fn memory_is_reserved_as_it_is_declared() {
    let ssdlet = open(&guest(KEYED, "", ""), b"", WasmLimits::default()).expect("good");
    let bytes = ssdlet.description().worker_bytes;
    assert!((1 << 20..(1 << 20) + (1 << 18)).contains(&bytes), "{bytes}");
    // All of it can be had, and chunks of any length that fits.
    let grow = r#"(func (export "mgs_open") (result i32) (i32.eq (memory.grow (i32.const 12)) (i32.const -1)))"#;
    let module = guest(KEYED, "", grow);
    let long = vec![b'\n'; (1 << 20) - 65536 - 4096];
    run(&module, b"", WasmLimits::default(), &[b"x\n", &long, b"x\n"]).expect("it fits");
    let longer = vec![b'\n'; 1 << 20];
    let told =
        run(&module, b"", WasmLimits::default(), &[&longer]).expect_err("too long").to_string();
    assert!(told.contains("outside of its memory"), "{told}");
}

/// Sessions of a server may be open for long and do nothing, and no budget counts what they hold.
/// It reads the memory of its process, so it runs in one that has no other tests.
#[test]
fn an_ssdlet_that_is_open_holds_no_guest() {
    const ALONE: &str = "MERGANSER_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let alone = Command::new(std::env::current_exe().expect("this test"))
            .args(["limits::an_ssdlet_that_is_open_holds_no_guest", "--exact", "--nocapture"])
            .env(ALONE, "1")
            .output()
            .expect("it starts");
        let said = String::from_utf8_lossy(&alone.stdout);
        assert!(said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&alone.stderr));
        return;
    }
    // It touches 32 MiB when it gets its arguments.
    let open_bytes = r#"(func (export "mgs_open") (result i32)
        (drop (memory.grow (i32.const 512)))
        (memory.fill (i32.const 262144) (i32.const 1) (i32.const 33554432)) i32.const 0)"#;
    let (chunk, section) = (chunk(""), section(KEYED).replace("1048576", "67108864"));
    let module = wat(&format!("(module {MEMORY} {ABI} {BUFFER} {chunk} {open_bytes} {section})"));
    let resident = || {
        let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("it is there");
        line.split_whitespace().nth(1).expect("a number").parse::<u64>().expect("a number") << 10
    };
    let before = resident();
    let ssdlets: Vec<_> =
        (0..16).map(|_| open(&module, b"", WasmLimits::default()).expect("good")).collect();
    let held = resident().saturating_sub(before);
    assert!(held < 128 << 20, "{held} bytes for 16 of 32 MiB");
    assert!(ssdlets[0].worker().is_ok(), "it can still be run");
}

/// The same numbers on every processor: the sign and the payload of a NaN are visible in results.
#[test]
fn nans_have_one_form() {
    let body = r#"
        (i32.store (i32.const 4) (i32.const 8))
        (f64.store (i32.const 8) (f64.div (f64.convert_i32_u (i32.load8_u (i32.const 100))) (f64.const 0)))
        (f64.store (i32.const 8) (f64.add (f64.load (i32.const 8)) (f64.const -nan:0x8000000000001)))
        (call $emit (i32.const 0) (i32.const 16))"#;
    let output = KEYED.replace("i64", "f64").replace("sum", "max");
    let found =
        run(&guest(&output, body, ""), b"", WasmLimits::default(), &[b"x\n"]).expect("good");
    assert_eq!(found.keyed[&b""[..]], [0x7ff8_0000_0000_0000u64.to_le_bytes()]);
}

#[test]
fn a_module_is_compiled_once() {
    let module = guest(KEYED, "(drop (i32.const 4242))", "");
    let first = open(&module, b"", WasmLimits::default()).expect("good");
    let time = first.compile_time();
    drop(first);
    let second = open(&module, b"", WasmLimits::default()).expect("good");
    assert_eq!(second.compile_time(), time, "the time of the one compilation");
    assert!(!time.is_zero());
}

/// Chunks come in any order and on any thread; the place that a guest sees is that of its chunk.
#[test]
fn many_workers_run_at_once() {
    let body = "(i64.store (i32.const 0) (i64.const 0x800000000)) (i64.store (i32.const 8) (i64.add (call $offset) (i64.extend_i32_u (call $input)))) (call $emit (i32.const 0) (i32.const 16))";
    let ssdlet = open(&guest(KEYED, body, ""), b"", WasmLimits::default()).expect("good");
    std::thread::scope(|scope| {
        for thread in 0..16u32 {
            let ssdlet = &ssdlet;
            scope.spawn(move || {
                let mut worker = ssdlet.worker().expect("started");
                let mut found = CollectedOutput::default();
                for offset in 0..100 {
                    let chunk = Chunk { input: thread, offset, bytes: b"x\n" };
                    worker.chunk(chunk, &mut Emitter::collecting(&mut found)).expect("good");
                }
                assert_eq!(sums(&found)[&b""[..]], (0..100).sum::<i64>() + 100 * i64::from(thread));
            });
        }
    });
}
