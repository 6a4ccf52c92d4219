/* A guest as a program of this machine, for comparison: -DGUEST='"fold.c"'. Calls mgs_chunk on pieces of
 * about a MiB that end where lines end, and prints the processor seconds of each round, and what the guest
 * handed over in the last one.
 *
 *   native FILE ROUNDS [ARGUMENTS]
 */
#include GUEST
#include <stdio.h>
#include <string.h>
#include <time.h>

static uint64_t handed_over, sum;

void mgs_emit(const void *records, uint32_t bytes) {
    const uint8_t *at = records, *end = at + bytes;
    handed_over += bytes;
    for (; at < end; sum += *at++) {}
}
void mgs_emit_spans(const struct mgs_span *spans, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) handed_over++, sum += spans[i].bytes;
}
void mgs_emit_values(const struct mgs_value *values, uint32_t count) { handed_over += count, sum += values->bytes; }
void mgs_error(const char *text, uint32_t bytes) {
    fprintf(stderr, "%.*s\n", (int)bytes, text);
    exit(2);
}
void mgs_error_at(uint32_t place, const char *text, uint32_t bytes) { (void)place, mgs_error(text, bytes); }
uint32_t mgs_input(void) { return 0; }
uint64_t mgs_offset(void) { return 0; }

/* What a guest may leave out. */
__attribute__((weak)) uint8_t *mgs_args(uint32_t bytes);
__attribute__((weak)) int32_t mgs_open(void);
__attribute__((weak)) int32_t mgs_close(void);

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    FILE *file = fopen(argv[1], "rb");
    if (!file || fseek(file, 0, SEEK_END)) return 2;
    size_t bytes = (size_t)ftell(file);
    rewind(file);
    uint8_t *all = calloc(1, bytes + 16);
    if (!all || fread(all, 1, bytes, file) != bytes) return 2;
    if (argc > 3) memcpy(mgs_args((uint32_t)strlen(argv[3])), argv[3], strlen(argv[3]));
    int32_t (*open)(void) = mgs_open, (*close)(void) = mgs_close;
    if (open && open()) return 2;
    for (int round = atoi(argv[2]); round > 0; round--) {
        handed_over = sum = 0;
        double begun = seconds();
        for (size_t from = 0, to; from < bytes; from = to) {
            to = from + (1 << 20);
            if (to >= bytes) to = bytes;
            else while (all[to - 1] != '\n') to--;
            if (mgs_chunk(all + from, (uint32_t)(to - from))) return 2;
        }
        printf("%.6f\n", seconds() - begun);
        if (close && close()) return 2;
    }
    fprintf(stderr, "%llu %llu\n", (unsigned long long)handed_over, (unsigned long long)sum);
    return 0;
}
