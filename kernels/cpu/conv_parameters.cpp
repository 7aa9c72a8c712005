// Convolution's gradients of weights and bias on groups of 16 samples.
//
//   dw(k, c, r, s) = sum over samples and positions of dy(k, p, q) * x(c, y(p, r), x(q, s))
//
//             taps (c, s) of a kernel row
//             t0    t1    t2          A tile keeps outputs x taps sums in registers while it runs
//         k0  +=    +=    +=          over some rows of positions: so many that the rows of dy and
//   out-  k1  +=    +=    +=          x stay in a near cache for all taps. In between the sums
//   puts  k2  +=    +=    +=          wait in memory, a vector each: lanes are samples and stay
//         k3  +=    +=    +=          apart until the end.
//
// Rows of positions whose x lies beyond the edge for a kernel row are left out. Columns beyond it
// are zeros of a copy of x, where there are any: summed apart, down the image, they are a gain with
// 32 registers and a loss with 16. With 32 registers all rows of a small kernel on few channels are
// summed together; then rows beyond the edge are zeros of the copy too. The bias gradient rides
// along with some taps that meet every position. The order of all sums is fixed by shapes alone.
#include "lockstep/kernels/cpu/conv_parameters.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {
namespace {

constexpr int kTileOutputs = kLanes == 16 ? 6 : 4;

/// The most taps of a tile. A tile of six outputs by three taps is slower than one of four by six.
constexpr int tile_taps(int outputs) {
  return kLanes == 16 ? (outputs > 4 ? 4 : 6) : kLanes == 8 ? 3 : 2;
}

/// The same with sums of the bias gradient.
constexpr int bias_taps(int outputs) {
  return tile_taps(outputs) - 1;
}

/// What the rows of positions may fill. The larger tile asks the cache for 10 vectors in 24
/// multiply-adds, which the second level gives too (cores with AVX-512 have 512 KiB of it or more):
/// there longer runs are worth more.
constexpr Index kRowFloats = (kLanes == 16 ? 72 : 24) * 1024 / 4;
constexpr Index kUsualOutputs = 4;

/// Rows of positions, and how far apart places are in x and dy, in floats.
struct Positions {
  Index rows, columns;
  Index x_row, x_column;
  Index dy_channel, dy_row;
};

/// Sums in memory, a vector each: [outputs][all taps of a filter], and of the bias [outputs].
struct Sums {
  float* weights;
  float* bias;   ///< null: not now
  Index filter;  ///< floats from one output to the next in `weights`
  bool begun;    ///< add to them; else overwrite them
};

/// Taps that are summed together: where each reads x, and where its sum waits, in floats.
struct Taps {
  const Index* x;
  const Index* sum;
};

/// `dense`: x is read without gaps. Then a position's vectors of samples follow each other, so that
/// lines of memory are read whole; else one vector of all positions follows the other.
template <bool dense, int outputs, int width, bool with_bias>
void tile(const Positions& some, const float* x, const float* dy, const Taps& taps,
          const Sums& sums) {
  Index offset[width];
  Index place[width];
#pragma GCC unroll 8
  for (int t = 0; t < width; ++t) {
    offset[t] = taps.x[t];
    place[t] = taps.sum[t];
  }
  Floats total[outputs][width] = {};
  Floats bias[outputs] = {};
  if (sums.begun) {
#pragma GCC unroll 8
    for (int i = 0; i < outputs; ++i) {
#pragma GCC unroll 8
      for (int t = 0; t < width; ++t) total[i][t] = load(sums.weights + i * sums.filter + place[t]);
      if (with_bias) bias[i] = load(sums.bias + i * kLanes);
    }
  }
  // Loops that run at least once, so that the sums never leave the registers.
  constexpr int kVectors = dense ? kParts : 1;
  int part = 0;
  do {
    const float* x_row = x + part * kLanes;
    const float* dy_row = dy + part * kLanes;
    Index rows = some.rows;
    do {
      const float* x_at = x_row;
      const float* dy_at = dy_row;
      Index columns = some.columns * kVectors;
      do {
        Floats gradient[outputs];
#pragma GCC unroll 8
        for (int i = 0; i < outputs; ++i) {
          gradient[i] = load(dy_at + i * some.dy_channel);
          if (with_bias) bias[i] += gradient[i];
        }
#pragma GCC unroll 8
        for (int t = 0; t < width; ++t) {
          const Floats value = load(x_at + offset[t]);
#pragma GCC unroll 8
          for (int i = 0; i < outputs; ++i) total[i][t] += gradient[i] * value;
        }
        x_at += dense ? kLanes : some.x_column;
        dy_at += dense ? kLanes : kGroup;
      } while (--columns > 0);
      x_row += some.x_row;
      dy_row += some.dy_row;
    } while (--rows > 0);
    part += kVectors;
  } while (part < kParts);
  float* filter = sums.weights;
  const Index next_filter = sums.filter;
#pragma GCC unroll 8
  for (int i = 0; i < outputs; ++i, filter += next_filter) {
#pragma GCC unroll 8
    for (int t = 0; t < width; ++t) store(filter + place[t], total[i][t]);
    if (with_bias) store(sums.bias + i * kLanes, bias[i]);
  }
}

template <bool dense, int outputs, bool with_bias,
          int width = with_bias ? bias_taps(outputs) : tile_taps(outputs)>
void tile_of_taps(Index wanted, const Positions& some, const float* x, const float* dy,
                  const Taps& taps, const Sums& sums) {
  if constexpr (width > 1) {
    if (wanted < width)
      return tile_of_taps<dense, outputs, with_bias, width - 1>(wanted, some, x, dy, taps, sums);
  }
  tile<dense, outputs, width, with_bias>(some, x, dy, taps, sums);
}

/// `count` taps of 1 to kTileOutputs output channels, in tiles of nearly equal widths.
template <bool dense, int outputs = kTileOutputs>
void all_taps(Index wanted, const Positions& some, const float* x, const float* dy, Index count,
              Taps taps, const Sums& sums) {
  if constexpr (outputs > 1) {
    if (wanted < outputs)
      return all_taps<dense, outputs - 1>(wanted, some, x, dy, count, taps, sums);
  }
  if (sums.bias) {
    const Index width = smaller(count, bias_taps(outputs));
    tile_of_taps<dense, outputs, true>(width, some, x, dy, taps, sums);
    taps = {taps.x + width, taps.sum + width};
    count -= width;
  }
  constexpr int kTaps = tile_taps(outputs);
  for (Index tiles = (count + kTaps - 1) / kTaps; tiles > 0; --tiles) {
    const Index width = (count + tiles - 1) / tiles;
    tile_of_taps<dense, outputs, false>(width, some, x, dy, taps, sums);
    taps = {taps.x + width, taps.sum + width};
    count -= width;
  }
}

/// Outputs of the tile that begins at `first`: with few registers tiles are of nearly equal sizes.
Index outputs_at(Index outputs, Index first) {
  const Index left = outputs - first;
  if (kLanes == 16) return left == 5 || left == 6 ? left : smaller(left, kUsualOutputs);
  const Index tiles = (left + kTileOutputs - 1) / kTileOutputs;
  return (left + tiles - 1) / tiles;
}

/// Kernel rows whose taps are summed together: one, or with 32 registers all of a small kernel on
/// few channels. A row of it has too few taps for whole tiles, and every pass reads all of dy. Then
/// the copy of x has zeros in the rows beyond the edge too.
Index kernel_rows_at_once(const WindowGeometry& g) {
  return kLanes == 16 && g.kernel_w <= 3 && g.c <= 3 ? g.kernel_h : 1;
}

/// Rows of positions [first, end) for which a kernel row is inside the image.
struct Rows {
  Index first, end;
};

Rows rows_inside(const WindowGeometry& g, Index r) {
  if (kernel_rows_at_once(g) > 1) return {0, g.p};
  const auto from = [&](Index x_row) {  // the first position that reads this row or a later one
    return at_least_zero((x_row + g.pad_top - r + g.stride_h - 1) / g.stride_h);
  };
  const Index first = g.pad_top < r ? 0 : from(0);
  const Index end = g.h + g.pad_top < r ? 0 : smaller(g.p, from(g.h));
  return {first, larger(first, end)};
}

/// The kernel row whose taps meet all positions, or the number of rows if none do.
Index row_of_all_positions(const WindowGeometry& g) {
  for (Index r = 0; r < g.kernel_h; ++r) {
    const Rows inside = rows_inside(g, r);
    if (inside.first == 0 && inside.end == g.p) return r;
  }
  return g.kernel_h;
}

/// x of a group with the columns that windows reach beyond it, and the rows that kernel rows summed
/// together do. Distances are in floats.
struct Image {
  Index left, columns;
  Index above, rows;
  Index row, channel;
};

Image image_of(const WindowGeometry& g) {
  const bool all_rows = kernel_rows_at_once(g) > 1;
  const Index above = all_rows ? g.pad_top : 0;
  const Index rows = all_rows ? larger(above + g.h, (g.p - 1) * g.stride_h + g.kernel_h) : g.h;
  const Index columns = larger(g.pad_left + g.w, (g.q - 1) * g.stride_w + g.kernel_w);
  return {g.pad_left, columns, above, rows, columns * kGroup, rows * columns * kGroup};
}

/// Copies x with zeros around it.
void copy_image(const WindowGeometry& g, const Image& image, const float* x, float* to) {
  const Index after = image.columns - image.left - g.w;
  for (Index c = 0; c < g.c; ++c) {
    zero(to, image.above * image.row);
    float* row = to + image.above * image.row;
    for (Index h = 0; h < g.h; ++h, x += g.w * kGroup, row += image.row) {
      zero(row, image.left * kGroup);
      float* inside = row + image.left * kGroup;
      __builtin_memcpy(inside, x, sizeof(float) * static_cast<std::size_t>(g.w * kGroup));
      zero(inside + g.w * kGroup, after * kGroup);
    }
    zero(row, (image.rows - image.above - g.h) * image.row);
    to += image.channel;
  }
}

/// The bias gradient by itself.
void sum_positions(Index outputs, Index channel, const float* dy, float* bias, bool begun) {
  for (Index k = 0; k < outputs; ++k) {
    Floats total = begun ? load(bias + k * kLanes) : Floats{};
    for (Index i = 0; i < channel; i += kLanes) total += load(dy + k * channel + i);
    store(bias + k * kLanes, total);
  }
}

/// The parts of the workspace.
struct Space {
  Index* x_at;     ///< where the taps that are summed together read x
  Index* sum_at;   ///< and where their sums wait
  float* weights;  ///< [outputs][taps][lanes]
  float* bias;     ///< [outputs][lanes]
  float* image;
};

Index taps_at_once(const WindowGeometry& g) {
  return kernel_rows_at_once(g) * g.c * g.kernel_w;
}

Index table_bytes(const WindowGeometry& g) {
  return whole_lines(Index{sizeof(Index)} * 2 * taps_at_once(g));
}

Index vectors(const WindowGeometry& g) {
  return g.k * (g.c * g.kernel_h * g.kernel_w + 1);
}

Space split(const WindowGeometry& g, void* workspace) {
  auto* table = static_cast<Index*>(workspace);
  auto* sums = reinterpret_cast<float*>(static_cast<unsigned char*>(workspace) + table_bytes(g));
  float* bias = sums + (vectors(g) - g.k) * kLanes;
  return {table, table + taps_at_once(g), sums, bias, bias + g.k * kLanes};
}

void tabulate(const WindowGeometry& g, const Image& image, const Space& space) {
  for (Index r = 0, t = 0; r < kernel_rows_at_once(g); ++r) {
    for (Index c = 0; c < g.c; ++c) {
      for (Index s = 0; s < g.kernel_w; ++s, ++t) {
        space.x_at[t] = c * image.channel + r * image.row + s * kGroup;
        space.sum_at[t] = ((c * g.kernel_h + r) * g.kernel_w + s) * kLanes;
      }
    }
  }
}

}  // namespace

