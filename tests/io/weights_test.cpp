// Weights files: the bytes by hand, back and forth, and what is refused.
#include "lockstep/io/weights.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "lockstep/config.h"
#include "lockstep/core/error.h"
#include "lockstep/layers/zoo.h"

#include "io/file_limit.h"
#include "io/scratch.h"
#include "support/catch.h"
#include "support/throws.h"

namespace lockstep {
namespace {

using test::put;
using test::read_text;
using test::Scratch;

/// Two tensors: fc.weight (2, 3) and fc.bias (2).
Model tiny_model(std::uint64_t seed = 0) {
  return {Sequential{Linear{.in = 3, .out = 2, .bias_init = normal(1)}}, Shape{3}, seed};
}

Model small_cnn(std::uint64_t seed = 0) {
  return {Sequential{Conv2d{.in = 1, .out = 2, .kernel = 3, .padding = same},
                     Conv2d{.in = 2, .out = 3, .kernel = {2, 1}}, Flatten{},
                     Linear{.in = 36, .out = 4}},
          Shape{1, 4, 4}, seed};
}

std::string length_bytes(std::uint64_t length) {
  std::string bytes(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(length >> (8 * i) & 0xFFU);
  return bytes;
}

/// The bytes of floats, least significant first.
std::string float_bytes(const std::vector<float>& values) {
  std::string bytes;
  for (const float value : values) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (unsigned shift = 0; shift < 32; shift += 8) {
      bytes.push_back(static_cast<char>(bits >> shift & 0xFFU));
    }
  }
  return bytes;
}

/// A file of this header, padded or not, and data.
std::string file_of(const std::string& header, const std::string& data) {
  return length_bytes(header.size()) + header + data;
}

/// A header of the tiny model with the texts of its two tensors.
std::string tiny_header(const std::string& weight, const std::string& bias) {
  return R"({"fc.weight":)" + weight + R"(,"fc.bias":)" + bias + "}";
}

const std::string kWeight = R"({"dtype":"F32","shape":[2,3],"data_offsets":[0,24]})";
const std::string kBias = R"({"dtype":"F32","shape":[2],"data_offsets":[24,32]})";
const std::vector<float> kValues = {1, 2, 3, 4, 5, 6, 7, 8};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Loads a file of these bytes into the tiny model, which must throw and change nothing; the error
/// starts with the path.
std::string refusal(const std::string& bytes) {
  const Scratch scratch;
  put(scratch / "bad", bytes);
  Model model = tiny_model(5);
  const std::vector<float> before = model.arena();
  std::string error = test::message_of<IoError>([&] { load_weights(model, scratch / "bad"); });
  CHECK(same_bits(model.arena(), before));
  CHECK(error.find((scratch / "bad").string()) == 0);
  return error;
}

TEST_CASE("a weights file, byte for byte") {
  const Scratch scratch;
  Model model = tiny_model();
  model.set_parameter("fc.weight", Tensor(Shape{2, 3}, {1, -2, 0.5F, 4, 5, 6}));
  model.set_parameter("fc.bias", Tensor(Shape{2}, {7, 8}));
  save_weights(model, scratch / "tiny", {{"run", "a \"b\""}});
  std::string header =
      std::string(R"-({"__metadata__":{"flattening":"channel-first (C, H, W)","format":"pt",)-") +
      R"("lockstep_version":")" + kVersion + R"(","run":"a \"b\""},)" +
      R"("fc.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)" +
      R"("fc.bias":{"dtype":"F32","shape":[2],"data_offsets":[24,32]}})";
  while (header.size() % 8 != 0) header += ' ';
  CHECK(read_text(scratch / "tiny") == file_of(header, float_bytes({1, -2, 0.5F, 4, 5, 6, 7, 8})));
}

TEST_CASE("weights come back bit for bit, whatever they are") {
  const Scratch scratch;
  Model saved = small_cnn(1);
  saved.set_parameter("fc.bias",
                      Tensor(Shape{4}, {std::numeric_limits<float>::quiet_NaN(), -0.0F, 1e-45F,
                                        std::numeric_limits<float>::infinity()}));
  save_weights(saved, scratch / "weights");
  Model loaded = small_cnn(2);
  REQUIRE_FALSE(same_bits(loaded.arena(), saved.arena()));
  load_weights(loaded, scratch / "weights");
  CHECK(same_bits(loaded.arena(), saved.arena()));
  save_weights(loaded, scratch / "again");
  CHECK(read_text(scratch / "again") == read_text(scratch / "weights"));
  CHECK(test::names_in(scratch.path()) == std::vector<std::string>{"again", "weights"});
}

