//! Bad guests: each ends its own session with one sentence.

use merganser_map::ssdlet::SsdletError;
use merganser_wasm::WasmLimits;

use crate::*;

/// Limits that end loops soon.
fn tight() -> WasmLimits {
    WasmLimits { fuel_per_byte: 1000, ..WasmLimits::default() }
}

/// Runs a bad guest; gives its sentence.
fn sentence(module: &[u8], args: &[u8]) -> String {
    let error = run(module, args, tight(), &[b"a line\n", b"two\nlines\n"]).expect_err("it is bad");
    let told = error.to_string();
    assert!(!told.contains('\n') && told.len() < 2000, "no sentence: {told}");
    told
}

fn of_wat(text: &str) -> String {
    sentence(&wat(text), b"")
}

#[test]
fn a_good_one_is_good() {
    let body = "(i32.store (i32.const 0) (i32.const 2)) (i32.store (i32.const 4) (i32.const 4)) (call $spans (i32.const 0) (i32.const 1))";
    let module = guest(KEYED, body, "");
    let found = run(&module, b"", tight(), &[b"a line\n", b"my line\n"]).expect("good");
    let keys: Vec<_> = found.keyed.keys().map(|key| String::from_utf8_lossy(key)).collect();
    assert_eq!(keys, ["line", " lin"].into_iter().rev().collect::<Vec<_>>());
}

