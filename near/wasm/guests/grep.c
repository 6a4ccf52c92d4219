/* The lines that contain a text: the arguments. The lines come in the order of the input. -DBYTES looks at
 * one byte at a time. */
#include "mgs.h"

MGS_SSDLET({"abi": 1, "name": "grep", "about": "the lines that contain a text",
    "arguments": "the text, 1 to 4096 bytes without a line end",
    "input": "lines", "memory": 8388608, "output": {"ordered": {"format": "lines"}}});
MGS_ABI
MGS_BUFFER

#define TEXT_BYTES 4096
static uint8_t text[TEXT_BYTES];
static uint32_t text_bytes;

MGS_EXPORT(mgs_args) uint8_t *mgs_args(uint32_t bytes) {
    if (bytes > TEXT_BYTES) MGS_FAIL("the text is longer than 4096 bytes");
    text_bytes = bytes;
    return text;
}

MGS_EXPORT(mgs_open) int32_t mgs_open(void) {
    if (!text_bytes) MGS_FAIL("give the text to look for");
    for (uint32_t i = 0; i < text_bytes; i++)
        if (text[i] == '\n') MGS_FAIL("a line end is never inside of a line");
    return 0;
}

#ifndef BYTES
typedef uint8_t sixteen __attribute__((vector_size(16)));
typedef char mask __attribute__((vector_size(16)));

/* Which of sixteen places have the first and the last byte of the text. */
static inline mask both_fit(const uint8_t *at, uint8_t first, uint8_t last) {
    sixteen a, b;
    __builtin_memcpy(&a, at, 16);
    __builtin_memcpy(&b, at + text_bytes - 1, 16);
    return (mask)((a == first) & (b == last));
}

/* A bit for each place. */
static inline uint32_t bits(mask places) {
#ifdef __wasm__
    return (uint32_t)__builtin_wasm_bitmask_i8x16((__typeof__(__builtin_wasm_abs_i8x16((mask){0})))places);
#else
    return (uint32_t)__builtin_ia32_pmovmskb128(places);
#endif
}
#endif

/* Where the text occurs for the first time, or `end`. */
static inline const uint8_t *find(const uint8_t *at, const uint8_t *end) {
    uint8_t first = text[0], last = text[text_bytes - 1];
    if ((uint32_t)(end - at) < text_bytes) return end;
    const uint8_t *stop = end - text_bytes + 1;
    while (at < stop) {
#ifndef BYTES
        /* Most places fit nowhere: 64 of them for each turn of the loop, which costs fuel. */
        while ((uint32_t)(stop - at) >= 64) {
            mask any = both_fit(at, first, last) | both_fit(at + 16, first, last) |
                       both_fit(at + 32, first, last) | both_fit(at + 48, first, last);
            if (bits(any)) break;
            at += 64;
        }
        if ((uint32_t)(stop - at) >= 16) {
            uint32_t found = bits(both_fit(at, first, last));
            if (!found) {
                at += 16;
                continue;
            }
            at += __builtin_ctz(found);
        }
#endif
        if (at[0] == first && at[text_bytes - 1] == last) {
            uint32_t i = 1;
            while (i < text_bytes && at[i] == text[i]) i++;
            if (i >= text_bytes) return at;
        }
        at++;
    }
    return end;
}

MGS_EXPORT(mgs_chunk) int32_t mgs_chunk(const uint8_t *chunk, uint32_t bytes) {
    const uint8_t *at = chunk, *end = chunk + bytes;
    while ((at = find(at, end)) < end) {
        const uint8_t *from = at;
        while (from > chunk && from[-1] != '\n') from--;
        while (at < end && *at++ != '\n') {}
        mgs_span((uint32_t)(from - chunk), (uint32_t)(at - from));
    }
    mgs_spans_end();
    return 0;
}