TEST_CASE("tensors lie in the order of the model's layers, data at a multiple of eight") {
  const Scratch scratch;
  for (const std::string metadata : {"", "1", "12", "123", "1234567"}) {
    save_weights(small_cnn(), scratch / "weights", {{"x", metadata}});
    const std::string bytes = read_text(scratch / "weights");
    std::size_t at = 0;
    for (const char* name :
         {"conv_1.weight", "conv_1.bias", "conv_2.weight", "conv_2.bias", "fc.weight", "fc.bias"}) {
      const std::size_t found = bytes.find('"' + std::string(name) + '"');
      CHECK(found != std::string::npos);
      CHECK(found > at);
      at = found;
    }
    const std::size_t header =
        static_cast<unsigned char>(bytes[0]) + 256U * static_cast<unsigned char>(bytes[1]);
    CHECK(header % 8 == 0);
    CHECK(bytes.size() == 8 + header + sizeof(float) * (18 + 2 + 12 + 3 + 144 + 4));
  }
}

TEST_CASE("our metadata stays, and text that is no UTF-8 is mended") {
  const Scratch scratch;
  save_weights(tiny_model(), scratch / "weights", {{"format", "mine"}, {"bad", "\xff"}});
  const std::string bytes = read_text(scratch / "weights");
  CHECK(test::contains(bytes, R"("format":"pt")"));
  CHECK_FALSE(test::contains(bytes, "mine"));
  Model model = tiny_model();
  load_weights(model, scratch / "weights");
}

TEST_CASE("metadata comes back, and what is no text in it is left out") {
  const Scratch scratch;
  save_weights(tiny_model(), scratch / "weights", {{"step", "12"}});
  CHECK(read_weights_metadata(scratch / "weights").at("step") == "12");
  CHECK(read_weights_metadata(scratch / "weights").at("format") == "pt");
  using Texts = std::map<std::string, std::string>;
  const std::pair<const char*, Texts> cases[] = {
      {R"({"__metadata__":{"a":1,"b":"text","c":{"d":"e"}}})", {{"b", "text"}}},
      {R"({"__metadata__":["a","b"]})", {}},
      {R"({"__metadata__":"a"})", {}},
      {R"({"__metadata__":null})", {}},
      {"{}", {}}};
  for (const auto& [header, expected] : cases) {
    INFO(header);
    put(scratch / "other", file_of(header, ""));
    CHECK(read_weights_metadata(scratch / "other") == expected);
  }
}

