/* @NAME@: how often each word occurs. */
#include "mgs.h"

MGS_SSDLET({"abi": 1, "name": "@NAME@", "about": "how often each word occurs",
    "input": "lines", "memory": 8388608,
    "output": {"keyed": {"key": "text", "value": "i64", "combine": "sum"}}});
MGS_ABI
MGS_BUFFER

static int is_space(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* `chunk` holds whole lines. A word is handed over as a span: its place and its length. */
MGS_EXPORT(mgs_chunk) int32_t mgs_chunk(const uint8_t *chunk, uint32_t bytes) {
    uint32_t at = 0;
    for (;;) {
        while (at < bytes && is_space(chunk[at])) at++;
        uint32_t from = at;
        while (at < bytes && !is_space(chunk[at])) at++;
        if (at == from) break;
        mgs_span(from, at - from);
    }
    mgs_spans_end();
    return 0;
}
