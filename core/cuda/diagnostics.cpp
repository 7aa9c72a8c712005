// Versions, states, and whether data survives the way from one GPU to another.
#include <chrono>
#include <cstdint>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "lockstep/core/buffer.h"
#include "lockstep/core/context.h"
#include "lockstep/core/cuda/backend.h"
#include "lockstep/core/cuda/runtime.h"
#include "lockstep/core/error.h"
#include "lockstep/core/stream.h"

namespace lockstep::cuda {
namespace {

constexpr std::size_t kPatternBytes = std::size_t{1} << 20;
constexpr std::chrono::seconds kPatience{10};

/// Lets `device` reach the memory of `peer` for the scope.
class PeerAccess {
 public:
  PeerAccess(Device device, Device peer) : device_(device), peer_(peer) {
    const CurrentDevice current(device);
    const cudaError_t status = cudaDeviceEnablePeerAccess(peer.index, 0);
    if (status == cudaErrorPeerAccessAlreadyEnabled) {
      static_cast<void>(cudaGetLastError());
      return;
    }
    check(status,
          message("peer access from ", device.to_string(), " to ", peer.to_string()).c_str());
    ours_ = true;
  }
  ~PeerAccess() {
    if (!ours_) return;
    const CurrentDevice current(device_, std::nothrow);
    static_cast<void>(cudaDeviceDisablePeerAccess(peer_.index));
  }
  PeerAccess(const PeerAccess&) = delete;
  PeerAccess& operator=(const PeerAccess&) = delete;

 private:
  Device device_;
  Device peer_;
  bool ours_ = false;
};

/// Bytes that are wrong when any of them is lost, shifted or taken from somewhere else.
std::vector<std::uint32_t> pattern() {
  std::vector<std::uint32_t> words(kPatternBytes / sizeof(std::uint32_t));
  std::uint32_t state = 0x9E3779B9;
  for (std::uint32_t& word : words) {
    state ^= state << 13U;
    state ^= state >> 17U;
    state ^= state << 5U;
    word = state;
  }
  return words;
}

/// What a copy needs on its two devices.
struct Ends {
  Ends(Device from, Device to, bool direct)
      : access(direct ? std::make_unique<PeerAccess>(from, to) : nullptr),
        context(from),
        done(from),
        here(from, kPatternBytes, "a test of copies"),
        there(to, kPatternBytes, "a test of copies") {}

  std::unique_ptr<PeerAccess> access;
  Context context;
  Event done;
  Buffer here;
  Buffer there;
};

void upload(const Ends& ends, const std::vector<std::uint32_t>& words) {
  ends.context.copy_to_device(ends.here.data(), words.data(), kPatternBytes);
  ends.context.synchronize();
}

/// False when the copy is not done in time.
bool copy_between(const Ends& ends, const Buffer& to, const Buffer& from) {
  check(cudaMemcpyAsync(to.data(), from.data(), kPatternBytes, cudaMemcpyDefault,
                        stream_of(ends.context)),
        "a copy between two GPUs");
  ends.done.record(ends.context);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!ends.done.reached()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

/// Sends `words` there and back; false when that is not done in time.
bool send_and_return(const Ends& ends, std::vector<std::uint32_t>& words) {
  const CurrentDevice current(ends.context.device());
  upload(ends, words);
  if (!copy_between(ends, ends.there, ends.here)) return false;
  upload(ends, std::vector<std::uint32_t>(words.size()));  // what is compared has made the way
  if (!copy_between(ends, ends.here, ends.there)) return false;
  ends.context.copy_to_host(words.data(), ends.here.data(), kPatternBytes);
  ends.context.synchronize();
  return true;
}

}  // namespace

LibraryVersion runtime_library() {
  int loaded = 0;
  check(cudaRuntimeGetVersion(&loaded), "cudaRuntimeGetVersion");
  return {.name = "CUDA runtime",
          .built = version_text(CUDART_VERSION),
          .loaded = version_text(loaded),
          .files = mapped_files("libcudart")};
}

std::string driver_version() {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) return {};
  return version_text(driver);
}

DeviceState query_state(Device device) {
  int mode = 0;
  check(cudaDeviceGetAttribute(&mode, cudaDevAttrComputeMode, device.index),
        "cudaDeviceGetAttribute");
  if (mode == cudaComputeModeProhibited) return {.mode = ComputeMode::prohibited};
  return {.free = free_bytes(device),
          .mode = mode == cudaComputeModeDefault ? ComputeMode::shared : ComputeMode::exclusive};
}

PeerCopy check_peer_copy(Device from, Device to) {
  PeerCopy result;
  try {
    int reached = 0;
    check(cudaDeviceCanAccessPeer(&reached, from.index, to.index), "cudaDeviceCanAccessPeer");
    result.direct = reached != 0;
    const std::vector<std::uint32_t> sent = pattern();
    std::vector<std::uint32_t> words = sent;
    auto ends = std::make_unique<Ends>(from, to, result.direct);
    if (!send_and_return(*ends, words)) {
      static_cast<void>(ends.release());  // freeing what a copy still uses would wait for it
      result.flaw = message("a copy was not done within ", kPatience.count(), " s");
    } else if (words != sent) {
      result.flaw = "the data came back changed";
    }
  } catch (const Error& error) {
    result.flaw = error.what();
  }
  return result;
}

}  // namespace lockstep::cuda
