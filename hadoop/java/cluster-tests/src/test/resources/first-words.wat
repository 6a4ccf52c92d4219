;; first-words: for each line, its bytes before the first space, and how many bytes the line has.
;; first-words.wasm is this file in binary: near/wasm/tests/guests/maps.rs compares them, and writes it anew with
;; MERGANSER_BLESS=1.
(module
  (import "mgs" "emit_values" (func $emit (param i32 i32)))
  ;; Entries of offset, length and number are collected from byte 1024 on; the chunk is at 65536.
  (memory (export "memory") 2)
  (func (export "mgs_abi") (result i32) i32.const 1)
  (func (export "mgs_buffer") (param $bytes i32) (result i32)
    (local $pages i32)
    (local.set $pages
      (i32.sub
        (i32.shr_u (i32.add (local.get $bytes) (i32.const 131087)) (i32.const 16))
        (memory.size)))
    (if (i32.gt_s (local.get $pages) (i32.const 0))
      (then (if (i32.eq (memory.grow (local.get $pages)) (i32.const -1)) (then (return (i32.const 0))))))
    i32.const 65536)
  (func (export "mgs_chunk") (param $chunk i32) (param $bytes i32) (result i32)
    (local $at i32) (local $line i32) (local $word i32) (local $entry i32) (local $byte i32)
    (local.set $entry (i32.const 1024))
    (local.set $word (i32.const -1))
    (loop $next
      (if (i32.lt_u (local.get $at) (local.get $bytes))
        (then
          (local.set $byte (i32.load8_u (i32.add (local.get $chunk) (local.get $at))))
          (if (i32.and
                (i32.eq (local.get $word) (i32.const -1))
                (i32.or (i32.eq (local.get $byte) (i32.const 32)) (i32.eq (local.get $byte) (i32.const 10))))
            (then (local.set $word (i32.sub (local.get $at) (local.get $line)))))
          (if (i32.eq (local.get $byte) (i32.const 10))
            (then
              (i32.store (local.get $entry) (local.get $line))
              (i32.store offset=4 (local.get $entry) (local.get $word))
              (i64.store offset=8 (local.get $entry)
                (i64.extend_i32_u (i32.sub (local.get $at) (local.get $line))))
              (local.set $entry (i32.add (local.get $entry) (i32.const 16)))
              (local.set $line (i32.add (local.get $at) (i32.const 1)))
              (local.set $word (i32.const -1))
              (if (i32.eq (local.get $entry) (i32.const 33792))
                (then
                  (call $emit (i32.const 1024) (i32.const 2048))
                  (local.set $entry (i32.const 1024))))))
          (local.set $at (i32.add (local.get $at) (i32.const 1)))
          (br $next))))
    (call $emit (i32.const 1024)
      (i32.shr_u (i32.sub (local.get $entry) (i32.const 1024)) (i32.const 4)))
    i32.const 0)
  (@custom "merganser.ssdlet" "{\"abi\": 1, \"name\": \"first-words\", \"about\": \"bytes of lines by their first word\", \"input\": \"lines\", \"memory\": 2097152, \"output\": {\"keyed\": {\"key\": \"text\", \"value\": \"i64\", \"combine\": \"sum\"}}}"))
