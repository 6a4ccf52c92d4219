/* mgs.h: SSDlets in C, for merganser. Interface version 1; docs/formats.md has every byte of it.
 *
 *   clang --target=wasm32-unknown-unknown -nostdlib -O3 -msimd128 -mbulk-memory \
 *         -Wl,--no-entry -Wl,--strip-all guest.c -o guest.wasm
 *
 * There is no C library: only what this header and the compiler's own builtins give. A guest
 *   - says what it is, once, with MGS_SSDLET({...}), the JSON of the section merganser.ssdlet;
 *   - defines mgs_abi (MGS_ABI does it), mgs_buffer (MGS_BUFFER does it) and mgs_chunk;
 *   - may define mgs_args, mgs_open and mgs_close.
 */
#ifndef MGS_H
#define MGS_H

#include <stddef.h>
#include <stdint.h>

#define MGS_EXPORT(name) __attribute__((export_name(#name)))
#define MGS_IMPORT(name) __attribute__((import_module("mgs"), import_name(#name)))

/* A key or a record in the current chunk. */
struct mgs_span { uint32_t offset, bytes; };
/* A key in the current chunk, with a number. */
struct mgs_value { uint32_t offset, bytes; int64_t value; };

#ifdef __wasm__
/* Keyed output: {u32 key bytes, u32 value bytes, key, value}, again and again, little-endian. Output in
 * order: whole records. */
MGS_IMPORT(emit) void mgs_emit(const void *records, uint32_t bytes);
/* Keyed output: each span is a key with the number 1. Output in order: each span is whole records. */
MGS_IMPORT(emit_spans) void mgs_emit_spans(const struct mgs_span *spans, uint32_t count);
/* Keyed output: each span is a key with its number. */
MGS_IMPORT(emit_values) void mgs_emit_values(const struct mgs_value *values, uint32_t count);
/* Ends the SSDlet with a message; in mgs_args and mgs_open, it is about the arguments. */
MGS_IMPORT(error) __attribute__((noreturn)) void mgs_error(const char *text, uint32_t bytes);
/* The same, with the place in the current chunk of the record that is at fault. */
MGS_IMPORT(error_at) __attribute__((noreturn))
void mgs_error_at(uint32_t place, const char *text, uint32_t bytes);
/* The number of the current chunk's input, and its place there. */
MGS_IMPORT(input) uint32_t mgs_input(void);
MGS_IMPORT(offset) uint64_t mgs_offset(void);
#else
/* Outside of WebAssembly, whoever includes this gives the functions: a test, or a benchmark. */
void mgs_emit(const void *records, uint32_t bytes);
void mgs_emit_spans(const struct mgs_span *spans, uint32_t count);
void mgs_emit_values(const struct mgs_value *values, uint32_t count);
void mgs_error(const char *text, uint32_t bytes);
void mgs_error_at(uint32_t place, const char *text, uint32_t bytes);
uint32_t mgs_input(void);
uint64_t mgs_offset(void);
#endif

/* MGS_FAIL("text"): the message is a string literal. */
#define MGS_FAIL(text) mgs_error(text, sizeof(text) - 1)
#define MGS_FAIL_AT(place, text) mgs_error_at(place, text, sizeof(text) - 1)

/* What the SSDlet takes and gives: MGS_SSDLET({"abi": 1, "name": "...", "input": "lines", ...}) */
#ifdef __wasm__
#define MGS_TEXT_(...) #__VA_ARGS__
#define MGS_QUOTED_(text) MGS_TEXT_(text)
#define MGS_SSDLET(...) \
    __asm__(".section .custom_section.merganser.ssdlet,\"\",@\n" \
            ".ascii " MGS_QUOTED_(MGS_TEXT_(__VA_ARGS__)) "\n")
#else
#define MGS_SSDLET(...) struct mgs_ssdlet_is_declared
#endif

#define MGS_ABI \
    MGS_EXPORT(mgs_abi) int32_t mgs_abi(void) { return 1; }

/* Memory behind the program's own data; it is never given back. */
#ifdef __wasm__
extern uint8_t __heap_base;
static inline void *mgs_grab(uint32_t bytes) {
    static uintptr_t top;
    if (!top) top = ((uintptr_t)&__heap_base + 63) & ~(uintptr_t)63;
    uintptr_t at = top, end = at + ((bytes + 63) & ~63u);
    uintptr_t have = (uintptr_t)__builtin_wasm_memory_size(0) << 16;
    if (end > have && __builtin_wasm_memory_grow(0, (end - have + 65535) >> 16) == (size_t)-1) return 0;
    top = end;
    return (void *)at;
}
#else
#include <stdlib.h>
static inline void *mgs_grab(uint32_t bytes) { return calloc(1, bytes); }
#endif

/* The buffer for chunks: as long as the longest chunk so far, and 16 bytes that may be read behind it. */
#define MGS_BUFFER \
    MGS_EXPORT(mgs_buffer) uint8_t *mgs_buffer(uint32_t bytes) { return mgs_grab(bytes + 16); }

/* Spans are handed over in batches: mgs_span, and mgs_spans_end at the end of mgs_chunk. */
#define MGS_SPANS 4096
static struct mgs_span mgs_spans_[MGS_SPANS];
static uint32_t mgs_spans_count_;
static inline void mgs_spans_end(void) {
    if (mgs_spans_count_) mgs_emit_spans(mgs_spans_, mgs_spans_count_);
    mgs_spans_count_ = 0;
}
static inline void mgs_span(uint32_t offset, uint32_t bytes) {
    mgs_spans_[mgs_spans_count_].offset = offset;
    mgs_spans_[mgs_spans_count_].bytes = bytes;
    if (++mgs_spans_count_ == MGS_SPANS) mgs_spans_end();
}

#endif
