// Data sets in memory: checks of what goes in, slices, and values as floats.
#include "lockstep/data/dataset.h"

#include <limits>
#include <string>
#include <vector>

#include "lockstep/core/error.h"

#include "data/idx_files.h"
#include "support/catch.h"
#include "support/throws.h"

namespace {

using namespace lockstep;
using namespace lockstep::test;

Dataset six_samples() {
  Bytes bytes;
  for (int i = 0; i < 6 * 4; ++i) bytes.push_back(static_cast<std::uint8_t>(10 * i));
  return Dataset::from_bytes("six", {1, 2, 2}, bytes, {0, 1, 2, 0, 1, 2}, 3);
}

template <class F>
void complains(F&& call, const std::vector<std::string>& parts) {
  const std::string text = message_of<DataError>(call);
  INFO(text);
  for (const std::string& part : parts) CHECK(contains(text, part));
}

}  // namespace

TEST_CASE("a data set knows what it was made of") {
  const Dataset data = six_samples();
  CHECK(data.name() == "six");
  CHECK(data.size() == 6);
  CHECK(data.sample_shape() == Shape{1, 2, 2});
  CHECK(data.class_count() == 3);
  CHECK(data.scale() == 1.0F / 255.0F);
  CHECK(data.bytes()[5] == 50);
  CHECK(data.classes()[5] == 2);
  CHECK(data.floats() == nullptr);
  CHECK(data.soft_targets() == nullptr);
}

TEST_CASE("slices share the memory of the whole and outlive it") {
  const std::uint8_t* first = nullptr;
  const Dataset part = [&] {
    const Dataset data = six_samples();
    first = data.bytes();
    return data.slice(1, 4).slice(1, 2);
  }();
  CHECK(part.size() == 2);
  CHECK(part.bytes() == first + 2 * 4);
  CHECK(part.bytes()[0] == 80);
  CHECK(part.classes()[0] == 2);
  CHECK(part.classes()[1] == 0);
  CHECK(part.slice(2, 0).size() == 0);
  CHECK(part.take(1).size() == 1);
  CHECK(part.take(100).size() == 2);
  for (const auto& [from, count] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {-1, 1},
           {0, 3},
           {2, 1},
           {1, -1},
           {3, 0},
           {1, std::numeric_limits<std::int64_t>::max()}}) {
    INFO(from << " " << count);
    CHECK_THROWS_AS(part.slice(from, count), UsageError);
  }
  CHECK_THROWS_AS(part.take(-1), UsageError);
  CHECK(contains(message_of<UsageError>([&] { (void)part.slice(1, 2); }),
                 "expected one within its 2 samples"));
}

TEST_CASE("samples come out as floats") {
  const Tensor scaled = six_samples().slice(1, 5).tensor(1, 2);
  CHECK(scaled.shape() == Shape{2, 1, 2, 2});
  for (int i = 0; i < 8; ++i)
    CHECK(scaled.data()[i] == static_cast<float>((80 + 10 * i) % 256) * (1.0F / 255.0F));

  const Tensor samples({3, 2}, {1, 2, 3, 4, 5, 6});
  const Dataset data = Dataset::from_floats("plain", samples, {1, 0, 1}, 2);
  CHECK(data.bytes() == nullptr);
  CHECK(data.floats()[3] == 4);
  CHECK(data.scale() == 1.0F);
  CHECK(data.slice(1, 2).floats()[0] == 3);
  CHECK(data.slice(1, 2).tensor(1, 1).values() == std::vector<float>{5, 6});
  CHECK(data.tensor(0, 0).shape() == Shape{0, 2});
}

TEST_CASE("soft targets stand beside their samples") {
  const Dataset data = Dataset::from_floats("soft", Tensor({2, 2}, {1, 2, 3, 4}),
                                            Tensor({2, 3}, {1, 0, 0, .5F, .25F, .25F}));
  CHECK(data.class_count() == 3);
  CHECK(data.classes() == nullptr);
  CHECK(data.slice(1, 1).soft_targets()[0] == .5F);
}

