//! Another engine: a small host over wasmi. It trusts its guests; what it is for is a second opinion.

use merganser_map::ssdlet::CollectedOutput;
use wasmi::{Caller, Engine, Linker, Memory, Module, Store};

/// What the guest hands over, and the current chunk.
#[derive(Default)]
struct State {
    memory: Option<Memory>,
    chunk: Vec<u8>,
    place: (u32, u64),
    is_ordered: bool,
    found: CollectedOutput,
}

fn word(bytes: &[u8]) -> usize {
    u32::from_le_bytes(bytes.try_into().expect("4 bytes")) as usize
}

fn given(caller: &Caller<'_, State>, at: u32, bytes: u32) -> Vec<u8> {
    let memory = caller.data().memory.expect("known");
    memory.data(caller)[at as usize..][..bytes as usize].to_vec()
}

/// A guest's own end.
fn said(text: &[u8]) -> Result<(), wasmi::Error> {
    Err(wasmi::Error::new(String::from_utf8_lossy(text)))
}

fn add(found: &mut CollectedOutput, key: &[u8], value: &[u8]) {
    found.keyed.entry(key.to_vec()).or_default().push(value.to_vec());
}

fn linker(engine: &Engine) -> Linker<State> {
    let mut linker = Linker::new(engine);
    let emit = |mut caller: Caller<'_, State>, at: u32, bytes: u32| {
        let given = given(&caller, at, bytes);
        let state = caller.data_mut();
        if state.is_ordered {
            return state.found.ordered.extend(given);
        }
        let mut rest = &given[..];
        while !rest.is_empty() {
            let (key, value) = (word(&rest[..4]), word(&rest[4..8]));
            add(&mut state.found, &rest[8..8 + key], &rest[8 + key..8 + key + value]);
            rest = &rest[8 + key + value..];
        }
    };
    let spans = |mut caller: Caller<'_, State>, at: u32, count: u32| {
        let given = given(&caller, at, count * 8);
        let state = caller.data_mut();
        for pair in given.chunks(8) {
            let key = &state.chunk[word(&pair[..4])..][..word(&pair[4..])];
            if state.is_ordered {
                state.found.ordered.extend(key);
            } else {
                add(&mut state.found, key, &1i64.to_le_bytes());
            }
        }
    };
    let values = |mut caller: Caller<'_, State>, at: u32, count: u32| {
        let given = given(&caller, at, count * 16);
        let state = caller.data_mut();
        for entry in given.chunks(16) {
            let key = &state.chunk[word(&entry[..4])..][..word(&entry[4..8])];
            add(&mut state.found, key, &entry[8..]);
        }
    };
    linker.func_wrap("mgs", "emit", emit).expect("new");
    linker.func_wrap("mgs", "emit_spans", spans).expect("new");
    linker.func_wrap("mgs", "emit_values", values).expect("new");
    linker
        .func_wrap("mgs", "error", |caller: Caller<'_, State>, at: u32, bytes: u32| {
            said(&given(&caller, at, bytes))
        })
        .expect("new");
    linker
        .func_wrap("mgs", "error_at", |caller: Caller<'_, State>, _: u32, at: u32, bytes: u32| {
            said(&given(&caller, at, bytes))
        })
        .expect("new");
    linker
        .func_wrap("mgs", "input", |caller: Caller<'_, State>| caller.data().place.0)
        .expect("new");
    linker
        .func_wrap("mgs", "offset", |caller: Caller<'_, State>| caller.data().place.1)
        .expect("new");
    linker
}

/// What a module hands over for these chunks of input 0.
pub(crate) fn interpreted(
    module: &[u8],
    args: &[u8],
    chunks: &[&[u8]],
    is_ordered: bool,
) -> CollectedOutput {
    let engine = Engine::default();
    let module = Module::new(&engine, module).expect("a module");
    let mut store = Store::new(&engine, State { is_ordered, ..State::default() });
    let instance = linker(&engine).instantiate_and_start(&mut store, &module).expect("started");
    let memory = instance.get_memory(&store, "memory").expect("exported");
    store.data_mut().memory = Some(memory);
    let end = |store: &mut Store<State>, name: &str| {
        if let Ok(function) = instance.get_typed_func::<(), i32>(&*store, name) {
            assert_eq!(function.call(store, ()).expect(name), 0, "{name}");
        }
    };
    if let Ok(take) = instance.get_typed_func::<u32, u32>(&store, "mgs_args") {
        let at = take.call(&mut store, args.len() as u32).expect("args");
        memory.write(&mut store, at as usize, args).expect("room");
    }
    end(&mut store, "mgs_open");
    let buffer = instance.get_typed_func::<u32, u32>(&store, "mgs_buffer").expect("exported");
    let chunk = instance.get_typed_func::<(u32, u32), i32>(&store, "mgs_chunk").expect("exported");
    let mut offset = 0;
    for bytes in chunks {
        // Another policy than that of the real host: a buffer for each chunk, of its exact length.
        let at = buffer.call(&mut store, bytes.len() as u32).expect("a buffer");
        memory.write(&mut store, at as usize, &[bytes, &[0; 16][..]].concat()).expect("room");
        store.data_mut().chunk = bytes.to_vec();
        store.data_mut().place = (0, offset);
        assert_eq!(chunk.call(&mut store, (at, bytes.len() as u32)).expect("it runs"), 0);
        offset += bytes.len() as u64;
    }
    end(&mut store, "mgs_close");
    std::mem::take(&mut store.data_mut().found)
}