TEST_CASE("files of others are read: other order, no padding, no metadata, spaces") {
  const Scratch scratch;
  Model model = tiny_model();
  put(scratch / "a", file_of(tiny_header(kWeight, kBias), float_bytes(kValues)));
  load_weights(model, scratch / "a");
  CHECK(model.parameter("fc.weight").values() == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(model.parameter("fc.bias").values() == std::vector<float>{7, 8});
  put(scratch / "b",
      file_of(
          R"( {"fc.weight":{"data_offsets":[8, 32],"shape":[2, 3],"dtype":"F32"},)"
          R"("__metadata__":{"a":"b"}, "fc.bias":{"shape":[2],"dtype":"F32","data_offsets":[0,8]}} )",
          float_bytes(kValues)));
  load_weights(model, scratch / "b");
  CHECK(model.parameter("fc.weight").values() == std::vector<float>{3, 4, 5, 6, 7, 8});
  CHECK(model.parameter("fc.bias").values() == std::vector<float>{1, 2});
}

TEST_CASE("another model's weights are refused, naming the tensor") {
  const Scratch scratch;
  save_weights(Model(zoo::article(), Shape{1, 28, 28}), scratch / "article");
  Model lenet(zoo::lenet5(), Shape{1, 28, 28});
  const std::vector<float> before = lenet.arena();
  const std::string error =
      test::message_of<IoError>([&] { load_weights(lenet, scratch / "article"); });
  CHECK(test::contains(error, "tensor '"));
  CHECK(test::contains(error, "another model"));
  CHECK(same_bits(lenet.arena(), before));

  const std::string data = float_bytes(kValues);
  const std::string missing = refusal(file_of(
      R"({"fc.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})", data.substr(0, 24)));
  CHECK(test::contains(missing, "tensor 'fc.bias' of the model is missing"));
  const std::string unknown =
      refusal(file_of(R"({"fc.weight":)" + kWeight + R"(,"fc.offset":)" + kBias + "}", data));
  CHECK(test::contains(unknown, "tensor 'fc.offset' is not in the model"));
  CHECK(test::contains(unknown, "fc.weight, fc.bias"));
  const std::string shape = refusal(
      file_of(tiny_header(R"({"dtype":"F32","shape":[3,2],"data_offsets":[0,24]})", kBias), data));
  CHECK(test::contains(shape, "tensor 'fc.weight' has the shape (3, 2), the model's is (2, 3)"));
  const std::string rank = refusal(file_of(
      tiny_header(R"({"dtype":"F32","shape":[1,1,1,1,2,3],"data_offsets":[0,24]})", kBias), data));
  CHECK(test::contains(rank, "(1, 1, 1, 1, 2, 3)"));
}

TEST_CASE("headers that lie are refused") {
  const std::string data = float_bytes(kValues);
  const auto with_weight = [&](const std::string& weight) {
    return refusal(file_of(tiny_header(weight, kBias), data));
  };
  const auto with_bias = [&](const std::string& bias) {
    return refusal(file_of(tiny_header(kWeight, bias), data));
  };
  // Sizes and places.
  CHECK(
      test::contains(with_bias(R"({"dtype":"F32","shape":[2],"data_offsets":[16,24]})"), "begins"));
  CHECK(
      test::contains(with_bias(R"({"dtype":"F32","shape":[2],"data_offsets":[24,40]})"), "places"));
  CHECK(
      test::contains(with_bias(R"({"dtype":"F32","shape":[2],"data_offsets":[32,24]})"), "places"));
  CHECK(test::contains(with_bias(R"({"dtype":"F32","shape":[1],"data_offsets":[24,28]})"),
                       "damaged"));
  CHECK(
      test::contains(with_bias(R"({"dtype":"F32","shape":[1],"data_offsets":[28,32]})"), "begins"));
  CHECK(test::contains(
      with_weight(R"({"dtype":"F32","shape":[4294967296,4294967296,3],"data_offsets":[0,24]})"),
      "does not take"));
  CHECK(test::contains(
      with_weight(R"({"dtype":"F32","shape":[18446744073709551615,0],"data_offsets":[0,24]})"),
      "does not take"));
  CHECK(test::contains(
      with_weight(R"({"dtype":"F32","shape":[2,3],"data_offsets":[0,18446744073709551615]})"),
      "places"));
  // Types.
  CHECK(test::contains(with_weight(R"({"dtype":"F64","shape":[3],"data_offsets":[0,24]})"),
                       "tensor 'fc.weight': its dtype is F64"));
  CHECK(
      test::contains(with_weight(R"({"shape":[2,3],"data_offsets":[0,24]})"), "dtype is missing"));
  CHECK(test::contains(with_weight(R"({"dtype":"F32","shape":[-2,-3],"data_offsets":[0,24]})"),
                       "'shape'"));
  CHECK(test::contains(with_weight(R"({"dtype":"F32","shape":[2.0,3],"data_offsets":[0,24]})"),
                       "'shape'"));
  CHECK(
      test::contains(with_weight(R"({"dtype":"F32","shape":6,"data_offsets":[0,24]})"), "'shape'"));
  CHECK(
      test::contains(with_weight(R"({"dtype":"F32","shape":[2,3],"data_offsets":[0]})"), "places"));
  CHECK(test::contains(with_weight(R"({"dtype":"F32","shape":[2,3]})"), "'data_offsets'"));
  CHECK(test::contains(with_weight("5"), "no JSON object"));
  // The header itself.
  CHECK(test::contains(refusal(file_of("[]", data)), "no JSON object"));
  CHECK(test::contains(refusal(file_of("{", data)), "no JSON"));
  CHECK_FALSE(test::contains(refusal(file_of("{", data)), "json.exception"));  // a library's name
  CHECK(test::contains(refusal(file_of("{\"a\":1e999}", data)), "no JSON"));
  CHECK(test::contains(refusal(file_of("{\"\xff\":1}", data)), "no JSON"));
  CHECK(test::contains(refusal(file_of(std::string(100000, '['), data)), "nested"));
  CHECK(test::contains(
      refusal(file_of(R"({"fc.bias":)" + kBias + R"(,"fc.bias":)" + kBias + "}", data)), "twice"));
  CHECK(test::contains(refusal(file_of(tiny_header(kWeight, kBias), data + "x")), "has 33"));
  // Names are shown so that a terminal can bear them.
  CHECK(test::contains(
      refusal(file_of("{\"\\u001b[2J" + std::string(5000, 'n') + "\":" + kBias + "}", data)),
      "'?[2Jnnn"));
}

TEST_CASE("lengths of the header that no file has are refused before memory is taken") {
  for (const std::uint64_t length :
       {std::uint64_t{17}, std::uint64_t{100'000'001}, std::uint64_t{1} << 40,
        std::numeric_limits<std::uint64_t>::max(), std::numeric_limits<std::uint64_t>::max() - 7}) {
    CHECK(test::contains(refusal(length_bytes(length) + "{}              "), "does not fit"));
  }
  CHECK(test::contains(refusal(""), "has 0 bytes"));
  CHECK(test::contains(refusal("<html>\n<body>not found</body>"), "safetensors"));
}

TEST_CASE("files cut off anywhere are refused and change nothing") {
  const Scratch scratch;
  save_weights(tiny_model(3), scratch / "whole");
  const std::string whole = read_text(scratch / "whole");
  Model model = tiny_model(4);
  const std::vector<float> before = model.arena();
  std::size_t accepted = 0;
  for (std::size_t length = 0; length < whole.size(); ++length) {
    put(scratch / "cut", whole.substr(0, length));
    try {
      load_weights(model, scratch / "cut");
      ++accepted;
    } catch (const IoError&) {
    }
  }
  CHECK(accepted == 0);
  CHECK(same_bits(model.arena(), before));
}

TEST_CASE("a header with any bit wrong is refused or says the same") {
  const Scratch scratch;
  const Model saved = tiny_model(3);
  save_weights(saved, scratch / "whole");
  const std::string whole = read_text(scratch / "whole");
  const std::size_t header_end = whole.size() - 32;
  std::size_t wrong = 0;
  std::size_t refused = 0;
  for (std::size_t place = 0; place < header_end; ++place) {
    for (const unsigned flip : {0x01U, 0x04U, 0x20U, 0x80U, 0xFFU}) {
      std::string bytes = whole;
      bytes[place] = static_cast<char>(static_cast<unsigned char>(bytes[place]) ^ flip);
      put(scratch / "flipped", bytes);
      Model model = tiny_model(4);
      const std::vector<float> before = model.arena();
      bool loaded = false;
      try {
        load_weights(model, scratch / "flipped");
        loaded = true;
      } catch (const IoError&) {
        ++refused;
      }
      if (!same_bits(model.arena(), loaded ? saved.arena() : before)) ++wrong;
    }
  }
  CHECK(wrong == 0);
  CHECK(refused > header_end);
}

TEST_CASE("what is no file is refused, and nothing waits for it") {
  const Scratch scratch;
  Model model = tiny_model();
  CHECK(test::contains(test::message_of<IoError>([&] { load_weights(model, scratch / "none"); }),
                       "No such file"));
  CHECK(test::contains(test::message_of<IoError>([&] { load_weights(model, scratch.path()); }),
                       "no regular file"));
  CHECK(test::contains(test::message_of<IoError>([&] { load_weights(model, "/dev/zero"); }),
                       "no regular file"));
}

TEST_CASE("a failed save leaves the old weights") {
  const Scratch scratch;
  save_weights(tiny_model(1), scratch / "weights");
  const std::string before = read_text(scratch / "weights");
  const std::string error = test::message_of<IoError>([&] {
    const test::FileLimit limit(before.size() - 1);
    save_weights(tiny_model(2), scratch / "weights");
  });
  CHECK(test::contains(error, "File too large"));
  CHECK(read_text(scratch / "weights") == before);
  CHECK(test::names_in(scratch.path()) == std::vector<std::string>{"weights"});
}

}  // namespace
}  // namespace lockstep
