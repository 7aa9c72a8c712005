#include "lockstep/parallel/buckets.h"

#include "lockstep/core/error.h"
#include "lockstep/core/step_state.h"
#include "lockstep/layers/zoo.h"

#include "support/catch.h"

using namespace lockstep;

TEST_CASE("buckets cover the gradient arena without gap or overlap", "[parallel]") {
  for (const std::string& name : zoo::names()) {
    const ParameterLayout layout(zoo::by_name(name));
    for (const std::int64_t bytes : {64, 1000, 5000, 100000, 1 << 30}) {
      CAPTURE(name, bytes);
      const std::vector<Bucket> buckets = make_buckets(layout, bytes);
      std::int64_t end = 0;
      int layer = 1 << 20;
      for (const Bucket& bucket : buckets) {
        CHECK(bucket.first == end);
        CHECK(bucket.count > 0);
        CHECK(bucket.ready_after < layer);  // in the order of the backward pass
        CHECK(bucket.first % kAlignedFloats == 0);
        layer = bucket.ready_after;
        end = bucket.first + bucket.count;
      }
      CHECK(end == layout.gradient_size());
      CHECK(buckets.back().ready_after == 0);
      CHECK(buckets.back().count >= kTailFloats);
    }
  }
}

TEST_CASE("a bucket is complete when the last of its layers is", "[parallel]") {
  const ParameterLayout layout(zoo::article());
  const std::vector<Bucket> buckets = make_buckets(layout, 64);
  REQUIRE(buckets.size() == 3);  // fc | conv_2 | conv_1 and the tail
  for (const Parameter& parameter : layout.parameters()) {
    for (const Bucket& bucket : buckets) {
      const bool inside = parameter.place.offset >= bucket.first &&
                          parameter.place.offset < bucket.first + bucket.count;
      if (inside) CHECK(parameter.layer >= bucket.ready_after);
    }
  }
  CHECK(make_buckets(layout, 1 << 20).size() == 1);
  CHECK_THROWS_AS(make_buckets(layout, 63), UsageError);
}
