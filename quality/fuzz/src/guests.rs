//! Random guests: modules with bytes changed, sections of any text, and answers of any bytes.
//! Each ends with a result or with one sentence, and an answer is handed on only from inside its chunk.

use std::sync::LazyLock;

use arbitrary::Arbitrary;
use merganser_map::ssdlet::{
    Chunk, CollectedOutput, Combine, Emitter, Ssdlet, SsdletError, SsdletOutput, Type,
};
use merganser_sort::record::Format;
use merganser_wasm::answers::AnswerForm;
use merganser_wasm::{Declared, WasmLimits, open};

#[derive(Debug, Arbitrary)]
enum GuestsCase<'a> {
    /// The good module with these bytes changed.
    Module { changes: Vec<(u16, u8)>, keep: Option<u16>, args: &'a [u8], input: &'a [u8] },
    /// A section of this text.
    Section(&'a [u8]),
    /// What a guest hands over.
    Answer { call: u8, output: u8, given: &'a [u8], chunk: &'a [u8] },
}

/// A guest that hands over a frame, a span and a value for each chunk, and takes arguments.
static GOOD: LazyLock<Vec<u8>> = LazyLock::new(|| {
    wat::parse_str(
        r#"(module
        (import "mgs" "emit" (func $emit (param i32 i32)))
        (import "mgs" "emit_spans" (func $spans (param i32 i32)))
        (import "mgs" "emit_values" (func $values (param i32 i32)))
        (import "mgs" "offset" (func $offset (result i64)))
        (memory (export "memory") 2)
        (data (i32.const 0) "\01\00\00\00\08\00\00\00k\02\00\00\00\00\00\00\00")
        (func (export "mgs_abi") (result i32) i32.const 1)
        (func (export "mgs_args") (param i32) (result i32) i32.const 512)
        (func (export "mgs_open") (result i32) i32.const 0)
        (func (export "mgs_buffer") (param i32) (result i32) i32.const 1024)
        (func (export "mgs_chunk") (param i32 i32) (result i32)
            (i32.store (i32.const 36) (local.get 1))
            (i64.store (i32.const 40) (call $offset))
            (call $emit (i32.const 0) (i32.const 17))
            (call $spans (i32.const 32) (i32.const 1))
            (call $values (i32.const 32) (i32.const 1))
            i32.const 0)
        (func (export "mgs_close") (result i32) i32.const 0)
        (@custom "merganser.ssdlet" "{\"abi\":1,\"name\":\"x\",\"input\":\"lines\",\"memory\":262144,\"output\":{\"keyed\":{\"key\":\"text\",\"value\":\"i64\",\"combine\":\"sum\"}}}"))"#,
    )
    .expect("good")
});

fn is_sentence<T>(ended: Result<T, SsdletError>) {
    if let Err(error) = ended {
        let told = error.to_string();
        assert!(!told.is_empty() && !told.contains('\n') && told.len() < 4096, "{told}");
    }
}

fn run_guest(module: &[u8], args: &[u8], input: &[u8]) -> Result<CollectedOutput, SsdletError> {
    let limits = WasmLimits { fuel_per_byte: 1, ..WasmLimits::default() };
    let ssdlet = open(module, args, limits)?;
    let (mut worker, mut found) = (ssdlet.worker()?, CollectedOutput::default());
    for offset in [0, 7] {
        let chunk = Chunk { input: 1, offset, bytes: input };
        worker.chunk(chunk, &mut Emitter::collecting(&mut found))?;
    }
    worker.close(&mut Emitter::collecting(&mut found))?;
    Ok(found)
}

fn output_of(number: u8) -> SsdletOutput {
    let types = [Type::Text, Type::Bytes, Type::I64, Type::F64];
    let combines = [Combine::Min, Combine::Count, Combine::First, Combine::None];
    let formats = [
        Format::Lines { delimiter: b'\n' },
        Format::csv_rows(b',', false),
        Format::Fixed { bytes: 3 },
        Format::Keyed,
    ];
    let pick = usize::from(number >> 1 & 3);
    match number & 1 {
        0 => SsdletOutput::Ordered { format: formats[pick] },
        _ => SsdletOutput::Keyed {
            key: types[pick],
            value: types[usize::from(number >> 3 & 3)],
            combine: combines[usize::from(number >> 5 & 3)],
        },
    }
}

/// Tries one input.
pub(crate) fn run(bytes: &[u8]) {
    let Some(case) = crate::value_of::<GuestsCase<'_>>(bytes) else { return };
    match case {
    GuestsCase::Module { changes, keep, args, input } => {
        let mut module = GOOD.clone();
        for (at, byte) in changes {
            let at = usize::from(at) % module.len();
            module[at] = byte;
        }
        if let Some(keep) = keep {
            module.truncate(usize::from(keep));
        }
        is_sentence(run_guest(&module, args, input));
    }
    GuestsCase::Section(text) => {
        let text = &text[..text.len().min(8000)];
        let name = b"merganser.ssdlet";
        let len = 1 + name.len() + text.len();
        let mut module = b"\0asm\x01\0\0\0\0".to_vec();
        module.extend([len as u8 & 0x7f | 0x80, (len >> 7) as u8, name.len() as u8]);
        module.extend([name, text].concat());
        is_sentence(Declared::of_module(&module));
        is_sentence(Declared::of_module(text));
    }
    GuestsCase::Answer { call, output, given, chunk } => {
        let mut found = CollectedOutput::default();
        let answers = AnswerForm::of_output(&output_of(output));
        let out = &mut Emitter::collecting(&mut found);
        let taken = match call % 3 {
            0 => answers.records(given, out),
            1 => answers.spans(given, chunk, out),
            _ => answers.values(given, chunk, out),
        };
        if call % 3 == 0 && taken.is_ok() {
            let keyed: usize = found
                .keyed
                .iter()
                .map(|(key, values)| {
                    values.iter().map(|value| 8 + key.len() + value.len()).sum::<usize>()
                })
                .sum();
            assert_eq!(keyed + found.ordered.len(), given.len(), "all of it, and nothing else");
        } else if call % 3 != 0 {
            let inside = |key: &&Vec<u8>| {
                key.is_empty() || chunk.windows(key.len()).any(|at| at == &key[..])
            };
            assert!(found.keyed.keys().all(|key| inside(&key)));
        }
    }
    }
}