#[test]
fn parts_that_are_missing_or_of_another_type() {
    let chunk = chunk("");
    let section = section(KEYED);
    let parts = [MEMORY, ABI, BUFFER, &chunk, &section];
    for (part, told) in [
        (0, "guest: it does not export its memory under the name memory"),
        (1, "guest: it does not export mgs_abi, a function () -> i32"),
        (2, "guest: it does not export mgs_buffer, a function (i32) -> i32"),
        (3, "guest: it does not export mgs_chunk, a function (i32, i32) -> i32"),
        (4, "the module has no section merganser.ssdlet"),
    ] {
        let mut left = parts.to_vec();
        left.remove(part);
        let said = of_wat(&format!("(module {})", left.concat()));
        assert!(said.starts_with(told), "{said}");
    }
    for (part, instead, told) in [
        (0, r#"(func (export "memory"))"#, "its export memory is no memory of 32 bits"),
        (
            1,
            r#"(global (export "mgs_abi") i32 (i32.const 1))"#,
            "its export mgs_abi is no function () -> i32",
        ),
        (
            2,
            r#"(func (export "mgs_buffer") (param i64) (result i32) i32.const 1)"#,
            "its export mgs_buffer is no function (i32) -> i32",
        ),
        (
            3,
            r#"(func (export "mgs_chunk") (param i32 i32))"#,
            "its export mgs_chunk is no function (i32, i32) -> i32",
        ),
        (
            3,
            r#"(func (export "mgs_chunk") (param i32 i32) (result i32) i32.const 0) (func (export "mgs_close"))"#,
            "its export mgs_close is no function () -> i32",
        ),
        (
            1,
            r#"(func (export "mgs_abi") (result i32) i32.const 2)"#,
            "mgs_abi says version 2, and its section says 1",
        ),
    ] {
        let mut with = parts.to_vec();
        with[part] = instead;
        let said = of_wat(&format!("(module {})", with.concat()));
        assert_eq!(said, format!("guest: {told}"));
    }
}

#[test]
fn imports_that_are_not_there() {
    let with = |import: &str| {
        let (chunk, section) = (chunk(""), section(KEYED));
        of_wat(&format!("(module {import} {MEMORY} {ABI} {BUFFER} {chunk} {section})"))
    };
    for (import, told) in [
        (
            r#"(import "wasi_snapshot_preview1" "fd_write" (func (param i32 i32 i32 i32) (result i32)))"#,
            "it imports wasi_snapshot_preview1.fd_write, which is not there; a guest may import of \"mgs\": emit, ",
        ),
        (r#"(import "mgs" "open_file" (func))"#, "it imports mgs.open_file, which is not there"),
        (
            r#"(import "env" "emit" (func (param i32 i32)))"#,
            "it imports env.emit, which is not there",
        ),
        (
            r#"(import "mgs" "emit" (func (param i32)))"#,
            "it imports mgs.emit with another type than (i32, i32)",
        ),
        (
            r#"(import "mgs" "offset" (func (result i32)))"#,
            "it imports mgs.offset with another type than () -> i64",
        ),
        (
            r#"(import "mgs" "emit" (global i32))"#,
            "it imports mgs.emit with another type than (i32, i32)",
        ),
        (r#"(import "a\nb" "c" (func))"#, "it imports a b.c, which is not there"),
    ] {
        let said = with(import);
        assert!(said.starts_with(&format!("guest: {told}")), "{said}");
    }
}

#[test]
fn proposals_that_are_off() {
    let section = section(KEYED);
    let chunk = chunk("");
    for (what, more) in [
        (
            "relaxed SIMD",
            "(func (param v128 v128) (result v128) local.get 0 local.get 1 local.get 0 i8x16.relaxed_laneselect)",
        ),
        ("threads", r#"(memory (export "more") 1 1 shared)"#),
        ("two memories", "(memory 1)"),
        ("memory of 64 bits", "(memory i64 1)"),
        ("tail calls", "(func $f return_call $f)"),
        ("exceptions", "(tag) (func throw 0)"),
        ("garbage collection", "(type (struct (field i32)))"),
    ] {
        let said = of_wat(&format!("(module {MEMORY} {ABI} {BUFFER} {chunk} {more} {section})"));
        assert!(said.starts_with("guest: it can't be compiled: "), "{what}: {said}");
    }
}

#[test]
fn what_fails_in_a_chunk_names_the_chunk() {
    for (body, told) in [
        ("unreachable", "mgs_chunk gave up (an unreachable instruction)"),
        (
            "(drop (i32.div_u (i32.const 1) (i32.const 0)))",
            "mgs_chunk failed: integer divide by zero",
        ),
        ("(drop (i32.load (i32.const -1)))", "mgs_chunk failed: out of bounds memory access"),
        (
            "(drop (i32.trunc_f32_s (f32.const nan)))",
            "mgs_chunk failed: invalid conversion to integer",
        ),
        ("(call_indirect (type $t) (i32.const 0))", "mgs_chunk failed: uninitialized element"),
        (
            "(call_indirect (type $t) (i32.const 7))",
            "mgs_chunk failed: undefined element: out of bounds table access",
        ),
        ("(call $deep)", "mgs_chunk calls itself too deeply"),
        (
            "(loop (br 0))",
            "mgs_chunk used up its fuel, 1000 units for a byte of the chunk: it may loop without end, or need more",
        ),
        (
            "(loop (memory.fill (i32.const 0) (i32.const 0) (i32.const 65536)) (br 0))",
            "mgs_chunk used up its fuel",
        ),
        (
            "(loop (call $spans (i32.const 0) (i32.const 8000)) (br 0))",
            "mgs_chunk used up its fuel",
        ),
        ("(loop (call $emit (i32.const 0) (i32.const 0)) (br 0))", "mgs_chunk used up its fuel"),
        (
            "(drop (memory.grow (i32.const 13)))",
            "it wants 1114112 bytes of memory; it declares 1048576",
        ),
        ("(drop (memory.grow (i32.const -1)))", "it wants "),
        (
            "(drop (table.grow $table (ref.null func) (i32.const 10001)))",
            "it wants a table of 10003 elements; 10000 is the most",
        ),
    ] {
        let more = "(type $t (func)) (table $table 2 funcref) (func $deep call $deep)";
        let said = sentence(&guest(KEYED, body, more), b"");
        assert!(said.starts_with(&format!("guest: {told}")), "{body}: {said}");
    }
    let said = sentence(
        &guest(KEYED, "(if (i32.ne (local.get 1) (i32.const 7)) (then unreachable))", ""),
        b"",
    );
    assert_eq!(
        said,
        "guest: mgs_chunk gave up (an unreachable instruction) (bytes 7 to 17 of input 0)"
    );
    let seven = r#"(func (export "mgs_chunk") (param i32 i32) (result i32) i32.const 7)"#;
    let section = section(KEYED);
    let said = of_wat(&format!("(module {MEMORY} {ABI} {BUFFER} {seven} {section})"));
    assert_eq!(said, "guest: mgs_chunk gave 7");
}

#[test]
fn endless_loops_end_in_every_function() {
    let forever = "(loop (br 0))";
    for (name, types, result) in [
        ("_initialize", "", ""),
        ("mgs_open", "(result i32)", "i32.const 0"),
        ("mgs_args", "(param i32) (result i32)", "i32.const 4"),
        ("mgs_close", "(result i32)", "i32.const 0"),
    ] {
        let more = format!(r#"(func (export "{name}") {types} {forever} {result})"#);
        let said = sentence(&guest(KEYED, "", &more), b"");
        assert!(said.starts_with(&format!("guest: {name} used up its fuel")), "{said}");
    }
    let (chunk, section) = (chunk(""), section(KEYED));
    let abi = ABI.replace("i32.const", &format!("{forever} i32.const"));
    let said = of_wat(&format!("(module {MEMORY} {abi} {BUFFER} {chunk} {section})"));
    assert!(said.starts_with("guest: mgs_abi used up its fuel"), "{said}");
    let buffer = BUFFER.replace("i32.const", &format!("{forever} i32.const"));
    let said = of_wat(&format!("(module {MEMORY} {ABI} {buffer} {chunk} {section})"));
    assert!(said.starts_with("guest: mgs_buffer used up its fuel"), "{said}");
    let start = format!("(func $start {forever}) (start $start)");
    let said = sentence(&guest(KEYED, "", &start), b"");
    assert!(said.starts_with("guest: its start used up its fuel"), "{said}");
}

#[test]
fn what_it_does_at_its_start() {
    for (more, told) in [
        ("(func $start unreachable) (start $start)", "its start gave up"),
        (
            "(func $start (drop (memory.grow (i32.const 16)))) (start $start)",
            "it wants 1310720 bytes of memory",
        ),
        (
            "(func $start (call $emit (i32.const 0) (i32.const 0))) (start $start)",
            "it called the host while it was started",
        ),
        (
            "(func $start (call $error (i32.const 0) (i32.const 4))) (start $start)",
            "it called the host while it was started",
        ),
        (
            "(func $start (drop (call $input))) (start $start)",
            "it asked for the place of a chunk when it had none",
        ),
        (r#"(data (i32.const 262143) "ab")"#, "its start failed: out of bounds memory access"),
        ("(table 20000 funcref)", "it wants a table of 20000 elements"),
        (
            r#"(func (export "mgs_open") (result i32) (call $spans (i32.const 0) (i32.const 0)) i32.const 0)"#,
            "it handed over records outside of mgs_chunk and mgs_close",
        ),
        (
            r#"(func (export "mgs_open") (result i32) i32.const 3)"#,
            "it refuses its arguments (mgs_open gave 3)",
        ),
    ] {
        let said = sentence(&guest(KEYED, "", more), b"");
        assert!(said.starts_with(&format!("guest: {told}")), "{more}: {said}");
    }
    let memory = r#"(memory (export "memory") 17)"#;
    let (chunk, section) = (chunk(""), section(KEYED));
    let said = of_wat(&format!("(module {memory} {ABI} {BUFFER} {chunk} {section})"));
    assert_eq!(said, "guest: it wants 1114112 bytes of memory; it declares 1048576");
}

#[test]
fn arguments_that_it_can_not_take() {
    let args =
        |body: &str| format!(r#"(func (export "mgs_args") (param i32) (result i32) {body})"#);
    for (more, told) in [
        (String::new(), "it takes no arguments (it exports no mgs_args)"),
        (args("i32.const 0"), "it has no room for 3 bytes of arguments"),
        (
            args("i32.const 262142"),
            "mgs_args gave address 262142 for 3 bytes, outside of its memory",
        ),
        (
            args("i32.const -1"),
            "mgs_args gave address 4294967295 for 3 bytes, outside of its memory",
        ),
        (
            args(
                r#"(i32.store (i32.const 0) (i32.const 0x0a21_6f6e)) (call $error (i32.const 0) (i32.const 4)) i32.const 4"#,
            ),
            "no!",
        ),
    ] {
        let error = run(&guest(KEYED, "", &more), b"abc", tight(), &[]).expect_err("refused");
        let SsdletError::Args { ssdlet, detail } = error else { panic!("{error}") };
        assert_eq!((ssdlet.as_str(), detail.as_str()), ("guest", told));
    }
    // They arrive, whatever bytes they are.
    let keep = args(
        "(i32.store (i32.const 32) (i32.const 4)) (i32.store (i32.const 36) (i32.const 8)) i32.const 40",
    );
    let module = guest(KEYED, "(call $emit (i32.const 32) (i32.const 20))", &keep);
    let found = run(&module, b"\0\xff\n\"", tight(), &[b"x\n"]).expect("good");
    assert!(found.keyed.contains_key(&b"\0\xff\n\""[..]), "{found:?}");
}

#[test]
fn lies_about_places_and_sizes() {
    let pair = |at: i64, len: i64| {
        format!(
            "(i32.store (i32.const 0) (i32.const {at})) (i32.store (i32.const 4) (i32.const {len}))"
        )
    };
    for (body, told) in [
        (
            "(call $emit (i32.const -1) (i32.const 1))".to_owned(),
            "it handed over 1 bytes at address 4294967295, outside of its memory",
        ),
        (
            "(call $emit (i32.const 262144) (i32.const 1))".to_owned(),
            "it handed over 1 bytes at address 262144",
        ),
        ("(call $emit (i32.const 0) (i32.const -1))".to_owned(), "mgs_chunk used up its fuel"),
        (
            "(call $spans (i32.const 8) (i32.const 32768))".to_owned(),
            "it handed over 262144 bytes at address 8",
        ),
        (
            "(call $values (i32.const 8) (i32.const 16384))".to_owned(),
            "it handed over 262144 bytes at address 8",
        ),
        ("(call $spans (i32.const 0) (i32.const -1))".to_owned(), "mgs_chunk used up its fuel"),
        (
            pair(0, 8) + "(call $spans (i32.const 0) (i32.const 1))",
            "it handed over 8 bytes at 0 of a chunk of 7 bytes",
        ),
        (
            pair(8, 0) + "(call $spans (i32.const 0) (i32.const 1))",
            "it handed over 0 bytes at 8 of a chunk of 7 bytes",
        ),
        (
            pair(-1, -1) + "(call $values (i32.const 0) (i32.const 1))",
            "it handed over 4294967295 bytes at 4294967295 of a chunk",
        ),
        (
            pair(1, 8) + "(call $emit (i32.const 0) (i32.const 16))",
            "the record at byte 0 of 16 that it handed over is longer than these",
        ),
        (
            pair(1, 7) + "(call $emit (i32.const 0) (i32.const 16))",
            "it handed over a value of 7 bytes; its type has 8",
        ),
        (pair(-1, -1) + "(call $emit (i32.const 0) (i32.const 16))", "the record at byte 0 of 16"),
        ("(call $emit (i32.const 0) (i32.const 7))".to_owned(), "the record at byte 0 of 7"),
        (
            "(call $error (i32.const 262143) (i32.const 2))".to_owned(),
            "it gave a message outside of its memory",
        ),
        (
            "(call $error_at (i32.const 0) (i32.const -1) (i32.const 2))".to_owned(),
            "it gave a message outside of its memory",
        ),
    ] {
        let said = sentence(&guest(KEYED, &body, ""), b"");
        assert!(said.starts_with(&format!("guest: {told}")), "{body}: {said}");
    }
    let (chunk, section) = (chunk(""), section(KEYED));
    for (address, told) in [
        ("0", "it has no room for a chunk of 4096 bytes"),
        (
            "-1",
            "mgs_buffer gave address 4294967295 for 4096 bytes and 16 behind them, outside of its memory",
        ),
        ("258033", "mgs_buffer gave address 258033 for 4096 bytes"),
    ] {
        let buffer = BUFFER.replace("65536", address);
        let said = of_wat(&format!("(module {MEMORY} {ABI} {buffer} {chunk} {section})"));
        assert!(said.starts_with(&format!("guest: {told}")), "{said}");
    }
}

#[test]
fn records_in_order_have_their_rules() {
    let line = r#"(data (i32.const 0) "one\ntwo")"#;
    let found = run(
        &guest(ORDERED, "(call $emit (i32.const 0) (i32.const 4))", line),
        b"",
        tight(),
        &[b"x\n", b"y\n"],
    );
    assert_eq!(found.expect("good").ordered, b"one\none\n");
    for (body, more, told) in [
        (
            "(call $emit (i32.const 0) (i32.const 7))",
            line,
            "the 7 bytes that it handed over do not end where a record ends",
        ),
        (
            "(call $spans (i32.const 16) (i32.const 1))",
            r#"(data (i32.const 16) "\00\00\00\00\03\00\00\00")"#,
            "the 3 bytes that it handed over do not end",
        ),
        (
            "(call $values (i32.const 16) (i32.const 1))",
            "",
            "it called emit_values, but its output is records in order",
        ),
        (
            "",
            r#"(func (export "mgs_close") (result i32) (call $emit (i32.const 0) (i32.const 0)) i32.const 0)"#,
            "it handed over records in mgs_close",
        ),
        ("", r#"(func (export "mgs_close") (result i32) i32.const -1)"#, "mgs_close gave -1"),
        (
            "",
            r#"(func (export "mgs_close") (result i32) (drop (call $offset)) i32.const 0)"#,
            "it asked for the place of a chunk when it had none",
        ),
    ] {
        let said = sentence(&guest(ORDERED, body, more), b"");
        assert!(said.starts_with(&format!("guest: {told}")), "{said}");
    }
}

#[test]
fn messages_are_text_of_one_line() {
    let text = r#"(data (i32.const 0) "the \1b[31mrow\0a is\ff bad")"#;
    let said = sentence(&guest(KEYED, "(call $error (i32.const 0) (i32.const 21))", text), b"");
    assert_eq!(said, "guest: the  [31mrow  is\u{fffd} bad (bytes 0 to 7 of input 0)");
    let far = guest(
        KEYED,
        "(if (i64.eqz (call $offset)) (then) (else (call $error_at (i32.const 4) (i32.const 0) (i32.const 3))))",
        text,
    );
    let error = run(&far, b"", tight(), &[b"a line\n", b"two\nlines\n"]).expect_err("bad");
    let SsdletError::Record { offset, detail } = error else { panic!("{error}") };
    assert_eq!((offset, detail.as_str()), (7 + 4, "guest: the"));
    let long = guest(KEYED, "(call $error (i32.const 0) (i32.const 200000))", "");
    assert!(sentence(&long, b"").len() < 1200);
}

#[test]
fn what_is_declared_beyond_the_limits() {
    let module = guest(KEYED, "", "");
    let limits = WasmLimits { memory_bytes: 1 << 19, ..tight() };
    let said = run(&module, b"", limits, &[]).expect_err("too much").to_string();
    assert_eq!(said, "guest: it declares 1048576 bytes of memory for a worker; 524288 is the most");
    let limits = WasmLimits { module_bytes: module.len() - 1, ..tight() };
    let said = run(&module, b"", limits, &[]).expect_err("too long").to_string();
    assert!(said.starts_with(&format!("the module has {} bytes, and ", module.len())), "{said}");
}

#[test]
fn a_function_that_is_too_long_is_not_compiled() {
    let module = |bytes: usize| guest(KEYED, &"nop ".repeat(bytes), "");
    open(&module(130_000), b"", WasmLimits::default()).expect("just short enough");
    let told = sentence(&module(140_000), b"");
    assert!(told.starts_with("guest: it has a function of 14000"), "{told}");
    assert!(told.contains("131072 is the most"), "{told}");
}
