/* How often each word occurs, counted here, sixteen bytes at a time: the table is handed over at the end,
 * or when it is full. -DBYTES looks at one byte at a time instead. */
#include "mgs.h"

MGS_SSDLET({"abi": 1, "name": "fold", "about": "how often each word occurs, counted by the guest",
    "input": "lines", "memory": 67108864,
    "output": {"keyed": {"key": "text", "value": "i64", "combine": "sum"}}});
MGS_ABI
MGS_BUFFER

#define SLOTS (1u << 19)
#define WORDS_BYTES (24u << 20)
#define OUT_BYTES (64u << 10)

struct slot { uint32_t at, bytes, hash, count; };
static struct slot *slots;
static uint8_t *words, *out;
static uint32_t used, words_bytes, out_bytes;

static inline uint64_t load(const uint8_t *at) {
    uint64_t value;
    __builtin_memcpy(&value, at, 8);
    return value;
}

/* The last 1 to 7 bytes of a word; there are bytes behind every word that may be read. */
static inline uint64_t load_some(const uint8_t *at, uint32_t bytes) {
    return load(at) & ((1ull << (8 * bytes)) - 1);
}

static inline uint32_t hash_of(const uint8_t *word, uint32_t bytes) {
    uint64_t hash = bytes;
    for (; bytes >= 8; word += 8, bytes -= 8) hash = (hash ^ load(word)) * 0x9E3779B97F4A7C15ull, hash ^= hash >> 29;
    if (bytes) hash = (hash ^ load_some(word, bytes)) * 0x9E3779B97F4A7C15ull;
    return (uint32_t)(hash >> 32);
}

static inline int same(const uint8_t *a, const uint8_t *b, uint32_t bytes) {
    for (; bytes >= 8; a += 8, b += 8, bytes -= 8)
        if (load(a) != load(b)) return 0;
    return !bytes || load_some(a, bytes) == load_some(b, bytes);
}

static void out_end(void) {
    if (out_bytes) mgs_emit(out, out_bytes);
    out_bytes = 0;
}

static void put(const uint8_t *key, uint32_t bytes, int64_t count) {
    uint32_t eight = 8;
    if (out_bytes + 16 + bytes > OUT_BYTES) out_end();
    if (16 + bytes > OUT_BYTES) MGS_FAIL("a word is longer than 65520 bytes");
    __builtin_memcpy(out + out_bytes, &bytes, 4);
    __builtin_memcpy(out + out_bytes + 4, &eight, 4);
    __builtin_memcpy(out + out_bytes + 8, key, bytes);
    __builtin_memcpy(out + out_bytes + 8 + bytes, &count, 8);
    out_bytes += 16 + bytes;
}

static void empty(void) {
    for (uint32_t i = 0; i < SLOTS; i++) {
        if (!slots[i].count) continue;
        put(words + slots[i].at, slots[i].bytes, slots[i].count);
        slots[i].count = 0;
    }
    out_end();
    used = words_bytes = 0;
}

static inline void count(const uint8_t *word, uint32_t bytes) {
    uint32_t hash = hash_of(word, bytes);
    for (uint32_t i = hash;; i++) {
        struct slot *slot = &slots[i & (SLOTS - 1)];
        if (slot->count) {
            if (slot->hash != hash || slot->bytes != bytes || !same(words + slot->at, word, bytes)) continue;
            if (++slot->count == 0xFFFFFFFF) empty();
            return;
        }
        if (used == SLOTS / 4 * 3 || bytes > WORDS_BYTES - words_bytes) {
            if (bytes > WORDS_BYTES) MGS_FAIL("a word is longer than 24 MiB");
            empty();
            i = hash - 1;
            continue;
        }
        slot->at = words_bytes, slot->bytes = bytes, slot->hash = hash, slot->count = 1;
        __builtin_memcpy(words + words_bytes, word, bytes);
        words_bytes += bytes;
        used++;
        return;
    }
}

MGS_EXPORT(mgs_open) int32_t mgs_open(void) {
    slots = mgs_grab(SLOTS * sizeof(struct slot));
    words = mgs_grab(WORDS_BYTES + 16);
    out = mgs_grab(OUT_BYTES);
    return slots && words && out ? 0 : 1;
}

static inline int is_space(uint8_t c) { return c == ' ' || (uint8_t)(c - '\t') < 5; }

#ifndef BYTES
typedef uint8_t sixteen __attribute__((vector_size(16)));

/* A bit for each of 16 bytes that is a space. */
static inline uint32_t spaces(const uint8_t *at) {
    sixteen bytes;
    __builtin_memcpy(&bytes, at, 16);
    typedef char mask __attribute__((vector_size(16)));
    mask found = (mask)((bytes == ' ') | ((bytes - '\t') < 5));
#ifdef __wasm__
    return (uint32_t)__builtin_wasm_bitmask_i8x16((__typeof__(__builtin_wasm_abs_i8x16((mask){0})))found);
#else
    return (uint32_t)__builtin_ia32_pmovmskb128(found);
#endif
}
#endif

MGS_EXPORT(mgs_chunk) int32_t mgs_chunk(const uint8_t *chunk, uint32_t bytes) {
#ifdef BYTES
    const uint8_t *at = chunk, *end = chunk + bytes;
    for (;;) {
        while (at < end && is_space(*at)) at++;
        const uint8_t *from = at;
        while (at < end && !is_space(*at)) at++;
        if (at == from) return 0;
        count(from, (uint32_t)(at - from));
    }
#else
    /* A bit of `edges` is set where a word begins or ends. */
    uint32_t from = 0, is_in = 0, before = 1, at = 0;
    for (; bytes - at >= 16; at += 16) {
        uint32_t found = spaces(chunk + at), edges = (found ^ (found << 1 | before)) & 0xFFFF;
        before = found >> 15 & 1;
        for (; edges; edges &= edges - 1) {
            uint32_t edge = at + (uint32_t)__builtin_ctz(edges);
            if (is_in) count(chunk + from, edge - from);
            else from = edge;
            is_in ^= 1;
        }
    }
    for (; at < bytes; at++) {
        if ((uint32_t)is_space(chunk[at]) != is_in) continue;
        if (is_in) count(chunk + from, at - from);
        else from = at;
        is_in ^= 1;
    }
    if (is_in) count(chunk + from, bytes - from);
    return 0;
#endif
}

MGS_EXPORT(mgs_close) int32_t mgs_close(void) {
    empty();
    return 0;
}
