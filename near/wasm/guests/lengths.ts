// How many lines have each length. The key is the length in digits.

@external("mgs", "emit")
declare function emit(records: usize, bytes: u32): void;

let buffer: usize = 0;
// A record: 4 + 4 bytes of lengths, up to 10 digits, 8 bytes of value.
const record: usize = heap.alloc(32);

export function mgs_abi(): i32 {
  return 1;
}

export function mgs_buffer(bytes: u32): usize {
  buffer = buffer ? heap.realloc(buffer, bytes + 16) : heap.alloc(bytes + 16);
  return buffer;
}

export function mgs_chunk(chunk: usize, bytes: u32): i32 {
  let length: u32 = 0;
  for (let at: u32 = 0; at < bytes; at++) {
    if (load<u8>(chunk + at) != 10) {
      length++;
      continue;
    }
    hand_over(length);
    length = 0;
  }
  return 0;
}

function hand_over(length: u32): void {
  let digits: u32 = 1;
  for (let rest = length / 10; rest > 0; rest /= 10) digits++;
  store<u32>(record, digits);
  store<u32>(record, 8, 4);
  let rest = length;
  for (let i = digits; i > 0; i--) {
    store<u8>(record + 7 + i, <u8>(48 + (rest % 10)));
    rest /= 10;
  }
  store<i64>(record + 8 + digits, 1);
  emit(record, 16 + digits);
}
