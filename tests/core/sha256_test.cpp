// SHA-256 against the examples of FIPS 180-4 and its predecessors.
#include "lockstep/core/sha256.h"

#include <algorithm>

#include "support/catch.h"

namespace lockstep {

namespace {

std::string digest(const std::string& text) {
  return sha256(std::as_bytes(std::span(text)));
}

}  // namespace

TEST_CASE("sha256: known answers", "[core]") {
  CHECK(digest("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(digest("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(digest(std::string(1000000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("sha256: lengths around a block", "[core]") {
  // From sha256sum: 55 bytes still fit the length into one block, 56 and 64 do not.
  CHECK(digest(std::string(55, 'x')) ==
        "d5e285683cd4efc02d021a5c62014694958901005d6f71e89e0989fac77e4072");
  CHECK(digest(std::string(56, 'x')) ==
        "04c26261370ee7541549d16dee320c723e3fd14671e66a099afe0a377c16888e");
  CHECK(digest(std::string(64, 'x')) ==
        "7ce100971f64e7001e8fe5a51973ecdfe1ced42befe7ee8d5fd6219506b5393c");
}

TEST_CASE("sha256: parts of any length give the digest of the whole", "[core]") {
  const std::string text(1000, 'y');
  for (std::size_t part = 1; part < 200; ++part) {
    Sha256 parts;
    std::span<const char> left(text);
    while (!left.empty()) {
      const std::size_t length = std::min(part, left.size());
      parts.add(left.first(length));
      left = left.subspan(length);
    }
    REQUIRE(parts.finish() == digest(text));
  }
}

}  // namespace lockstep
