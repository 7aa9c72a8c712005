// Memory of translated kernels: vectors, structs, variables, shared and local memory, calls,
// atomics, output.
#include <cstdio>
#include <numeric>
#include <string>

#include <unistd.h>

#include "tests/ptx_support.h"

namespace cusim::test {
namespace {

std::vector<int> counted(std::size_t count, int first) {
  std::vector<int> x(count);
  std::iota(x.begin(), x.end(), first);
  return x;
}

TEST_CASE("vectors of all sizes are loaded and stored") {
  const int n = 40;
  std::vector<float4> x(n);
  std::vector<uchar4> b(n);
  std::vector<double2> want(n);
  for (int i = 0; i < n; ++i) {
    const auto f = static_cast<float>(i);
    x[i] = {f, f + 0.25F, -f, f * 3};
    b[i] = {static_cast<unsigned char>(i), 200, static_cast<unsigned char>(2 * i), 129};
    const float first = static_cast<std::int16_t>(b[i].x | b[i].y << 8);
    const float second = static_cast<std::int16_t>(b[i].z | b[i].w << 8);
    want[i] = {x[i].x + x[i].y * b[i].x + first, x[i].z + x[i].w * b[i].w + second};
  }
  const Buffer<float4> dx(x);
  const Buffer<uchar4> db(b);
  const Buffer<double2> dy(n);
  REQUIRE(launch(kVectors, dim3(2), dim3(32), 0, dx.get(), db.get(), dy.get(), n) == cudaSuccess);
  const std::vector<double2> y = dy.read();
  for (int i = 0; i < n; ++i) {
    CAPTURE(i);
    CHECK(y[i].x == want[i].x);
    CHECK(y[i].y == want[i].y);
  }
}

TEST_CASE("structs are parameters, by value and by address") {
  const Parameters first{-5, {1, 2.5F, 3}, 1e100, -300};
  const Parameters second{7, {-1, -2, -3.5F}, 0.5, 12345};
  const Buffer<double> y(8);
  REQUIRE(launch(kStructs, dim3(1), dim3(1), 0, first, second, y.get(), 2) == cudaSuccess);
  CHECK(y.read() == std::vector<double>{-5, 2.5, 1e100, -300, 7, -3.5, 0.5 + 3.0, 12345});
}

TEST_CASE("variables are each device's own and start with their initial values") {
  const std::vector<int> constants = counted(64, 1000);
  for (const int device : {0, 1}) {
    REQUIRE(cudaSetDevice(device) == cudaSuccess);
    REQUIRE(set_constants(constants.data(), constants.size()) == cudaSuccess);
    const Buffer<int> y(64);
    for (const int again : {0, 1}) {
      REQUIRE(launch(kVariables, dim3(1), dim3(64), 0, y.get()) == cudaSuccess);
      std::vector<int> want = constants;
      for (int& value : want) value += again;
      want[0] += 100;
      want[1] += 200;
      want[2] += 300;
      CHECK(y.read() == want);
    }
  }
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
}

TEST_CASE("local arrays are each thread's own") {
  const std::vector<int> x = counted(16, 1);
  const Buffer<int> in(x);
  const Buffer<int> out(16);
  REQUIRE(launch(kLocalArray, dim3(1), dim3(16), 0, in.get(), out.get(), 3) == cudaSuccess);
  std::vector<int> want;
  for (int i = 16; i > 0; --i) want.push_back(3 * i);
  CHECK(out.read() == want);
}

TEST_CASE("shared memory, static and dynamic, is each block's own") {
  const std::size_t n = 64;
  std::vector<float> x(n * n);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const Buffer<float> in(x);
  const Buffer<float> out(n * n);
  REQUIRE(launch(kTranspose, dim3(2, 2), dim3(32, 32), 0, in.get(), out.get(),
                 static_cast<int>(n)) == cudaSuccess);
  std::vector<float> transposed(n * n);
  for (std::size_t i = 0; i < x.size(); ++i) transposed[i % n * n + i / n] = x[i];
  CHECK(out.read() == transposed);

  const Buffer<int> numbers(counted(96, 0));
  const Buffer<int> reversed(96);
  REQUIRE(launch(kDynamic, dim3(3), dim3(32), 32 * sizeof(int), numbers.get(), reversed.get()) ==
          cudaSuccess);
  std::vector<int> want;
  for (int i = 0; i < 96; ++i) want.push_back(i / 32 * 32 + 31 - i % 32);
  CHECK(reversed.read() == want);
}

TEST_CASE("functions are called and switches jump") {
  const int n = 11;
  const std::vector<int> x = counted(64, -20);
  const Buffer<int> in(x);
  const Buffer<int> out(64);
  REQUIRE(launch(kFunctions, dim3(1), dim3(64), 0, in.get(), out.get(), n) == cudaSuccess);
  std::vector<int> want;
  for (std::size_t i = 0; i < 64; ++i) {
    const int a = x[i];
    const int b = x[i] * n + 1000;
    const std::array<int, 9> cases{a * 3,    a / 3, (a ^ n) + b, b * 4, b - 1,
                                   x[a & 7], -a,    ~b,          a - b};
    want.push_back(cases[i % 9]);
  }
  CHECK(out.read() == want);
}

TEST_CASE("atomic updates lose nothing") {
  const int threads = 4 * 96;
  const Buffer<int> i(std::vector<int>{0, 0, 0, 0, 0});
  const Buffer<unsigned> u(std::vector<unsigned>{0, 4, ~0U, 0, 0, 0, 0, 0, 0});
  const Buffer<unsigned long long> w(2);
  const Buffer<float> f(1);
  const Buffer<double> d(1);
  REQUIRE(launch(kAtomics, dim3(4), dim3(96), 0, i.get(), u.get(), w.get(), f.get(), d.get()) ==
          cudaSuccess);
  CHECK(i.read() ==
        std::vector<int>{threads * (threads - 1) / 2, 1 - threads, threads - 1, 7, -2 * threads});
  unsigned all = 0;
  for (unsigned t = 0; t < threads; ++t) all ^= t;
  // inc counts 0..9 around, dec 9..0 around: 384 steps from 0 and from 4.
  CHECK(u.read() == std::vector<unsigned>{threads % 10, (4 + 390 - threads) % 10, 0, ~0U, all,
                                          threads - 1, threads, 5, threads});
  CHECK(w.read() ==
        std::vector<unsigned long long>{static_cast<unsigned long long>(threads) << 33,
                                        static_cast<unsigned long long>(threads - 1) << 40});
  CHECK(f.read() == std::vector<float>{threads * 0.5F});
  CHECK(d.read() == std::vector<double>{threads * 0.25});
}

TEST_CASE("fences and waits for other grids let a kernel pass") {
  const Buffer<int> y(32);
  REQUIRE(launch(kFences, dim3(1), dim3(32), 0, y.get()) == cudaSuccess);
  CHECK(y.read() == counted(32, 0));
}

/// What `work` writes to stdout.
template <class Work>
std::string captured_output(Work work) {
  std::fflush(stdout);
  std::FILE* file = std::tmpfile();
  const int saved = dup(STDOUT_FILENO);
  dup2(fileno(file), STDOUT_FILENO);
  work();
  std::fflush(stdout);
  dup2(saved, STDOUT_FILENO);
  close(saved);
  std::rewind(file);
  std::string text(1000, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

TEST_CASE("printf of a kernel writes to stdout") {
  const std::string text =
      captured_output([] { CHECK(launch(kPrintf, dim3(1), dim3(32), 0) == cudaSuccess); });
  CHECK(text == "-7%  2.50 text c 1099511627776 12  | ff\n");
}

}  // namespace
}  // namespace cusim::test