void sum_vectors(Index count, const float* vectors, float* to, bool add) {
  for (Index first = 0; first < count; first += kLanes) {
    const Index here = smaller(kLanes, count - first);
    Floats v[kLanes];
    for (Index i = 0; i < kLanes; ++i)
      v[i] = i < here ? load(vectors + (first + i) * kLanes) : Floats{};
    float sums[kLanes];
    store(sums, sum_each(v));
    for (Index i = 0; i < here; ++i) to[first + i] = add ? to[first + i] + sums[i] : sums[i];
  }
}

std::size_t conv_backward_parameters_bytes(const WindowGeometry& g) {
  return static_cast<std::size_t>(table_bytes(g) + Index{sizeof(Floats)} * vectors(g) +
                                  Index{sizeof(float)} * g.c * image_of(g).channel);
}

void conv_backward_parameters(const WindowGeometry& g, const float* x, const float* dy, float* dw,
                              float* db, bool accumulate, void* workspace) {
  const Image image = image_of(g);
  const Index kernel_rows = kernel_rows_at_once(g);
  const Space space = split(g, workspace);
  const Index filter = g.c * g.kernel_h * g.kernel_w;
  const Index channel = g.p * g.q * kGroup;
  tabulate(g, image, space);
  const Index with_bias = db ? row_of_all_positions(g) : g.kernel_h;
  const Index rows_at_once =
      larger(1, (kRowFloats - image.row) / (kUsualOutputs * g.q * kGroup + g.stride_h * image.row));
  bool overwrite = true;  // the sums; unless some kernel row has no position that would do it
  for (Index r = 0; r < g.kernel_h; r += kernel_rows)
    overwrite = overwrite && rows_inside(g, r).first < rows_inside(g, r).end;
  if (!overwrite) zero(space.weights, vectors(g) * kLanes);
  for (Index group = 0; group < g.groups; ++group) {
    const float* from = x + group * g.c * g.h * g.w * kGroup;
    const float* gradient = dy + group * g.k * channel;
    if (image.columns > g.w || image.rows > g.h) {
      copy_image(g, image, from, space.image);
      from = space.image;
    }
    for (Index row = 0; row < g.p; row += rows_at_once) {
      for (Index k = 0, outputs = 0; k < g.k; k += outputs) {
        outputs = outputs_at(g.k, k);
        for (Index r = 0; r < g.kernel_h; r += kernel_rows) {
          const Rows inside = rows_inside(g, r);
          const Index first = larger(row, inside.first);
          const Index end = smaller(row + rows_at_once, inside.end);
          if (first >= end) continue;
          const auto sum = g.stride_w == 1 ? all_taps<true> : all_taps<false>;
          sum(outputs,
              {.rows = end - first,
               .columns = g.q,
               .x_row = g.stride_h * image.row,
               .x_column = g.stride_w * kGroup,
               .dy_channel = channel,
               .dy_row = g.q * kGroup},
              from + (first * g.stride_h - g.pad_top + image.above + r) * image.row,
              gradient + k * channel + first * g.q * kGroup, taps_at_once(g),
              {space.x_at, space.sum_at},
              {.weights = space.weights + (k * filter + r * g.kernel_w) * kLanes,
               .bias = r == with_bias ? space.bias + k * kLanes : nullptr,
               .filter = filter * kLanes,
               .begun = !overwrite || group > 0 || first > inside.first});
        }
      }
    }
    if (db && with_bias == g.kernel_h)
      sum_positions(g.k, channel, gradient, space.bias, !overwrite || group > 0);
  }
  sum_vectors(g.k * filter, space.weights, dw, accumulate);
  if (db) sum_vectors(g.k, space.bias, db, accumulate);
}

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
