// Every way a data file can be wrong, and that each is told apart from the others.
#include "lockstep/data/idx.h"

#include <string>
#include <vector>

#include <unistd.h>

#include "lockstep/core/error.h"

#include "data/idx_files.h"
#include "support/catch.h"
#include "support/throws.h"

namespace {

using namespace lockstep;
using namespace lockstep::test;
namespace fs = std::filesystem;

/// Writes `bytes`, reads them and returns the message, which must name the file; `parts` must be in
/// it.
std::string complaint(const fs::path& path, int rank, const std::vector<std::string>& parts) {
  const std::string text = message_of<DataError>([&] { (void)read_idx(path, rank); });
  INFO(text);
  CHECK(contains(text, path.string()));
  for (const std::string& part : parts) {
    INFO("missing: " << part);
    CHECK(contains(text, part));
  }
  return text;
}

class Files {
 public:
  fs::path write(const Bytes& bytes) {
    fs::path path = folder_.path() / ("file" + std::to_string(++count_));
    write_file(path, bytes);
    return path;
  }
  [[nodiscard]] const fs::path& path() const { return folder_.path(); }
  [[nodiscard]] std::string fetch() const {
    return "scripts/fetch_mnist.sh " + folder_.path().string();
  }

 private:
  TempFolder folder_;
  int count_ = 0;
};

}  // namespace

TEST_CASE("IDX files of any size and rank are read, raw and gzip") {
  Files files;
  for (const std::vector<std::uint32_t>& extents :
       {std::vector<std::uint32_t>{1}, {10007}, {3, 4}, {5, 7, 3}, {2, 3, 4, 5}, {700, 31, 33}}) {
    const Bytes bytes = idx_bytes(extents);
    const int rank = static_cast<int>(extents.size());
    const Bytes values(bytes.begin() + 4 + 4 * rank, bytes.end());
    for (const Bytes& content : {bytes, gzip(bytes)}) {
      const IdxFile file = read_idx(files.write(content), rank);
      REQUIRE(file.shape.rank() == rank);
      for (int axis = 0; axis < rank; ++axis) CHECK(file.shape[axis] == extents[axis]);
      CHECK(file.values == values);
    }
  }
}

TEST_CASE("gzip members after one another are one file") {
  Files files;
  const Bytes bytes = idx_bytes({100, 9, 9});
  for (const std::ptrdiff_t cut : {0, 1, 10, 16, 5000}) {
    const Bytes content = joined(gzip({bytes.begin(), bytes.begin() + cut}),
                                 gzip({bytes.begin() + cut, bytes.end()}));
    CHECK(read_idx(files.write(content), 3).values == Bytes(bytes.begin() + 16, bytes.end()));
  }
}

TEST_CASE("a file that is not there, a folder and unreadable files are told apart") {
  Files files;
  complaint(files.path() / "none", 3,
            {"there is no such file", "expected an IDX file", files.fetch()});
  complaint(files.path(), 3, {"this is a folder", "expected an IDX file"});
  complaint("/dev/null", 3, {"device, pipe or socket", "expected a regular file"});
  const fs::path loop = files.path() / "loop";
  fs::create_symlink(loop, loop);
  complaint(loop, 3, {"cannot be opened", "expected a readable IDX file", "permissions"});
  // A regular file whose first read fails, for root too.
  if (fs::exists("/proc/self/mem"))
    complaint("/proc/self/mem", 3, {"cannot be read", "expected a readable IDX file"});
  const fs::path locked = files.write(idx_bytes({2}));
  fs::permissions(locked, fs::perms::none);
  if (geteuid() == 0) {
    CHECK(read_idx(locked, 1).values.size() == 2);  // nothing is locked for root
  } else {
    complaint(locked, 1, {"cannot be opened", "permissions"});
  }
}

TEST_CASE("an empty file and an empty gzip stream are told apart") {
  Files files;
  complaint(files.write({}), 3, {"the file is empty", "expected an IDX file", files.fetch()});
  complaint(files.write(gzip({})), 3,
            {"the gzip stream holds nothing", "expected an IDX file", files.fetch()});
}

