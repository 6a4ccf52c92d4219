// STXXL as a peer: sorts a file of 100-byte records by their first ten bytes.
//
//     sort100 INPUT OUTPUT MEMORY_BYTES TEMP_FILE TEMP_BYTES
//
// INPUT --> vector_bufreader --> stxxl::sorter (runs in TEMP_FILE) --> vector_bufwriter --> OUTPUT
//
// All files are opened with O_DIRECT, as is usual for STXXL. MEMORY_BYTES is the total, as for the other peers:
// the blocks of the buffered reader and writer are subtracted from it, and the sorter gets the rest.
#include <stxxl/io>
#include <stxxl/mng>
#include <stxxl/sorter>
#include <stxxl/vector>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

struct Record {
    unsigned char bytes[100];
};

struct KeyLess {
    bool operator()(const Record& a, const Record& b) const {
        std::uint64_t x, y;
        std::memcpy(&x, a.bytes, 8);
        std::memcpy(&y, b.bytes, 8);
        if (x != y) return __builtin_bswap64(x) < __builtin_bswap64(y);
        return std::memcmp(a.bytes + 8, b.bytes + 8, 2) < 0;
    }
    Record min_value() const { return filled(0x00); }
    Record max_value() const { return filled(0xff); }

private:
    static Record filled(int byte) {
        Record record;
        std::memset(record.bytes, byte, sizeof record.bytes);
        return record;
    }
};

// A block of a vector holds whole records and is a multiple of 4 KiB, as O_DIRECT wants.
constexpr unsigned vector_block_bytes = 500 * 4096;
static_assert(vector_block_bytes % sizeof(Record) == 0, "records must fill a block");
typedef stxxl::vector<Record, 1, stxxl::lru_pager<2>, vector_block_bytes> Records;

// Reader and writer keep this many blocks each.
constexpr unsigned stream_blocks = 4;

// The size of the sorter's own blocks, which are in TEMP_FILE.
constexpr unsigned run_block_bytes = 2 * 1024 * 1024;

int main(int argc, char** argv) {
    if (argc != 6) {
        std::fprintf(stderr, "usage: %s INPUT OUTPUT MEMORY_BYTES TEMP_FILE TEMP_BYTES\n", argv[0]);
        return 2;
    }
    const std::uint64_t streams = 2ull * stream_blocks * vector_block_bytes + 4ull * vector_block_bytes;
    const std::uint64_t memory = std::strtoull(argv[3], nullptr, 10);
    if (memory <= streams) {
        std::fprintf(stderr, "%s: at least %llu bytes of memory are needed\n", argv[0],
                     static_cast<unsigned long long>(streams) + 1);
        return 2;
    }

    // Before the first use of the block manager: one disk, made for this run and removed after it.
    stxxl::disk_config disk(argv[4], std::strtoull(argv[5], nullptr, 10), "syscall unlink direct");
    stxxl::config::get_instance()->add_disk(disk);

    using stxxl::file;
    stxxl::syscall_file input_file(argv[1], file::RDONLY | file::DIRECT);
    stxxl::syscall_file output_file(argv[2], file::RDWR | file::CREAT | file::TRUNC | file::DIRECT);

    typedef stxxl::sorter<Record, KeyLess, run_block_bytes> Sorter;
    Sorter sorter(KeyLess(), memory - streams);
    {
        const Records input(&input_file);
        for (stxxl::vector_bufreader<Records::const_iterator> reader(input.begin(), input.end(), stream_blocks);
             !reader.empty(); ++reader)
            sorter.push(*reader);
    }
    sorter.sort();
    {
        Records output(&output_file);
        output.resize(sorter.size());
        stxxl::vector_bufwriter<Records::iterator> writer(output.begin(), stream_blocks);
        for (; !sorter.empty(); ++sorter) writer << *sorter;
        writer.finish();
    }
    return 0;
}
