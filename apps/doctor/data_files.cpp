// doctor: are the files of a data set those that everybody has?
#include <array>
#include <span>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/sha256.h"
#include "lockstep/data/mnist.h"

#include "apps/doctor/checks.h"
#include "apps/setup.h"

namespace lockstep::apps {

namespace {

using Digests = std::array<const char*, 4>;
constexpr Digests kMnist = {"ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
                            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
                            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
                            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"};
constexpr Digests kFashion = {"c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
                              "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
                              "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
                              "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"};

/// The digest of the raw IDX file that `path` is, or is packed with gzip.
std::string digest_of(const std::filesystem::path& path, int rank) {
  const IdxFile file = read_idx(path, rank);
  std::vector<std::uint8_t> header{0, 0, 0x08, static_cast<std::uint8_t>(rank)};
  for (int axis = 0; axis < rank; ++axis) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      header.push_back(static_cast<std::uint8_t>(file.shape[axis] >> shift));
    }
  }
  Sha256 digest;
  digest.add(std::span<const std::uint8_t>(header));
  digest.add(std::span<const std::uint8_t>(file.values));
  return digest.finish();
}

}  // namespace

const Digests& known_digests(const std::string& dataset) {
  return dataset == "fashion-mnist" ? kFashion : kMnist;
}

Finding check_data(const DataOptions& data) {
  Finding finding{.check = "data", .code = ExitCode::data};
  finding.details["dataset"] = data.dataset;
  if (data.dataset == "synthetic") {
    finding.text = "synthetic digits are drawn, no files are needed";
    return finding;
  }
  const bool fashion = data.dataset == "fashion-mnist";
  const Digests& known = known_digests(data.dataset);
  const std::filesystem::path folder = data_folder(data);
  finding.details["folder"] = folder.string();
  try {
    const std::array<std::filesystem::path, 4> paths = find_mnist(folder);
    for (std::size_t i = 0; i < paths.size(); ++i) {
      const std::string digest = digest_of(paths[i], i % 2 == 0 ? 3 : 1);
      finding.details["files"].push_back({{"path", paths[i].string()}, {"sha256", digest}});
      if (digest == known[i]) continue;
      finding.verdict = Verdict::fail;
      finding.text = message(paths[i].string(), ": SHA-256 ", digest, ", expected ", known[i]);
      finding.remedy = message("delete it and fetch it again: scripts/fetch_mnist.sh ",
                               fashion ? "--fashion " : "", folder.string(),
                               "; a data set of your own is told apart by nothing but this");
      return finding;
    }
    finding.text = message(folder.string(), ": all four files are those of ",
                           fashion ? "Fashion-MNIST" : "MNIST", " (SHA-256)");
  } catch (const DataError& error) {
    finding.verdict = Verdict::fail;
    finding.text = error.what();
    finding.remedy = message("scripts/fetch_mnist.sh ", fashion ? "--fashion " : "",
                             folder.string(), ", or --dataset synthetic, which needs no files");
  }
  return finding;
}

}  // namespace lockstep::apps