TEST_CASE("a truncated file says how many bytes are missing") {
  Files files;
  Bytes bytes = idx_bytes({10, 6, 5});
  complaint(files.write({0, 0, 8}), 3,
            {"truncated", "the file has 3 bytes", "header of 16 bytes", "13 bytes"});
  bytes.resize(bytes.size() - 17);
  complaint(files.write(bytes), 3,
            {"truncated", "283 bytes of data", "300 expected", "17 bytes are missing", "Delete it",
             files.fetch()});
  complaint(files.write(gzip(bytes)), 3,
            {"truncated", "the gzip stream gives 283", "300 expected", "17 bytes are missing"});
}

TEST_CASE("a gzip stream that is cut off or damaged is told apart") {
  Files files;
  const Bytes bytes = idx_bytes({10, 6, 5});
  Bytes packed = gzip(bytes);
  Bytes cut(packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(packed.size() / 2));
  complaint(files.write(cut), 3,
            {"truncated", "ends early", "300 expected", "bytes are missing", files.fetch()});
  cut.assign(packed.begin(), packed.end() - 3);
  complaint(files.write(cut), 3, {"end mark and check sum", "missing", "expected whole gzip data"});
  packed[packed.size() - 6] ^= 0x10;  // the check sum
  complaint(files.write(packed), 3,
            {"the gzip stream is damaged after 316", "incorrect data check", files.fetch()});
}

TEST_CASE("a file that is too long says how many bytes are too many") {
  Files files;
  const Bytes bytes = idx_bytes({10, 6, 5});
  const Bytes longer = joined(bytes, Bytes(23, 7));
  complaint(
      files.write(longer), 3,
      {"too long", "323 bytes of data", "300 expected", "23 bytes are too many", files.fetch()});
  complaint(files.write(gzip(longer)), 3,
            {"too long", "the gzip stream gives 323", "23 bytes are too many"});
  complaint(files.write(joined(gzip(bytes), text_bytes("trailing"))), 3,
            {"8 bytes too many", "after the end of the gzip stream", "expected nothing"});
  complaint(files.write(joined(gzip(bytes), {0x1F})), 3, {"1 bytes too many"});
  const Bytes huge = joined(bytes, Bytes(std::size_t{40} << 20, 0));
  complaint(files.write(gzip(huge)), 3, {"too long", "more than 262144 bytes"});
}

TEST_CASE("a web page in place of data is recognised") {
  Files files;
  for (const std::string page : {"<!DOCTYPE html><html><body>403</body></html>", "  \n<HTML>",
                                 "<?xml version='1.0'?><Error/>", "\xEF\xBB\xBF<html>", "<",
                                 "404 not found\n<html>sorry</html>"}) {
    complaint(files.write(text_bytes(page)), 3,
              {"HTML", "the download failed", "Expected an IDX file", files.fetch()});
    complaint(files.write(gzip(text_bytes(page))), 1,
              {"HTML", "the download failed", files.fetch()});
  }
}

TEST_CASE("another magic, element type or rank is named") {
  Files files;
  complaint(
      files.write(text_bytes("PK\x03\x04 and so on")), 3,
      {"this is no IDX file", "magic 0x504b0304 found", "expected 0x00000803", files.fetch()});
  for (const auto& [type, name] : std::vector<std::pair<int, std::string>>{{0x09, "signed byte"},
                                                                           {0x0B, "int16"},
                                                                           {0x0C, "int32"},
                                                                           {0x0D, "float32"},
                                                                           {0x0E, "float64"},
                                                                           {0x77, "unknown"}}) {
    complaint(
        files.write(joined(idx_header({1, 1, 1}, static_cast<std::uint8_t>(type)), Bytes(8, 0))), 3,
        {"type 0x", "(" + name + ")", "expected 0x08 (unsigned byte)"});
  }
  complaint(files.write(idx_bytes({4, 4})), 3,
            {"holds data of 2 extents", "expected images (3 extents)", "0x00000802"});
  CHECK_THROWS_AS(read_idx(files.write(idx_bytes({4})), 0), UsageError);
  CHECK_THROWS_AS(read_idx(files.write(idx_bytes({4})), 5), UsageError);
}

