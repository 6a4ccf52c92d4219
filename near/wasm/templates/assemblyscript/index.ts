// @NAME@: how often each word occurs.

// The functions of the host.
@external("mgs", "emit_spans")
declare function emit_spans(spans: usize, count: u32): void;

// Spans are handed over in batches: the place and the length of a word in the chunk, 4 bytes each.
const BATCH: u32 = 4096;
const spans: usize = heap.alloc(BATCH * 8);
let count: u32 = 0;
let buffer: usize = 0;

function flush(): void {
  emit_spans(spans, count);
  count = 0;
}

function push(offset: u32, bytes: u32): void {
  store<u32>(spans + count * 8, offset);
  store<u32>(spans + count * 8, bytes, 4);
  if (++count == BATCH) flush();
}

function is_space(c: u8): bool {
  return c == 32 || (c >= 9 && c <= 13);
}

// The version of the interface.
export function mgs_abi(): i32 {
  return 1;
}

// Where the host writes chunks: `bytes` bytes, and 16 zeros behind them.
export function mgs_buffer(bytes: u32): usize {
  buffer = buffer ? heap.realloc(buffer, bytes + 16) : heap.alloc(bytes + 16);
  return buffer;
}

// Called for each chunk, which holds whole lines. Another result than 0 ends the run.
export function mgs_chunk(chunk: usize, bytes: u32): i32 {
  let at: u32 = 0;
  while (true) {
    while (at < bytes && is_space(load<u8>(chunk + at))) at++;
    const from = at;
    while (at < bytes && !is_space(load<u8>(chunk + at))) at++;
    if (at == from) break;
    push(from, at - from);
  }
  flush();
  return 0;
}
