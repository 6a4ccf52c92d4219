/* A guest as a program of this machine, for comparison: -DGUEST='"fold.c"'. Reads chunks as the engine does,
 * about 512 KiB that end where lines end, and calls mgs_chunk on each. Prints the processor seconds of each
 * round, and what the guest handed over in the last one.
 *
 *   native FILE ROUNDS [ARGUMENTS]
 */
#include GUEST
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHUNK_BYTES (512 << 10)

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
    int file = open(argv[1], O_RDONLY);
    uint8_t *chunk = calloc(1, CHUNK_BYTES + 16);
    if (file < 0 || !chunk) return 2;
    if (argc > 3) memcpy(mgs_args((uint32_t)strlen(argv[3])), argv[3], strlen(argv[3]));
    int32_t (*begin)(void) = mgs_open, (*end)(void) = mgs_close;
    if (begin && begin()) return 2;
    for (int round = atoi(argv[2]); round > 0; round--) {
        handed_over = sum = 0;
        double begun = seconds();
        ssize_t bytes;
        for (off_t from = 0; (bytes = pread(file, chunk, CHUNK_BYTES, from)) > 0; from += bytes) {
            while (bytes && chunk[bytes - 1] != '\n') bytes--;
            if (!bytes || mgs_chunk(chunk, (uint32_t)bytes)) return 2;
        }
        printf("%.6f\n", seconds() - begun);
        if (end && end()) return 2;
    }
    fprintf(stderr, "%llu %llu\n", (unsigned long long)handed_over, (unsigned long long)sum);
    return 0;
}