TEST_CASE("images in place of labels have their own message") {
  Files files;
  complaint(files.write(idx_bytes({20})), 3,
            {"holds labels (1 extent), expected images (3 extents)",
             "0x00000801 found, expected 0x00000803", "swapped", files.fetch()});
  complaint(files.write(gzip(idx_bytes({2, 3, 3}))), 1,
            {"holds images (3 extents), expected labels (1 extent)",
             "0x00000803 found, expected 0x00000801", "swapped"});
}

TEST_CASE("absurd extents are refused before memory is taken") {
  Files files;
  constexpr std::uint32_t kMost = 0xFFFFFFFFU;
  for (const bool packed : {false, true}) {
    const auto write = [&](const Bytes& bytes) {
      return files.write(packed ? gzip(bytes) : bytes);
    };
    complaint(write(idx_header({kMost, kMost, kMost})), 3,
              {"4294967295 x 4294967295 x 4294967295", "more bytes than 64 bits can count",
               "at most 17179869184 bytes"});
    complaint(write(idx_header({1U << 30, 1U << 30, 16})), 3,
              {"more bytes than 64 bits", "expected at most"});
    complaint(write(idx_header({1U << 20, 1U << 10, 17})), 3,
              {"18253611008 bytes, expected at most 17179869184"});
    // Allowed by the limit but not there: 16 GiB that a short file only claims.
    complaint(write(joined(idx_header({1U << 20, 1U << 10, 16}), Bytes(100, 1))), 3,
              {"truncated", "100 bytes of data", "17179869184 expected",
               "17179869084 bytes are missing"});
    complaint(write(idx_header({3, 0, 3})), 3,
              {"extent 1 is 0", "expected at least 1", files.fetch()});
  }
  const fs::path path = files.write(idx_bytes({10, 10}));
  CHECK(read_idx(path, 2, 100).values.size() == 100);
  CHECK(contains(message_of<DataError>([&] { (void)read_idx(path, 2, 99); }),
                 "are 100 bytes, expected at most 99"));
}

TEST_CASE("a file cut at any length is an error, whole it is read") {
  Files files;
  const Bytes bytes = idx_bytes({4, 5, 3});
  for (const Bytes& whole : {bytes, gzip(bytes)}) {
    const fs::path path = files.write(whole);
    CHECK(read_idx(path, 3).values.size() == 60);
    for (std::size_t length = 0; length < whole.size(); ++length) {
      INFO("cut to " << length << " of " << whole.size());
      fs::resize_file(path, whole.size());
      write_file(path, {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)});
      CHECK_THROWS_AS(read_idx(path, 3), DataError);
    }
  }
}

TEST_CASE("a flipped bit anywhere is a DataError or other values, never more") {
  Files files;
  const Bytes bytes = idx_bytes({4, 5, 3});
  for (const Bytes& whole : {bytes, gzip(bytes)}) {
    const fs::path path = files.write(whole);
    int refused = 0;
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (int bit = 0; bit < 8; ++bit) {
        Bytes damaged = whole;
        damaged[at] = static_cast<std::uint8_t>(damaged[at] ^ (1 << bit));
        write_file(path, damaged);
        try {
          const IdxFile file = read_idx(path, 3);
          CHECK(static_cast<std::size_t>(file.shape.count()) == file.values.size());
        } catch (const DataError&) {
          ++refused;
        }
      }
    }
    CHECK(refused >= 8 * 16);  // at least every bit of the header
  }
}

TEST_CASE("progress counts the bytes of the file up to its size") {
  Files files;
  const Bytes bytes = idx_bytes({1000, 30, 30});
  for (const Bytes& content : {bytes, gzip(bytes)}) {
    std::vector<std::int64_t> seen;
    (void)read_idx(files.write(content), 3, std::uint64_t{1} << 34,
                   [&](std::int64_t done, std::int64_t total) {
                     CHECK(total == static_cast<std::int64_t>(content.size()));
                     if (!seen.empty()) CHECK(done > seen.back());
                     seen.push_back(done);
                   });
    REQUIRE(!seen.empty());
    CHECK(seen.back() == static_cast<std::int64_t>(content.size()));
  }
}
