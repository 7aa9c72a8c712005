// The gradients of convolution + max-pooling, visiting winning places only.
//
// Every window has one winning place for each sample, so samples are taken one by one:
//
//   1. The windows of kLanes samples become lists, one for each sample and output: the gradient,
//      and where the winning place's patch of x begins. After ReLU gradients of 0 are left out:
//      those that it has cut off cost nothing.
//   2. x is transposed to [sample][row][column, channel], so that a row of the kernel, all columns
//      and channels of it, is one piece of memory:
//
//         x, one sample       the patch of one window
//        .................      s=0   s=1   s=2
//        .................     +-----+-----+-----+
//        ....[====].......  r=0| c.. | c.. | c.. |  a few vectors, whatever the channels
//        ....[====].......  r=1|     |     |     |
//        ....[====].......  r=2|     |     |     |
//                              +-----+-----+-----+
//   3. For each output dw's patch, in registers, runs over the list and adds gradient * patch of x;
//      then for each the patch of weights runs over it and adds gradient * weights to the patch of
//      dx. dx is transposed back.
//
// Channels are taken in chunks of a vector's width, which keeps a sample's x and dx of a chunk in
// the first-level cache. A patch row that is no whole number of vectors reads on into what follows
// it: sums of those lanes are never looked at, weights there are 0. (So a gradient that is not
// finite may make NaN of places of dx beside its patch.)
//
// Two windows side by side touch the same places of dx, and an addition to memory waits for the one
// before: lists go through every `interleave`-th window of a row, so that neighbours are apart.
#include "lockstep/kernels/cpu/conv_pool.h"
#include "lockstep/kernels/cpu/sample_chunks.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {
namespace {

template <class V>
LOCKSTEP_INLINE V load_as(const float* from) {
  V value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

template <class V>
LOCKSTEP_INLINE void store_as(float* to, V value) {
  __builtin_memcpy(to, &value, sizeof value);
}

/// A window's gradient for one sample, and where its winning patch begins in x, in floats.
struct Winner {
  float gradient;
  std::int32_t patch;
};

/// Registers for a patch, beside the gradient and what is in between.
constexpr int kMostVectors = 12;
/// Vectors of a row of the kernel: 5 columns of a vector's channels.
constexpr int kMostInRow = 5;

/// One gradient of one sample and chunk of channels: the winners of all outputs, x or dx, and of
/// some rows of the kernel what is packed, sums or weights.
struct Task {
  const Winner* winners;
  const std::int32_t* list_end;  ///< (outputs)
  Index outputs;
  float* image;
  float* packed;
  Index image_row, packed_row, packed_output;
};

// These two are functions of their own so that the loops have all registers to themselves.
template <class V, int rows, int vectors>
[[gnu::noinline]] void add_to_sums(const Task& task) {
  const Index step = task.image_row;
  const float* x = task.image;
  const Winner* winner = task.winners;
  for (Index k = 0; k < task.outputs; ++k) {
    float* sums = task.packed + k * task.packed_output;
    V total[rows][vectors];
    for (int r = 0; r < rows; ++r) {
      for (int v = 0; v < vectors; ++v)
        total[r][v] = load_as<V>(sums + r * task.packed_row + v * kWidth<V>);
    }
    const Winner* const end = task.winners + task.list_end[k];
    for (; winner != end; ++winner) {
      const float* row = x + winner->patch;
      const V gradient = winner->gradient - V{};
#pragma GCC unroll 12
      for (int r = 0; r < rows; ++r, row += step) {
#pragma GCC unroll 12
        for (int v = 0; v < vectors; ++v) total[r][v] += gradient * load_as<V>(row + v * kWidth<V>);
      }
    }
    for (int r = 0; r < rows; ++r) {
      for (int v = 0; v < vectors; ++v)
        store_as(sums + r * task.packed_row + v * kWidth<V>, total[r][v]);
    }
  }
}

template <class V, int rows, int vectors>
[[gnu::noinline]] void add_to_data(const Task& task) {
  const Index step = task.image_row;
  float* dx = task.image;
  const Winner* winner = task.winners;
  for (Index k = 0; k < task.outputs; ++k) {
    const float* weights = task.packed + k * task.packed_output;
    V weight[rows][vectors];
    for (int r = 0; r < rows; ++r) {
      for (int v = 0; v < vectors; ++v)
        weight[r][v] = load_as<V>(weights + r * task.packed_row + v * kWidth<V>);
    }
    const Winner* const end = task.winners + task.list_end[k];
    for (; winner != end; ++winner) {
      float* row = dx + winner->patch;
      const V gradient = winner->gradient - V{};
#pragma GCC unroll 12
      for (int r = 0; r < rows; ++r, row += step) {
#pragma GCC unroll 12
        for (int v = 0; v < vectors; ++v) {
          float* to = row + v * kWidth<V>;
          store_as(to, load_as<V>(to) + gradient * weight[r][v]);
        }
      }
    }
  }
}

enum class Gradient { weights, data };

template <class V, Gradient of, int vectors, int rows>
void run_rows(Index wanted, const Task& task) {
  if constexpr (rows > 1) {
    if (wanted < rows) return run_rows<V, of, vectors, rows - 1>(wanted, task);
  }
  if constexpr (of == Gradient::weights) {
    add_to_sums<V, rows, vectors>(task);
  } else {
    add_to_data<V, rows, vectors>(task);
  }
}

/// All rows of the kernel, as many at once as fit the registers; a row has `wanted` vectors.
template <class V, Gradient of, int vectors = kMostInRow>
void run_kernel(Index wanted, Index rows, Task task) {
  if constexpr (vectors > 1) {
    if (wanted < vectors) return run_kernel<V, of, vectors - 1>(wanted, rows, task);
  }
  constexpr int kFit = kMostVectors / vectors;
  constexpr int kRows = kFit < 5 ? kFit : 5;
  while (rows > 0) {
    const Index here = smaller(rows, kRows);
    run_rows<V, of, vectors, kRows>(here, task);
    task.image += here * task.image_row;
    task.packed += here * task.packed_row;
    rows -= here;
  }
}

/// The parts of the workspace.
struct SparseSpace {
  Winner* winners;         ///< [samples][list]
  std::int32_t* list_end;  ///< [samples][outputs]
  Index* element;          ///< (elements of a row) where they lie in N16
  float* x;                ///< [samples][chunk]
  float* dx;
  float* weights;  ///< [chunks][outputs][rows of the kernel][packed_row]
  float* sums;
};

/// Where the parts behind the winners begin, in bytes, and in the end their size.
struct SparseSizes {
  Index list_end, element, x, dx, weights, sums, end;
};

SparseSizes sparse_sizes(const WindowGeometry& conv, const WindowGeometry& pool) {
  const Chunk chunk = chunk_at(conv, 0);
  const Index image = whole_lines(kLanes * chunk.sample * 4);
  const Index patches = conv.k * conv.kernel_h * chunk.packed_row;
  SparseSizes at{};
  at.list_end = whole_lines(kLanes * conv.k * pool.p * pool.q * Index{sizeof(Winner)});
  at.element = at.list_end + whole_lines(kLanes * conv.k * 4);
  at.x = at.element + whole_lines(conv.w * chunk.count * Index{sizeof(Index)});
  at.dx = at.x + image;
  at.weights = at.dx + image;
  const Index all_patches = whole_lines((conv.c + chunk.count - 1) / chunk.count * patches * 4);
  at.sums = at.weights + all_patches;
  at.end = at.sums + all_patches;
  return at;
}

SparseSpace split(const SparseSizes& at, void* workspace) {
  auto* bytes = static_cast<unsigned char*>(workspace);
  return {reinterpret_cast<Winner*>(bytes),
          reinterpret_cast<std::int32_t*>(bytes + at.list_end),
          reinterpret_cast<Index*>(bytes + at.element),
          reinterpret_cast<float*>(bytes + at.x),
          reinterpret_cast<float*>(bytes + at.dx),
          reinterpret_cast<float*>(bytes + at.weights),
          reinterpret_cast<float*>(bytes + at.sums)};
}

/// Winners of one window for kLanes samples, whose patches begin at `patch`.
LOCKSTEP_INLINE void pair_up(Floats gradient, Ints patch, Winner (&winners)[kLanes]) {
  const auto bits = reinterpret_cast<Floats>(patch);
  const Floats pairs[2] = {interleave_low(gradient, bits, AllLanes{}),
                           interleave_high(gradient, bits, AllLanes{})};
  __builtin_memcpy(winners, pairs, sizeof winners);
}

/// The lists of kLanes samples for the chunk of the first channels, and the gradients of the bias.
/// `at` is the number of the first sample's value in y.
void list_winners(const ConvPoolGradients& all, Index at, bool add_bias, const SparseSpace& space) {
  const WindowGeometry& conv = all.conv;
  const WindowGeometry& pool = all.pool;
  const Chunk chunk = chunk_at(conv, 0);
  const Index row_step = conv.stride_h * chunk.row;
  const Index column_step = conv.stride_w * chunk.count;
  const Index list = conv.k * pool.p * pool.q;
  const Index patch_columns = conv.kernel_w + (pool.kernel_w - 1) * conv.stride_w;
  const Index step = pool.stride_w * conv.stride_w;
  const Index interleave = (patch_columns + step - 1) / step;
  const int places = static_cast<int>(pool.kernel_h * pool.kernel_w);
  std::int32_t offset[9];  // of a place's patch from that of place 0; windows are 3 x 3 at most
  for (int i = 0; i < places; ++i) {
    offset[i] =
        static_cast<std::int32_t>(i / pool.kernel_w * row_step + i % pool.kernel_w * column_step);
  }
  Index listed = 0;
  Winner* cursor[kLanes];
  for (Index n = 0; n < kLanes; ++n) cursor[n] = space.winners + n * list;
  for (Index k = 0; k < conv.k; ++k) {
    Floats bias{};
    for (Index p = 0; p < pool.p; ++p) {
      for (Index start = 0; start < interleave; ++start) {
        for (Index q = start; q < pool.q; q += interleave) {
          const Index here = at + ((k * pool.p + p) * pool.q + q) * kGroup;
          const Floats gradient = window_gradient(all.dy + here, all.y + here, all.relu);
          bias += gradient;
          const Index window = p * pool.stride_h * row_step + q * pool.stride_w * column_step;
          const Ints place = load_bytes(all.argmax + here);
          Ints patch = Ints{} + static_cast<std::int32_t>(window);
          for (int i = 1; i < places; ++i) patch += select(place == i, Ints{} + offset[i], Ints{});
          Winner winners[kLanes];
          pair_up(gradient, patch, winners);
          if (all.relu) {
            for (Index n = 0; n < kLanes; ++n) {
              *cursor[n] = winners[n];
              cursor[n] += winners[n].gradient != 0;
            }
          } else {
            for (Index n = 0; n < kLanes; ++n) space.winners[n * list + listed] = winners[n];
            ++listed;
          }
        }
      }
    }
    for (Index n = 0; n < kLanes; ++n) {
      const Index end = all.relu ? cursor[n] - (space.winners + n * list) : listed;
      space.list_end[n * conv.k + k] = static_cast<std::int32_t>(end);
    }
    if (all.db) all.db[k] = add_bias ? all.db[k] + sum_lanes(bias) : sum_lanes(bias);
  }
}

template <Gradient of>
void run_sample(const WindowGeometry& conv, const Chunk& chunk, const Winner* winners,
                const std::int32_t* list_end, float* image, float* packed) {
  const Task task{.winners = winners,
                  .list_end = list_end,
                  .outputs = conv.k,
                  .image = image,
                  .packed = packed,
                  .image_row = chunk.row,
                  .packed_row = chunk.packed_row,
                  .packed_output = conv.kernel_h * chunk.packed_row};
  if (chunk_width(conv) == kWidth<Floats>) {
    run_kernel<Floats, of>(chunk.vectors, conv.kernel_h, task);
  } else {
    run_kernel<HalfFloats, of>(chunk.vectors, conv.kernel_h, task);
  }
}

/// A place is as many floats as a chunk has channels: turns lists for chunks of `from` into lists
/// for `to` channels.
void scale_lists(const WindowGeometry& conv, Index list, Index from, Index to,
                 const SparseSpace& space) {
  for (Index n = 0; n < kLanes; ++n) {
    Winner* winners = space.winners + n * list;
    Winner* end = winners + space.list_end[n * conv.k + conv.k - 1];
    for (; winners != end; ++winners)
      winners->patch = static_cast<std::int32_t>(winners->patch / from * to);
  }
}

}  // namespace

std::size_t conv_pool_sparse_bytes(const WindowGeometry& conv, const WindowGeometry& pool) {
  return static_cast<std::size_t>(sparse_sizes(conv, pool).end);
}

void conv_pool_backward_sparse(const ConvPoolGradients& all, void* workspace) {
  const WindowGeometry& conv = all.conv;
  const WindowGeometry& pool = all.pool;
  const SparseSpace space = split(sparse_sizes(conv, pool), workspace);
  const Index patches = conv.k * conv.kernel_h * chunk_at(conv, 0).packed_row;
  const Index chunks = (conv.c + chunk_width(conv) - 1) / chunk_width(conv);
  const Index list = conv.k * pool.p * pool.q;
  const Index scale = chunk_at(conv, 0).count;
  zero(space.sums, chunks * patches);
  for (Index number = 0; all.dx && number < chunks; ++number) {
    pack_weights(conv, chunk_at(conv, number * chunk_width(conv)), all.w,
                 space.weights + number * patches);
  }
  for (Index group = 0; group < conv.groups; ++group) {
    for (Index part = 0; part < kGroup; part += kLanes) {
      list_winners(all, group * list * kGroup + part, all.accumulate || group > 0 || part > 0,
                   space);
      const Index image = group * conv.c * conv.h * conv.w * kGroup + part;
      const bool first = group == 0 && part == 0;
      for (Index number = 0; number < chunks; ++number) {
        const Chunk chunk = chunk_at(conv, number * chunk_width(conv));
        if (chunk.count != scale) scale_lists(conv, list, scale, chunk.count, space);
        // All of x but the border is overwritten: one chunk after itself finds it as it was.
        if (first || chunks > 1) {
          zero(space.x, kLanes * chunk.sample);
          list_row(conv, chunk, space.element);
        }
        to_samples(conv, chunk, space.element, all.x + image, space.x);
        if (all.dx) zero(space.dx, kLanes * chunk.sample);
        for (Index n = 0; n < kLanes; ++n) {
          const Winner* winners = space.winners + n * list;
          const std::int32_t* ends = space.list_end + n * conv.k;
          run_sample<Gradient::weights>(conv, chunk, winners, ends, space.x + n * chunk.sample,
                                        space.sums + number * patches);
          if (all.dx == nullptr) continue;
          run_sample<Gradient::data>(conv, chunk, winners, ends, space.dx + n * chunk.sample,
                                     space.weights + number * patches);
        }
        if (all.dx) from_samples(conv, chunk, space.element, space.dx, all.dx + image);
      }
    }
  }
  for (Index number = 0; number < chunks; ++number) {
    unpack_sums(conv, chunk_at(conv, number * chunk_width(conv)), space.sums + number * patches,
                all.dw, all.accumulate);
  }
}

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
