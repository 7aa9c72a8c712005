// Contexts, events, graphs and host memory where there is no stream: on a CPU.
#include "lockstep/core/stream.h"

#include <utility>
#include <vector>

#include "lockstep/core/error.h"

#include "support/catch.h"
#include "support/throws.h"

using namespace lockstep;
using test::contains;
using test::message_of;

TEST_CASE("on a CPU an event has always been reached", "[core]") {
  const Context context(Device{});
  const Event event(context.device());
  CHECK(event.reached());
  event.record(context);
  event.hold_up(context);
  CHECK(event.reached());
}

TEST_CASE("a CPU records no graph, and says what to do", "[core]") {
  const Context context(Device{});
  Graph graph;
  bool ran = false;
  CHECK(contains(message_of<UsageError>([&] { graph.record(context, [&] { ran = true; }); }),
                 "call the operations themselves"));
  CHECK_FALSE(ran);
  CHECK_FALSE(graph.recorded());
  CHECK(graph.nodes() == 0);
  CHECK_THROWS_AS(graph.launch(context), UsageError);
}

TEST_CASE("copies between host and device are done when they return, on a CPU", "[core]") {
  const Context context(Device{});
  const std::vector<float> values{1, 2, 3};
  const Buffer device(context.device(), sizeof(float) * 3, "a test");
  context.copy_to_device(device.data(), values.data(), device.bytes());
  std::vector<float> back(3);
  context.copy_to_host(back.data(), device.data(), device.bytes());
  CHECK(back == values);
  context.copy_to_host(nullptr, nullptr, 0);
  context.synchronize();
}

TEST_CASE("host memory for a device is zeroed, moves, and is read at its own address", "[core]") {
  HostBuffer buffer(Device{}, 100, "a test");
  CHECK(buffer.bytes() == 100);
  CHECK(buffer.device_address() == buffer.data());
  for (int i = 0; i < 100; ++i) REQUIRE(buffer.as<unsigned char>()[i] == 0);
  std::byte* const memory = buffer.data();
  HostBuffer other(std::move(buffer));
  CHECK(other.data() == memory);
  CHECK(buffer.data() == nullptr);  // NOLINT(bugprone-use-after-move): that is the question
  buffer = std::move(other);
  CHECK(buffer.data() == memory);
  CHECK(contains(message_of<DeviceError>([] {
                   const HostBuffer big(Device{}, std::size_t{1} << 60, "something large");
                 }),
                 "something large"));
}

TEST_CASE("tf32 is refused on a CPU", "[core]") {
  Context context(Device{});
  context.set_precision(Precision::fp32);
  CHECK_THROWS_AS(context.set_precision(Precision::tf32), UsageError);
  CHECK(context.precision() == Precision::fp32);
}
