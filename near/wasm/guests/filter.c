/* The fixed records whose number is in a range. Arguments: "OFFSET LEAST MOST", the place in the record of
 * a 32-bit number, little-endian, and the range. A record has 16 bytes. */
#include "mgs.h"

MGS_SSDLET({"abi": 1, "name": "filter", "about": "the 16-byte records whose number is in a range",
    "arguments": "OFFSET LEAST MOST: the place of a u32, and the range of its values",
    "input": "fixed:16", "memory": 8388608, "output": {"ordered": {"format": "fixed:16"}}});
MGS_ABI
MGS_BUFFER

#define RECORD 16u
static uint8_t typed[64];
static uint32_t typed_bytes, offset, least, most;

MGS_EXPORT(mgs_args) uint8_t *mgs_args(uint32_t bytes) {
    if (bytes > sizeof typed) MGS_FAIL("give OFFSET LEAST MOST and no more");
    typed_bytes = bytes;
    return typed;
}

/* The next number of the arguments. */
static uint32_t number(uint32_t *at) {
    while (*at < typed_bytes && typed[*at] == ' ') ++*at;
    uint64_t value = 0;
    uint32_t from = *at;
    for (; *at < typed_bytes && typed[*at] >= '0' && typed[*at] <= '9'; ++*at) {
        value = value * 10 + (typed[*at] - '0');
        if (value > 0xFFFFFFFF) MGS_FAIL("a number is larger than 4294967295");
    }
    if (*at == from) MGS_FAIL("give three numbers: OFFSET LEAST MOST");
    return (uint32_t)value;
}

MGS_EXPORT(mgs_open) int32_t mgs_open(void) {
    uint32_t at = 0;
    offset = number(&at), least = number(&at), most = number(&at);
    if (at != typed_bytes) MGS_FAIL("give OFFSET LEAST MOST and no more");
    if (offset > RECORD - 4) MGS_FAIL("OFFSET is 12 at most: a record has 16 bytes");
    return 0;
}

MGS_EXPORT(mgs_chunk) int32_t mgs_chunk(const uint8_t *chunk, uint32_t bytes) {
    for (uint32_t at = 0; at < bytes; at += RECORD) {
        uint32_t value;
        __builtin_memcpy(&value, chunk + at + offset, 4);
        if (value >= least && value <= most) mgs_span(at, RECORD);
    }
    mgs_spans_end();
    return 0;
}
