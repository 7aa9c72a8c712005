// Convolution's gradients of weights and bias on groups of 16 samples.
//
//   dw(k, c, r, s) = sum over samples and positions of dy(k, p, q) * x(c, y(p, r), x(q, s))
//
// Tiles of sums (conv_parameters_tile.h) run over rows of positions: so many at a time that those
// of dy and x stay in a near cache for all taps.
//
//   rows of dy     rows of x          for each part of the rows: for a tile's outputs: all taps
//   +---------+    +-----------+
//   |=========| x  |===========|      Rows of positions whose x lies beyond the edge for a kernel
//   |=========|    |===========|      row are left out.
//   +---------+    +-----------+
//
// Columns beyond the edge are zeros of a copy of x, where there are any: summed apart, down the
// image, they are a gain with 32 registers and a loss with 16. With 32 registers all rows of a
// small kernel on few channels are summed together; then rows beyond the edge are zeros of the copy
// too. The bias gradient rides along with some taps that meet every position. The order of all sums
// is fixed by shapes alone.
#include "lockstep/kernels/cpu/conv_parameters.h"

#include "lockstep/kernels/cpu/conv_image.h"
#include "lockstep/kernels/cpu/conv_parameters_tile.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {
namespace {

/// What the rows of positions may fill. The larger tile asks the cache for 10 vectors in 24
/// multiply-adds, which the second level gives too (cores with AVX-512 have 512 KiB of it or more):
/// there longer runs are worth more.
constexpr Index kRowFloats = (kLanes == 16 ? 72 : 24) * 1024 / 4;

/// x of a group, as the taps read it: with the columns that windows reach beyond it, and with the
/// rows that kernel rows summed together do. Distances are in floats.
struct Image {
  Index left, columns;
  Index above, rows;
  Index row, channel;
};

/// What follows from the shapes.
struct Plan {
  const WindowGeometry& g;
  /// Whose taps are summed together: one, or with 32 registers all of a small kernel on few
  /// channels. A row of it has too few taps for whole tiles, and every pass reads all of dy.
  Index kernel_rows;
  Image image;
  Index taps;    ///< that are summed together
  Index filter;  ///< taps of an output
  Index plane;   ///< floats of a channel of dy
};

Plan plan_of(const WindowGeometry& g) {
  const bool all_rows = kLanes == 16 && g.kernel_w <= 3 && g.c <= 3 && g.kernel_h > 1;
  const Index kernel_rows = all_rows ? g.kernel_h : 1;
  const Index above = all_rows ? g.pad_top : 0;
  const Index rows = all_rows ? reach(above, g.h, g.p, g.stride_h, g.kernel_h) : g.h;
  const Index columns = reach(g.pad_left, g.w, g.q, g.stride_w, g.kernel_w);
  return {g,
          kernel_rows,
          {g.pad_left, columns, above, rows, columns * kGroup, rows * columns * kGroup},
          kernel_rows * g.c * g.kernel_w,
          g.c * g.kernel_h * g.kernel_w,
          g.p * g.q * kGroup};
}

/// Rows of positions [first, end) for which kernel row r is inside the image that the taps read.
/// Where kernel rows are summed together that image has all rows of all of them.
struct Rows {
  Index first, end;
};

Rows rows_inside(const Plan& plan, Index r) {
  const WindowGeometry& g = plan.g;
  const Index missing = g.pad_top - plan.image.above;
  const auto from = [&](Index row) {  // the first position that reads this row or a later one
    return at_least_zero((row + missing - r + g.stride_h - 1) / g.stride_h);
  };
  const Index first = missing < r ? 0 : from(0);
  const Index end = plan.image.rows + missing < r ? 0 : smaller(g.p, from(plan.image.rows));
  return {first, larger(first, end)};
}

/// The kernel row whose taps meet all positions, or the number of rows if none do.
Index row_of_all_positions(const Plan& plan) {
  for (Index r = 0; r < plan.g.kernel_h; r += plan.kernel_rows) {
    const Rows inside = rows_inside(plan, r);
    if (inside.first == 0 && inside.end == plan.g.p) return r;
  }
  return plan.g.kernel_h;
}

/// Whether every kernel row has a position, which begins its sums.
bool all_begin(const Plan& plan) {
  for (Index r = 0; r < plan.g.kernel_h; r += plan.kernel_rows) {
    const Rows inside = rows_inside(plan, r);
    if (inside.first == inside.end) return false;
  }
  return true;
}

/// Copies x with zeros around it.
void copy_image(const Plan& plan, const float* x, float* to) {
  const WindowGeometry& g = plan.g;
  const Image& image = plan.image;
  const Index after = image.columns - image.left - g.w;
  for (Index c = 0; c < g.c; ++c, to += image.channel) {
    zero(to, image.above * image.row);
    float* row = to + image.above * image.row;
    for (Index h = 0; h < g.h; ++h, x += g.w * kGroup, row += image.row) {
      zero(row, image.left * kGroup);
      float* inside = row + image.left * kGroup;
      __builtin_memcpy(inside, x, sizeof(float) * static_cast<std::size_t>(g.w * kGroup));
      zero(inside + g.w * kGroup, after * kGroup);
    }
    zero(row, (image.rows - image.above - g.h) * image.row);
  }
}

/// The bias gradient by itself.
void sum_positions(Index outputs, Index plane, const float* dy, float* bias, bool begun) {
  for (Index k = 0; k < outputs; ++k) {
    Floats total = begun ? load(bias + k * kLanes) : Floats{};
    for (Index i = 0; i < plane; i += kLanes) total += load(dy + k * plane + i);
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

Index table_bytes(const Plan& plan) {
  return whole_lines(Index{sizeof(Index)} * 2 * plan.taps);
}

/// Sums of weights and biases.
Index vectors(const Plan& plan) {
  return plan.g.k * (plan.filter + 1);
}

Space split(const Plan& plan, void* workspace) {
  auto* table = static_cast<Index*>(workspace);
  auto* sums = reinterpret_cast<float*>(static_cast<unsigned char*>(workspace) + table_bytes(plan));
  float* bias = sums + plan.g.k * plan.filter * kLanes;
  return {table, table + plan.taps, sums, bias, sums + vectors(plan) * kLanes};
}

void tabulate(const Plan& plan, const Space& space) {
  const WindowGeometry& g = plan.g;
  for (Index r = 0, t = 0; r < plan.kernel_rows; ++r) {
    for (Index c = 0; c < g.c; ++c) {
      for (Index s = 0; s < g.kernel_w; ++s, ++t) {
        space.x_at[t] = c * plan.image.channel + r * plan.image.row + s * kGroup;
        space.sum_at[t] = ((c * g.kernel_h + r) * g.kernel_w + s) * kLanes;
      }
    }
  }
}

/// Sums of a tile's outputs from k on and of the kernel rows from r on, over rows of positions.
void sum_rows(const Plan& plan, const Space& space, Index outputs, Index k, Index r, Rows rows,
              const float* x, const float* dy, bool with_bias, bool begun) {
  const WindowGeometry& g = plan.g;
  const Image& image = plan.image;
  sum_taps(outputs,
           {.rows = rows.end - rows.first,
            .columns = g.q,
            .x_row = g.stride_h * image.row,
            .x_column = g.stride_w * kGroup,
            .dy_channel = plan.plane,
            .dy_row = g.q * kGroup},
           x + (rows.first * g.stride_h - g.pad_top + image.above + r) * image.row,
           dy + k * plan.plane + rows.first * g.q * kGroup, {plan.taps, space.x_at, space.sum_at},
           {.weights = space.weights + (k * plan.filter + r * g.kernel_w) * kLanes,
            .bias = with_bias ? space.bias + k * kLanes : nullptr,
            .filter = plan.filter * kLanes,
            .begun = begun});
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
  const Plan plan = plan_of(g);
  return static_cast<std::size_t>(table_bytes(plan) + Index{sizeof(Floats)} * vectors(plan) +
                                  Index{sizeof(float)} * g.c * plan.image.channel);
}

void conv_backward_parameters(const WindowGeometry& g, const float* x, const float* dy, float* dw,
                              float* db, bool accumulate, void* workspace) {
  const Plan plan = plan_of(g);
  const Image& image = plan.image;
  const Space space = split(plan, workspace);
  tabulate(plan, space);
  const Index bias_row = db ? row_of_all_positions(plan) : g.kernel_h;
  const Index rows_at_once =
      larger(1, (kRowFloats - image.row) / (kUsualOutputs * g.q * kGroup + g.stride_h * image.row));
  const bool overwrite = all_begin(plan);
  if (!overwrite) zero(space.weights, vectors(plan) * kLanes);
  for (Index group = 0; group < g.groups; ++group) {
    const float* from = x + group * g.c * g.h * g.w * kGroup;
    const float* gradient = dy + group * g.k * plan.plane;
    if (image.columns > g.w || image.rows > g.h) {
      copy_image(plan, from, space.image);
      from = space.image;
    }
    for (Index row = 0; row < g.p; row += rows_at_once) {
      for (Index k = 0, outputs = 0; k < g.k; k += outputs) {
        outputs = gradient_outputs(g.k, k);
        for (Index r = 0; r < g.kernel_h; r += plan.kernel_rows) {
          const Rows inside = rows_inside(plan, r);
          const Rows rows{larger(row, inside.first), smaller(row + rows_at_once, inside.end)};
          if (rows.first >= rows.end) continue;
          sum_rows(plan, space, outputs, k, r, rows, from, gradient, r == bias_row,
                   !overwrite || group > 0 || rows.first > inside.first);
        }
      }
    }
    if (db && bias_row == g.kernel_h)
      sum_positions(g.k, plan.plane, gradient, space.bias, !overwrite || group > 0);
  }
  sum_vectors(g.k * plan.filter, space.weights, dw, accumulate);
  if (db) sum_vectors(g.k, space.bias, db, accumulate);
}

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
