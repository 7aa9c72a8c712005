// load_mnist: finding the four files, joining them, and every way they do not belong together.
#include "lockstep/data/mnist.h"

#include <string>
#include <vector>

#include "lockstep/core/error.h"

#include "data/idx_files.h"
#include "support/catch.h"
#include "support/throws.h"

namespace {

using namespace lockstep;
using namespace lockstep::test;
namespace fs = std::filesystem;

/// 30 training and 12 test images of 4 x 3, labels 0 to 9 in turn.
class SmallMnist {
 public:
  SmallMnist() : folder_(holder_.path() / "small-mnist") {
    fs::create_directory(folder_);
    write("train-images-idx3-ubyte", idx_bytes({30, 4, 3}));
    write("train-labels-idx1-ubyte", idx_bytes({30}, 10));
    write("t10k-images-idx3-ubyte", idx_bytes({12, 4, 3}));
    write("t10k-labels-idx1-ubyte", idx_bytes({12}, 10));
  }
  [[nodiscard]] const fs::path& folder() const { return folder_; }
  [[nodiscard]] fs::path path(const std::string& name) const { return folder_ / name; }
  void write(const std::string& name, const Bytes& bytes) const { write_file(path(name), bytes); }
  [[nodiscard]] std::string fetch() const { return "scripts/fetch_mnist.sh " + folder_.string(); }

  void complains(const std::vector<std::string>& parts, std::int64_t validation = 5) const {
    const std::string text = message_of<DataError>([&] { (void)load_mnist(folder_, validation); });
    INFO(text);
    for (const std::string& part : parts) {
      INFO("missing: " << part);
      CHECK(contains(text, part));
    }
  }

 private:
  TempFolder holder_;
  fs::path folder_;
};

}  // namespace

TEST_CASE("the first training images are the validation set") {
  const SmallMnist data;
  const DatasetSplits splits = load_mnist(data.folder(), 5);
  CHECK(splits.train.size() == 25);
  CHECK(splits.validation.size() == 5);
  CHECK(splits.test.size() == 12);
  CHECK(splits.train.sample_shape() == Shape{1, 4, 3});
  CHECK(splits.train.class_count() == 10);
  CHECK(splits.train.name() == "small-mnist");
  CHECK(splits.train.scale() == 1.0F / 255.0F);
  CHECK(splits.validation.classes()[4] == 4);
  CHECK(splits.train.classes()[0] == 5);
  CHECK(splits.validation.bytes()[0] == 0);
  CHECK(splits.train.bytes()[0] == 5 * 12);
  CHECK(splits.train.bytes() == splits.validation.bytes() + 5 * 12);
  CHECK(load_mnist(data.folder(), 0).train.size() == 30);
  CHECK(load_mnist(data.folder(), 29).train.size() == 1);
  CHECK(load_mnist(data.folder().string() + "/", 5).train.name() == "small-mnist");
  CHECK_THROWS_AS(load_mnist(data.folder(), -1), UsageError);
}

TEST_CASE("both spellings are found, raw and gzip") {
  for (const std::string separator : {"-", "."}) {
    for (const bool packed : {false, true}) {
      const SmallMnist data;
      for (const std::string kind :
           {"train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"}) {
        const fs::path from = data.path(kind + "-ubyte");
        const std::string name =
            kind.substr(0, kind.size() - 5) + separator + kind.substr(kind.size() - 4) + "-ubyte";
        if (packed) {
          const IdxFile file = read_idx(from, kind.ends_with('3') ? 3 : 1);
          std::vector<std::uint32_t> extents;
          for (int axis = 0; axis < file.shape.rank(); ++axis)
            extents.push_back(static_cast<std::uint32_t>(file.shape[axis]));
          fs::remove(from);
          data.write(name + ".gz", gzip(joined(idx_header(extents), file.values)));
        } else {
          fs::rename(from, data.path(name));
        }
      }
      const DatasetSplits splits = load_mnist(data.folder(), 5);
      CHECK(splits.train.size() == 25);
      CHECK(splits.train.classes()[0] == 5);
    }
  }
}

TEST_CASE("missing folders and files name the script that fetches them") {
  SmallMnist data;
  const fs::path none = data.folder() / "none";
  const std::string text = message_of<DataError>([&] { (void)load_mnist(none); });
  CHECK(contains(text, none.string() + ": there is no such folder"));
  CHECK(contains(text, "scripts/fetch_mnist.sh " + none.string()));
  CHECK(contains(text, "synthetic"));
  CHECK(contains(
      message_of<DataError>([&] { (void)load_mnist(data.path("train-images-idx3-ubyte")); }),
      "this is no folder"));
  fs::remove(data.path("t10k-images-idx3-ubyte"));
  fs::remove(data.path("train-labels-idx1-ubyte"));
  data.complains({data.folder().string(), "has no train-labels-idx1-ubyte, t10k-images-idx3-ubyte",
                  data.fetch()});
}

TEST_CASE("files that do not belong together are refused") {
  const SmallMnist data;
  SECTION("other numbers of images and labels") {
    data.write("train-labels-idx1-ubyte", idx_bytes({29}, 10));
    data.complains({data.path("train-labels-idx1-ubyte").string(), "29 labels", "30 images",
                    "expected equal numbers", data.fetch()});
  }
  SECTION("a label beyond the classes") {
    Bytes labels = idx_bytes({12}, 10);
    labels[8 + 7] = 10;
    data.write("t10k-labels-idx1-ubyte", labels);
    data.complains({data.path("t10k-labels-idx1-ubyte").string(), "label 7 is 10",
                    "expected 0 to 9", data.fetch()});
  }
  SECTION("other extents for the test") {
    data.write("t10k-images-idx3-ubyte", idx_bytes({12, 3, 4}));
    data.complains({data.path("t10k-images-idx3-ubyte").string(), "(1, 3, 4)", "(1, 4, 3)",
                    "expected equal shapes", data.fetch()});
  }
  SECTION("images and labels swapped") {
    fs::rename(data.path("train-images-idx3-ubyte"), data.path("kept"));
    fs::rename(data.path("train-labels-idx1-ubyte"), data.path("train-images-idx3-ubyte"));
    fs::rename(data.path("kept"), data.path("train-labels-idx1-ubyte"));
    data.complains(
        {data.path("train-images-idx3-ubyte").string(), "holds labels", "swapped", data.fetch()});
  }
  SECTION("nothing left to train on") {
    data.complains({data.path("train-images-idx3-ubyte").string(), "has 30 training samples",
                    "expected at least 31"},
                   30);
  }
  SECTION("a folder in place of a file") {
    fs::remove(data.path("train-images-idx3-ubyte"));
    fs::create_directory(data.path("train-images-idx3-ubyte"));
    data.complains({data.path("train-images-idx3-ubyte").string(), "this is a folder"});
  }
}

TEST_CASE("reading reports its progress over all four files") {
  const SmallMnist data;
  std::int64_t last = 0;
  std::int64_t whole = 0;
  (void)load_mnist(data.folder(), 5, [&](std::int64_t done, std::int64_t total) {
    CHECK(done > last);
    last = done;
    whole = total;
  });
  CHECK(whole == (16 + 360) + (8 + 30) + (16 + 144) + (8 + 12));
  CHECK(last == whole);
}
