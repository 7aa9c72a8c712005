// What tests reach of the simulated CUDA, by dlsym(RTLD_DEFAULT, "cusim_counter") and so on: the
// same test then runs on a real GPU, where the symbols are missing. Names no CUDA type.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The value of a counter; 0 for one that nothing has counted yet. Counted at the call, captured or
/// not, unless stated otherwise:
///   calls             kernels, library calls, collectives and memsets
///   launches, library_calls, memsets
///   memcpys           with h2d_bytes, d2h_bytes, d2d_bytes counted when they execute
///   pageable_copies   asynchronous copies from or to pageable memory
///   graph_launches, graph_instantiates, graph_nodes (executed), kernels_run (executed)
///   mallocs, frees, host_allocs
///   stream_syncs, device_syncs, event_syncs, event_records, event_waits
///   host_functions, graph_uploads
/// The simulated libraries add their own (see there).
uint64_t cusim_counter(const char* name);
void cusim_reset_counters(void);

/// A number with a name, which lives as long as the process.
typedef struct {
  const char* name;
  int64_t value;
} cusim_tally;

/// Replaces the faults to come by `spec`, a list like CUSIM_FAULT:
/// "cudaMalloc@7=2,kernel:adam@2=719" lets the 7th cudaMalloc from now return 2 and the 2nd launch
/// of a kernel with "adam" in its name fail: codes below 100 at the launch, others on the device
/// (sticky). Every function of the simulated libraries that can fail is a point by its name, and
/// every kernel is "kernel:" and its mangled name. A function that gives something back (cudaFree,
/// cudaStreamDestroy, ...) fails after it has done so, like CUDA's, which return the errors of
/// earlier work. Empty: none.
void cusim_set_fault(const char* spec);
/// How many faults have happened since then.
uint64_t cusim_faults_happened(void);

/// The points that were passed and how often since the last cusim_reset_points: fills `out` with up
/// to `room` of them, sorted by name, and returns how many there are. CUSIM_POINTS=FILE writes them
/// when the process ends.
size_t cusim_points(cusim_tally* out, size_t room);
void cusim_reset_points(void);

/// Makes devices work again that have failed. On a real GPU that takes a new process. Nothing may
/// be under way.
void cusim_revive_devices(void);

/// Bytes of cudaMalloc on a device that are not freed.
size_t cusim_live_bytes(int device);

/// What is alive, by kind, as cusim_points: device_bytes, pinned_bytes, streams, events, captures,
/// graphs, graph_executables, cublas_handles, cudnn_handles, cudnn_descriptors,
/// nccl_communicators. A kind that never was is not there.
size_t cusim_ledger(cusim_tally* out, size_t room);

/// One operation that ran on a device, nodes of graphs included.
typedef struct {
  int device;
  uint64_t stream;   ///< the same number for the same stream
  const char* kind;  ///< kernel, library, collective, memset, memcpy, host, event, wait, graph
  const char* name;
  uint64_t begin;  ///< numbers of one sequence over all devices: a.end < b.begin means that a had
  uint64_t end;    ///< ended when b began
} cusim_trace_entry;

/// Forgets the entries so far and records from now on. Recording orders operations in the eyes of
/// ThreadSanitizer.
void cusim_trace_start(void);
void cusim_trace_stop(void);
size_t cusim_trace_size(void);
/// Entry `index` in the order in which operations ended; its texts live until the next
/// cusim_trace_start. Returns 0 when there is no such entry.
int cusim_trace_get(size_t index, cusim_trace_entry* entry);

#ifdef __cplusplus
}
#endif