TEST_CASE("a label that is out of range is named with its index") {
  const auto make = [](std::int32_t label) {
    return [label] {
      (void)Dataset::from_bytes("digits", {1}, Bytes(4, 0), {0, 2, label, label}, 3);
    };
  };
  complains(make(3), {"digits", "label of sample 2 is 3", "expected 0 to 2"});
  complains(make(-1), {"label of sample 2 is -1", "expected 0 to 2"});
  complains(
      [] {
        (void)Dataset::from_floats("f", Tensor({1, 1}, {0}), {5}, 5);
      },
      {"label of sample 0 is 5", "expected 0 to 4"});
}

TEST_CASE("sizes that do not fit are refused") {
  complains(
      [] {
        (void)Dataset::from_bytes("d", {2, 2}, Bytes(7, 0), {0}, 1);
      },
      {"7 bytes", "(2, 2)", "expected a multiple of 4"});
  complains(
      [] {
        (void)Dataset::from_bytes("d", {2, 2}, Bytes(8, 0), {0}, 1);
      },
      {"2 samples but 1 targets", "expected one target"});
  complains([] { (void)Dataset::from_bytes("d", {2}, Bytes(2, 0), {0}, 0); },
            {"class_count is 0", "expected at least 1"});
  complains(
      [] {
        (void)Dataset::from_bytes("d", {2, 0}, {}, {}, 1);
      },
      {"(2, 0)", "extents of at least 1"});
  complains(
      [] {
        (void)Dataset::from_bytes("d", {1, 1, 1, 1}, {}, {}, 1);
      },
      {"(1, 1, 1, 1)", "expected 0 to 3 extents"});
  complains(
      [] {
        (void)Dataset::from_floats("d", Tensor({2, 2}), {0}, 1);
      },
      {"2 samples but 1 targets"});
  complains([] { (void)Dataset::from_floats("d", Tensor(Shape{}), {0}, 1); },
            {"a scalar", "expected shape (N,"});
  complains(
      [] {
        (void)Dataset::from_floats("d", Tensor({2, 2}), Tensor({2}));
      },
      {"soft targets of shape (2)", "(N, classes)"});
  complains(
      [] {
        (void)Dataset::from_floats("d", Tensor({2, 2}), Tensor({3, 2}));
      },
      {"2 samples but 3 targets"});
  complains(
      [] {
        (void)Dataset::from_floats(
            "d", Tensor({2, 1}), Tensor({2, 2}, {0, 1, 1, std::numeric_limits<float>::infinity()}));
      },
      {"soft target of sample 1 is inf", "expected finite"});
  CHECK(Dataset::from_bytes("d", {2}, {}, {}, 1).size() == 0);
}

TEST_CASE("the digest is of what training sees: every part counts, the name does not") {
  const auto digest = [](std::vector<std::uint8_t> bytes, std::vector<std::int32_t> classes,
                         int class_count = 3, float scale = 0.5F, Shape shape = {2}) {
    return Dataset::from_bytes("any", shape, std::move(bytes), std::move(classes), class_count,
                               scale)
        .sha256();
  };
  const std::string plain = digest({1, 2, 3, 4}, {0, 1});
  CHECK(plain.size() == 64);
  CHECK(plain == Dataset::from_bytes("other", {2}, {1, 2, 3, 4}, {0, 1}, 3, 0.5F).sha256());
  CHECK(plain != digest({1, 2, 3, 5}, {0, 1}));
  CHECK(plain != digest({1, 2, 3, 4}, {0, 2}));
  CHECK(plain != digest({1, 2, 3, 4}, {0, 1}, 4));
  CHECK(plain != digest({1, 2, 3, 4}, {0, 1}, 3, 0.25F));
  CHECK(plain != digest({1, 2, 3, 4}, {0, 1}, 3, 0.5F, {1, 2}));
  const Dataset three = Dataset::from_bytes("any", {2}, {9, 9, 1, 2, 3, 4}, {2, 0, 1}, 3, 0.5F);
  CHECK(plain != three.sha256());
  CHECK(plain == three.slice(1, 2).sha256());  // the slice, not what it is cut from

  const Tensor values(Shape{2, 2}, {1, 2, 3, 4});
  const std::string floats = Dataset::from_floats("any", values, {0, 1}, 3).sha256();
  CHECK(floats != plain);
  const auto soft = [&](float last) {
    return Dataset::from_floats("any", values, Tensor(Shape{2, 2}, {1, 0, 0, last})).sha256();
  };
  CHECK(soft(1) != soft(0.5F));
}
