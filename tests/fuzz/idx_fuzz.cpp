// Hostile IDX files. The first byte of an input says how the rest becomes a file: bits 0 and 1 the
// rank that is expected, less 1; bit 2 packs it with gzip, without which random bytes would never
// get past the gzip check sum; bit 3 makes two gzip members of it; bit 4 cuts the last bytes off.
#include <vector>

#include <zlib.h>

#include "lockstep/data/idx.h"

#include "fuzz/harness.h"

namespace {

using lockstep::fuzz::Bytes;

/// Deflate makes at most 1032 bytes of one; the vector that takes them in grows by doubling.
constexpr lockstep::fuzz::MemoryLimit kLimit{std::size_t{128} << 10, 2 * 1032};

/// zlib's smallest window and memory: clearing larger ones would take most of the time.
constexpr int kWindow = 9 + 16;
constexpr int kMemory = 1;

void append_gzip(std::vector<std::uint8_t>& packed, Bytes bytes) {
  z_stream stream{};
  const int started = deflateInit2(&stream, 1, Z_DEFLATED, kWindow, kMemory, Z_DEFAULT_STRATEGY);
  lockstep::fuzz::require(started == Z_OK, "zlib cannot start deflating");
  const std::size_t before = packed.size();
  packed.resize(before + deflateBound(&stream, bytes.size()) + 64);
  stream.next_in = const_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = packed.data() + before;
  stream.avail_out = static_cast<uInt>(packed.size() - before);
  lockstep::fuzz::require(deflate(&stream, Z_FINISH) == Z_STREAM_END, "zlib does not deflate");
  packed.resize(before + stream.total_out);
  deflateEnd(&stream);
}

std::vector<std::uint8_t> file_of(unsigned how, Bytes rest) {
  if ((how & 4U) == 0) return {rest.begin(), rest.end()};
  std::vector<std::uint8_t> file;
  const std::size_t first = (how & 8U) != 0 ? rest.size() / 2 : rest.size();
  append_gzip(file, rest.first(first));
  if ((how & 8U) != 0) append_gzip(file, rest.subspan(first));
  if ((how & 16U) != 0) file.resize(file.size() - (how >> 5U) - 1);
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static lockstep::fuzz::MemoryFile place;
  if (size == 0) return 0;
  const int rank = 1 + (data[0] & 3);
  const std::vector<std::uint8_t> file = file_of(data[0], {data + 1, size - 1});
  place.put(file);
  lockstep::fuzz::judge(file.size(), kLimit, [&] {
    std::int64_t seen = 0;
    const auto progress = [&](std::int64_t done, std::int64_t total) {
      lockstep::fuzz::require(seen < done && done <= total, "progress that is none");
      seen = done;
    };
    const lockstep::IdxFile read =
        lockstep::read_idx(place.path(), rank, std::uint64_t{1} << 34, progress);
    lockstep::fuzz::require(read.shape.rank() == rank, "another rank than asked for");
    lockstep::fuzz::require(read.shape.count() == std::ssize(read.values),
                            "values that do not fill the shape");
  });
  return 0;
}
