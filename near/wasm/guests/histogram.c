/* How many numbers are in each bin. A line is a whole number; the argument is the width of a bin. The key is
 * the least number of the bin, as 8 bytes. */
#include "mgs.h"

MGS_SSDLET({"abi": 1, "name": "histogram", "about": "how many numbers are in each bin",
    "arguments": "the width of a bin, 1 to 1000000000",
    "input": "lines", "memory": 8388608,
    "output": {"keyed": {"key": "i64", "value": "i64", "combine": "sum"}}});
MGS_ABI
MGS_BUFFER

#define BATCH 512
struct row { uint32_t key_bytes, value_bytes; int64_t key, value; };
static struct row rows[BATCH];
static uint32_t rows_count;
static uint8_t typed[16];
static uint32_t typed_bytes;
static int64_t width;

MGS_EXPORT(mgs_args) uint8_t *mgs_args(uint32_t bytes) {
    if (bytes > 10) MGS_FAIL("the width of a bin is 1000000000 at most");
    typed_bytes = bytes;
    return typed;
}

MGS_EXPORT(mgs_open) int32_t mgs_open(void) {
    for (uint32_t i = 0; i < typed_bytes; i++) {
        if (typed[i] < '0' || typed[i] > '9') MGS_FAIL("the width of a bin is a whole number");
        width = width * 10 + (typed[i] - '0');
    }
    if (width < 1 || width > 1000000000) MGS_FAIL("give the width of a bin, 1 to 1000000000");
    return 0;
}

static void rows_end(void) {
    if (rows_count) mgs_emit(rows, rows_count * sizeof(struct row));
    rows_count = 0;
}

MGS_EXPORT(mgs_chunk) int32_t mgs_chunk(const uint8_t *chunk, uint32_t bytes) {
    for (uint32_t at = 0; at < bytes; at++) {
        uint32_t line = at;
        int is_negative = chunk[at] == '-';
        int64_t value = 0;
        at += (uint32_t)is_negative;
        uint32_t digits = at;
        for (; chunk[at] != '\n'; at++) {
            if (chunk[at] < '0' || chunk[at] > '9') MGS_FAIL_AT(line, "the line is no whole number");
            if (at - digits == 18) MGS_FAIL_AT(line, "the number has more than 18 digits");
            value = value * 10 + (chunk[at] - '0');
        }
        if (at == digits) MGS_FAIL_AT(line, "the line is no whole number");
        /* Bins go down to minus infinity, so -1 / 10 is in the bin of -10. */
        int64_t bin = is_negative ? -((value + width - 1) / width) : value / width;
        rows[rows_count++] = (struct row){8, 8, bin * width, 1};
        if (rows_count == BATCH) rows_end();
    }
    rows_end();
    return 0;
}
