#include "lockstep/core/random.h"

#include "support/catch.h"

using namespace lockstep;

// Known answers published with the reference implementation of Philox4x32-10 (Random123,
// kat_vectors).
TEST_CASE("philox gives the published known answers", "[core]") {
  CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) ==
        PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
        PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("every part of a random key changes the numbers", "[core]") {
  const RandomKey key{.seed = 7, .purpose = RandomPurpose::dropout, .item = 3, .epoch = 2};
  const PhiloxBlock base = random_block(key, 5, 1);
  CHECK(random_block(key, 5, 1) == base);
  CHECK(random_block(key, 6, 1) != base);
  CHECK(random_block(key, 5, 2) != base);
  for (RandomKey other :
       {RandomKey{8, key.purpose, 3, 2}, RandomKey{7, RandomPurpose::shuffle, 3, 2},
        RandomKey{7, key.purpose, 4, 2}, RandomKey{7, key.purpose, 3, 3},
        RandomKey{7 + (std::uint64_t{1} << 32), key.purpose, 3, 2}}) {
    CHECK(random_block(other, 5, 1) != base);
  }
}

TEST_CASE("uniform floats lie in [0, 1)", "[core]") {
  CHECK(uniform_float(0) == 0.0F);
  CHECK(uniform_float(0xFFFFFFFF) < 1.0F);
  CHECK(uniform_float(0x80000000) == 0.5F);
}
