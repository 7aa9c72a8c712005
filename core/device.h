// What a replica runs on, and how a user names it.
#pragma once

#include <cstddef>
#include <new>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

enum class DeviceKind { cpu, cuda };

/// A CUDA GPU, or one CPU core's worth of work. CPU indices only number replicas; they pin nothing.
struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;

  friend bool operator==(const Device&, const Device&) = default;
  /// "cpu:3" or "cuda:0".
  [[nodiscard]] std::string to_string() const;
};

/// What a device is, for people.
struct DeviceInfo {
  std::string name{};        ///< "NVIDIA H200"
  std::string pci{};         ///< "0000:65:00.0"
  std::string uuid{};        ///< "GPU-..."
  int capability_major = 0;  ///< 9 of sm_90
  int capability_minor = 0;
  std::size_t memory = 0;  ///< bytes in all

  /// "NVIDIA H200, sm_90, 141 GB, PCI 0000:65:00.0, GPU-..."
  [[nodiscard]] std::string to_string() const;
};

/// Throws DeviceError when there is no such CUDA device, UsageError for a CPU.
[[nodiscard]] DeviceInfo device_info(Device device);

/// Why this process can use no GPU, as a clause: "there is no NVIDIA driver". Empty when it can.
[[nodiscard]] std::string why_no_gpu();

/// Makes a CUDA device the calling thread's current one and puts the old one back at the end of the
/// scope, so that nobody who calls the library finds another device than before. Does nothing for a
/// CPU.
class CurrentDevice {
 public:
  explicit CurrentDevice(Device device);
  /// For destructors: where that fails the device stays what it was, and UnheardErrors is told.
  CurrentDevice(Device device, std::nothrow_t) noexcept;
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  void enter(Device device);

  int before_ = -1;  ///< the index to go back to; -1: nothing was changed
};

/// Devices a World may use, in rank order.
struct Devices {
  std::vector<Device> list{};
  /// The user named no number: training takes the largest legal number of replicas from the list
  /// (design: at least 16 samples of a batch each on a CPU). Otherwise it uses exactly the list.
  bool automatic = false;
  /// One line for the user when `auto` fell back to the CPU or left a GPU out; empty otherwise.
  std::string notice{};
};

/// Every usable GPU, else every allowed core; what `--devices auto` means.
[[nodiscard]] Devices available_devices();

/// Parses `auto | cpu | cpu:COUNT | cuda | cuda:0,2 | cuda:0-3`. Throws UsageError for anything
/// else and DeviceError where CUDA is asked for and cannot be had.
[[nodiscard]] Devices parse_devices(std::string_view text);

/// Cores this process may keep busy: the affinity mask, cut down to the cgroup's CPU quota. At
/// least 1.
[[nodiscard]] int allowed_cores();

/// CPU instruction sets that kernels are compiled for, slowest first.
enum class CpuSet { baseline, avx2, avx512 };

/// "baseline", "avx2" or "avx512".
[[nodiscard]] std::string_view name_of(CpuSet set);

/// The sets this build has and this processor runs, slowest first.
[[nodiscard]] std::vector<CpuSet> supported_cpu_sets();

/// The fastest supported set, or the one that the environment variable LOCKSTEP_CPU_ISA names.
/// Throws UsageError when that is no set, or one that this processor does not run.
[[nodiscard]] CpuSet preferred_cpu_set();

}  // namespace lockstep
